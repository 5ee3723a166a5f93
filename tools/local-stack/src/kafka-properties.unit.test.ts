import { kafkaProperties, type KafkaNode } from './kafka-properties';

const nodes: KafkaNode[] = [1, 2, 3].map((id) => ({ id, port: 20_000 + id, controllerPort: 21_000 + id }));

function parse(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

describe('server.properties', () => {
  it('keeps a single broker to itself', () => {
    const properties = parse(kafkaProperties(nodes[0]!, [nodes[0]!], 'data'));
    expect(properties).toMatchObject({
      'controller.quorum.voters': '1@127.0.0.1:21001',
      'default.replication.factor': '1',
      'min.insync.replicas': '1',
      'offsets.topic.replication.factor': '1',
      'transaction.state.log.min.isr': '1',
      'share.coordinator.state.topic.replication.factor': '1',
    });
  });

  it('makes three brokers replicate threefold and acknowledge with two in sync', () => {
    const properties = parse(kafkaProperties(nodes[1]!, nodes, 'data'));
    expect(properties).toMatchObject({
      'node.id': '2',
      'controller.quorum.voters': '1@127.0.0.1:21001,2@127.0.0.1:21002,3@127.0.0.1:21003',
      'default.replication.factor': '3',
      'min.insync.replicas': '2',
      'offsets.topic.replication.factor': '3',
      'transaction.state.log.min.isr': '2',
    });
  });

  it('listens on the loopback address only', () => {
    for (const nodeCount of [1, 3]) {
      const properties = parse(kafkaProperties(nodes[0]!, nodes.slice(0, nodeCount), 'data'));
      expect(properties.listeners).toBe('PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:21001');
      expect(properties['advertised.listeners']).toBe('PLAINTEXT://127.0.0.1:20001');
    }
  });

  it('lets a test change a setting', () => {
    const properties = parse(kafkaProperties(nodes[0]!, nodes, 'data', { 'broker.session.timeout.ms': '3000' }));
    expect(properties['broker.session.timeout.ms']).toBe('3000');
  });
});
