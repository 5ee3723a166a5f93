import { type DynamicModule, Module } from '@nestjs/common';
import { Codec } from '#contracts/codec';
import { topicName } from '#contracts/topics';
import { systemClock } from '#runtime/clock';
import { openHandoverConsumer } from '#runtime/kafka/open-handover-consumer';
import type { BatchProducer } from '#runtime/kafka/port';
import type { Log } from '#runtime/log';
import { partitionFor } from '#contracts/murmur2';
import { OutboxRelay } from '#runtime/outbox/outbox-relay';
import type { Database } from '#runtime/postgres/database';
import { keyFrom } from '#runtime/sealed-secret';
import { ApplyEffects, templateKeyOf } from './apply-effects';
import { openMessageSource } from './audience/message-source';
import { ClaimBatches } from './claim-batches';
import type { SenderConfig } from './config';
import { CODEC, GATE, evidenceController } from './kafka/evidence.controller';
import { Lanes } from './lane/lanes';
import { NumberDirectory } from './numbers/number-directory';
import { HostCircuit } from './outcome/host-circuit';
import { draftEncoder } from './postgres/encode-draft';
import { PostgresGate } from './postgres/gate';
import { ProbeHeldNumbers } from './probe-held-numbers';
import { whatsAppAdapter } from './providers/whatsapp/whatsapp-adapter';
import { ResultRecorder } from './record-results';
import { openSendSlots } from './redis/send-slots';
import { RecoverClaims } from './recover-claims';
import { RefreshNumbers } from './refresh-numbers';
import { refuseMissing } from './refuse-missing';
import { ReportCredit } from './report-credit';
import { SendLoop } from './send-loop';
import { SendMessage } from './send-message';
import { HEARTBEAT_FRESH_MS, Sender } from './sender';
import { SweepClaims } from './sweep-claims';
import { TakeRecords } from './take-records';
import { WakeWaiting } from './wake-waiting';

/** What is open before the engine is put together. */
export interface SenderServers {
  config: SenderConfig;
  log: Log;
  database: Database;
  producer: BatchProducer;
  /** Of each topic, as the broker has it. */
  partitionCounts: ReadonlyMap<string, number>;
  onFatal(error: unknown): void;
  signal: AbortSignal;
}

/** The only place where the parts of the sender are put together. */
@Module({})
export class AppModule {
  static register(servers: SenderServers): DynamicModule {
    const { config, database } = servers;
    const codec = new Codec();
    const gate = new PostgresGate(database);
    return {
      module: AppModule,
      controllers: [evidenceController(topicName(config.TOPIC_PREFIX, 'receipts'))],
      providers: [
        { provide: CODEC, useValue: codec },
        { provide: GATE, useValue: gate },
        { provide: Sender, useFactory: () => composeSender(servers, gate, codec) },
        { provide: OutboxRelay, useFactory: () => composeRelay(servers, codec) },
      ],
    };
  }
}

function composeRelay({ config, log, database, producer, partitionCounts }: SenderServers, codec: Codec): OutboxRelay {
  const nameOf = (topic: string) => config.TOPIC_PREFIX + topic;
  return new OutboxRelay({
    database,
    databaseUrl: config.DATABASE_URL.reveal(),
    schema: 'sender',
    producer,
    collectMs: 250,
    encode: draftEncoder(codec),
    topicName: nameOf,
    partitionOf: (topic, key) => partitionFor(key, partitionCounts.get(nameOf(topic)) ?? 1),
    log,
  });
}

function composeSender(servers: SenderServers, gate: PostgresGate, codec: Codec): Sender {
  const { config, log, database, signal } = servers;
  const clock = systemClock;
  const executionsTopic = topicName(config.TOPIC_PREFIX, 'executions');
  const horizonMs = config.SLOT_HORIZON_MS;
  const results = { evidenceWindowMs: config.EVIDENCE_WINDOW_MS, resendAfterMs: config.RESEND_AFTER_MS };
  const circuits = { test: new HostCircuit(), live: new HostCircuit() };
  const lanes = new Lanes({ horizonMs, marginMs: config.PACE_MARGIN_MS, now: () => clock.monotonicMs() });
  lanes.setPartitionCount(servers.partitionCounts.get(executionsTopic) ?? 1);
  const numbers = new NumberDirectory(database, keyFrom(config.CREDENTIALS_KEY), log);
  const consumer = openHandoverConsumer({
    brokers: config.KAFKA_BROKERS,
    clientId: config.INSTANCE_ID,
    groupId: `${config.TOPIC_PREFIX}sender`,
    deadLetterProducer: servers.producer,
    log,
    onFatal: servers.onFatal,
  });
  const slots = openSendSlots({ url: config.REDIS_URL.reveal(), prefix: config.REDIS_PREFIX, log });
  const adapter = whatsAppAdapter({
    liveUrl: config.WHATSAPP_LIVE_URL,
    testUrl: config.WHATSAPP_TEST_URL,
    apiVersion: config.WHATSAPP_API_VERSION,
    connections: config.PROVIDER_CONNECTIONS,
    onConnection: (mode, error) => effects.onConnection(mode, error),
  });
  const recorder = new ResultRecorder({ gate, clock, log, ...results });
  const effects = new ApplyEffects({ gate, clock, log, lanes, numbers, circuits, signal, onHeld: () => loop.wake() });
  const accepting = (): boolean => recorder.accepting && !sender.isDraining;
  const credit = new ReportCredit({
    database,
    clock,
    lanes,
    numbers,
    circuits,
    instance: config.INSTANCE_ID,
    windowMs: config.LANE_WINDOW_MS,
    accepting,
  });
  const refresh = new RefreshNumbers({ gate, clock, lanes, numbers, onUnblocked: () => loop.wake() });
  const claims = new ClaimBatches({
    gate,
    clock,
    log,
    instance: config.INSTANCE_ID,
    deadlineMs: config.PROVIDER_DEADLINE_MS,
    templateKeyOf: (message) => {
      const number = numbers.get(message.item.numberId);
      return number ? templateKeyOf(number, message) : null;
    },
    onVerdict: (claiming, verdict, deadlineAt) => loop.onVerdict(claiming, verdict, deadlineAt),
    onUnanswered: (claiming) => loop.onUnanswered(claiming),
  });
  const sending = new SendMessage({
    clock,
    tokenKey: keyFrom(config.TOKEN_KEY),
    random: Math.random,
    lastHeartbeatMs: () => consumer.health.lastHeartbeatMs,
    heartbeatFreshMs: HEARTBEAT_FRESH_MS,
    deadlineMs: config.PROVIDER_DEADLINE_MS,
    record: (result) => recorder.add(result),
    onDecision: (sent) => effects.onDecision(sent),
    repetitionOf: (numberId) => effects.repetitionOf(numberId),
    onDone: (lane, callMs) => loop.onDone(lane, callMs),
  });
  const loop = new SendLoop({
    clock,
    log,
    lanes,
    numbers,
    slots,
    claims,
    results: recorder,
    sending,
    adapter,
    circuits,
    horizonMs,
    connections: config.PROVIDER_CONNECTIONS,
    deadlineMs: config.PROVIDER_DEADLINE_MS,
    onAnswered: (message) => sender.answered(message),
    onLostAnswer: (message) => recovering.add(message.item.occurrenceId),
  });
  const recovering = new RecoverClaims({
    database,
    clock,
    log,
    instance: config.INSTANCE_ID,
    isOpen: (id) => claims.isAsking(id) || sending.isInFlight(id) || recorder.isUnrecorded(id) || lanes.hasClaimed(id),
    record: (result) => recorder.add(result),
  });
  const records = new TakeRecords({
    codec,
    clock,
    log,
    lanes,
    numbers,
    source: openMessageSource(database),
    gate,
    refreshNumbers: () => refresh.refreshOnce(),
    refuse: (item, reason) => refuseMissing(database, item, reason),
    enqueue: (lane, message) => loop.enqueue(lane, message),
    finished: (topic, partition, offset) => consumer.finished(topic, partition, offset),
    onReceived: (numberId) => credit.received(numberId),
  });
  const waking = new WakeWaiting({ gate, clock, lanes, records, windowMs: config.LANE_WINDOW_MS, accepting });
  const sweeping = new SweepClaims({ gate, graceMs: config.DEADLINE_GRACE_MS, ...results });
  const probing = new ProbeHeldNumbers({ gate, log, lanes, numbers, refresh, adapter });
  const sender: Sender = new Sender({
    clock,
    log,
    executionsTopic,
    consumer,
    lanes,
    slots,
    adapter,
    gate,
    records,
    loop,
    sending,
    results: recorder,
    effects,
    refresh,
    credit,
    waking,
    sweeping,
    probing,
    recovering,
    healthProbeMs: config.HEALTH_PROBE_MS,
    sweepEveryMs: Math.min(1_000, Math.max(100, config.DEADLINE_GRACE_MS / 4)),
  });
  return sender;
}
