export interface KafkaNode {
  id: number;
  port: number;
  controllerPort: number;
}

/** server.properties of one node; every node is broker and controller, with a static quorum. */
export function kafkaProperties(
  node: KafkaNode,
  nodes: readonly KafkaNode[],
  logDirectory: string,
  overrides: Readonly<Record<string, string>> = {},
): string {
  const replicated = nodes.length > 1;
  const replicas = String(nodes.length);
  const inSync = replicated ? String(nodes.length - 1) : '1';
  const properties: Record<string, string> = {
    'process.roles': 'broker,controller',
    'node.id': String(node.id),
    'controller.quorum.voters': nodes.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`).join(','),
    listeners: `PLAINTEXT://127.0.0.1:${node.port},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${node.port}`,
    'inter.broker.listener.name': 'PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': logDirectory,
    'auto.create.topics.enable': 'false',
    'default.replication.factor': replicas,
    'min.insync.replicas': inSync,
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': '4',
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSync,
    'transaction.state.log.num.partitions': '4',
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSync,
    'group.initial.rebalance.delay.ms': '0',
    'num.network.threads': '2',
    'num.io.threads': '4',
    'log.segment.bytes': '16777216',
    // The default of 128 MB is a third of the heap that a local broker gets.
    'log.cleaner.dedupe.buffer.size': '16777216',
    ...overrides,
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}
