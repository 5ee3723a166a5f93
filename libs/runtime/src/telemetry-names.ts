/**
 * Every attribute, metric and span name of this library in one place: OpenTelemetry's messaging conventions are still in
 * development (semantic-conventions 1.45), and a rename should be one line here.
 */
export const ATTRIBUTES = {
  messagingSystem: 'messaging.system',
  destination: 'messaging.destination.name',
  partition: 'messaging.destination.partition.id',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  batchSize: 'messaging.batch.message_count',
  offset: 'messaging.kafka.offset',
  group: 'messaging.consumer.group.name',
  errorType: 'error.type',
} as const;

export const METRICS = {
  kafkaSent: 'punctual_kafka_sent_records',
  kafkaSendSeconds: 'punctual_kafka_send_seconds',
  kafkaSendFailures: 'punctual_kafka_send_failures',
  kafkaProducersReplaced: 'punctual_kafka_producers_replaced',
  kafkaHandled: 'punctual_kafka_handled_records',
  kafkaHandleSeconds: 'punctual_kafka_handle_seconds',
  kafkaParked: 'punctual_kafka_parked_records',
  kafkaLag: 'punctual_kafka_consumer_lag',
  outboxRelayed: 'punctual_outbox_relayed_rows',
  outboxParked: 'punctual_outbox_parked_rows',
  outboxRelaySeconds: 'punctual_outbox_relay_seconds',
  poolConnections: 'punctual_postgres_pool_connections',
} as const;
