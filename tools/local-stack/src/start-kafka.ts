import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import { fetchArtifact } from './fetch-artifacts';
import { requireJava } from './find-program';
import { kafkaProperties, type KafkaNode } from './kafka-properties';
import { LocalStackError } from './local-stack-error';
import { OwnedFolder } from './owned-folder';
import { pickPorts, releasePorts, wantedPort } from './pick-port';
import { projectRoot } from './project-root';
import { ServerProcess } from './server-process';
import { startAgainOnOtherPorts } from './start-again';
import { assertListening, waitForAnswer } from './wait-for-answer';

export interface KafkaOptions {
  folder: string;
  /** Three brokers replicate everything threefold and acknowledge with two in sync. */
  brokers?: 1 | 3;
  /** Only for one broker; a free port otherwise. */
  port?: number;
  /** Further lines of server.properties, for tests that need shorter time-outs. */
  properties?: Readonly<Record<string, string>>;
  keep?: boolean;
  removeOnStop?: boolean;
  startDeadlineMs?: number;
  progress?: (message: string) => void;
  signal?: AbortSignal;
}

export interface RunningKafka {
  /** host:port, comma separated; the same for the whole life, whatever is killed and restarted. */
  brokers: string;
  /** 1, or 1 to 3: what the other calls take. */
  ids: readonly number[];
  stop(): Promise<void>;
  /** kill -9. */
  kill(id: number): Promise<void>;
  /** A clean stop of one broker. */
  stopBroker(id: number): Promise<void>;
  /** Starts a broker again, on the same port and data, and waits until the cluster counts it; stops it first if it runs. */
  restart(id: number): Promise<void>;
  pause(id: number): void;
  resume(id: number): void;
}

interface Broker {
  node: KafkaNode;
  server: ServerProcess;
}

const MARKER = 'kafka.Kafka';
const HEAP_MB = { single: 384, clustered: 300 };

export async function startKafka(options: KafkaOptions): Promise<RunningKafka> {
  const java = requireJava();
  const libraries = await fetchArtifact('kafka', options);
  const folder = await OwnedFolder.claim(options.folder, { keep: options.keep });
  try {
    return await startAgainOnOtherPorts(options.port === undefined, () => startBrokers(java, libraries, folder, options));
  } catch (error) {
    folder.release({ remove: false });
    throw error;
  }
}

async function startBrokers(java: string, libraries: string, folder: OwnedFolder, options: KafkaOptions): Promise<RunningKafka> {
  const count = options.brokers ?? 1;
  const deadlineMs = options.startDeadlineMs ?? 60_000;
  const first = await wantedPort('Kafka', count === 1 ? options.port : undefined);
  const ports = [first, ...(await pickPorts(count * 2 - 1))];
  const nodes = Array.from({ length: count }, (_, index): KafkaNode => {
    return { id: index + 1, port: ports[index]!, controllerPort: ports[count + index]! };
  });
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  const clusterId = newClusterId();
  const brokers = await Promise.all(
    nodes.map(async (node): Promise<Broker> => {
      const home = join(folder.path, `broker-${node.id}`);
      mkdirSync(home, { recursive: true });
      const properties = join(home, 'server.properties');
      writeFileSync(properties, kafkaProperties(node, nodes, join(home, 'data'), options.properties));
      if (!existsSync(join(home, 'data', 'meta.properties'))) await formatStorage(java, libraries, properties, clusterId);
      const heapMb = count === 1 ? HEAP_MB.single : HEAP_MB.clustered;
      return { node, server: describeServer(java, libraries, folder, home, properties, heapMb, node.id) };
    }),
  );
  const find = (id: number): Broker => {
    const broker = brokers.find(({ node }) => node.id === id);
    if (broker === undefined)
      throw new RangeError(`there is no Kafka broker ${id}, only ${nodes.map((node) => node.id).join(', ')}`);
    return broker;
  };
  const readiness = { deadlineMs, signal: options.signal };
  const waitUntilCounted = async ({ node, server }: Broker): Promise<void> => {
    await waitForAnswer(server, () => assertListening(node.port), readiness);
    await waitForAnswer(server, () => assertCounted(addresses, node.id), readiness);
  };

  const kill = async (): Promise<void> => {
    await Promise.all(brokers.map(({ server }) => server.kill()));
    releasePorts(ports);
  };
  try {
    for (const { server } of brokers) server.start();
    await Promise.all(brokers.map(waitUntilCounted));
  } catch (error) {
    await kill();
    throw error;
  }
  return {
    brokers: addresses.join(','),
    ids: nodes.map(({ id }) => id),
    stop: async () => {
      if (options.keep === true) await Promise.all(brokers.map(({ server }) => server.stop()));
      // Data that nobody will read again is not worth the 5 s that a quorum takes to end in good order.
      await kill();
      folder.release({ remove: options.removeOnStop });
    },
    kill: (id) => find(id).server.kill(),
    stopBroker: (id) => find(id).server.stop(),
    restart: async (id) => {
      const broker = find(id);
      await broker.server.stop();
      broker.server.start();
      await waitUntilCounted(broker);
    },
    pause: (id) => find(id).server.pause(),
    resume: (id) => find(id).server.resume(),
  };
}

function describeServer(
  java: string,
  libraries: string,
  folder: OwnedFolder,
  home: string,
  properties: string,
  heapMb: number,
  id: number,
): ServerProcess {
  const logging = join(projectRoot(), 'deploy', 'local', 'kafka-log4j2.xml');
  return new ServerProcess(folder, {
    name: `Kafka broker ${id}`,
    program: java,
    args: [
      '-Xms128m',
      `-Xmx${heapMb}m`,
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-Xshare:auto',
      '-Djava.awt.headless=true',
      `-Dlog4j2.configurationFile=${logging}`,
      '-cp',
      join(libraries, '*'),
      MARKER,
      properties,
    ],
    cwd: home,
    logFile: join(home, 'broker.log'),
    markers: [MARKER, properties],
    stopSignal: 'SIGTERM',
    orphanSignal: 'KILL',
    stopDeadlineMs: 15_000,
  });
}

async function formatStorage(java: string, libraries: string, properties: string, clusterId: string): Promise<void> {
  const jvm = ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', join(libraries, '*')];
  const logging = `-Dlog4j2.configurationFile=${join(projectRoot(), 'deploy', 'local', 'kafka-log4j2.xml')}`;
  const format = ['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', properties, '--ignore-formatted'];
  try {
    await promisify(execFile)(java, [...jvm, logging, ...format], { timeout: 60_000 });
  } catch (error) {
    const said = (error as { stderr?: string }).stderr ?? String(error);
    if (said.includes('UnsupportedClassVersionError')) {
      throw new LocalStackError(
        'program_too_old',
        `${java} is too old for Apache Kafka, which runs on Java 17 or newer. On Debian or Ubuntu install one with ` +
          `"sudo apt-get install default-jre-headless" (and unset JAVA_HOME if it names the old one), then start again.`,
        { cause: error },
      );
    }
    throw new LocalStackError(
      'server_exited',
      `Kafka could not prepare its data folder (${properties}). It said:\n${said.trim()}`,
      { cause: error },
    );
  }
}

/** An open port is not readiness: the cluster must have a controller, count this broker, and lead every partition. */
async function assertCounted(addresses: readonly string[], id: number): Promise<void> {
  const client = new Kafka({
    clientId: 'punctual-local-stack',
    brokers: [...addresses],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1_000,
    requestTimeout: 2_000,
    retry: { retries: 0 },
  });
  const admin = client.admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    if (cluster.controller === null) throw new Error('the cluster has no controller yet');
    if (!cluster.brokers.some((broker) => broker.nodeId === id)) throw new Error(`the cluster does not count broker ${id} yet`);
    const { topics } = await admin.fetchTopicMetadata();
    const leaderless = topics.filter((topic) => topic.partitions.some((partition) => partition.leader < 0));
    if (leaderless.length > 0)
      throw new Error(`partitions of ${leaderless.map((topic) => topic.name).join(', ')} have no leader yet`);
  } finally {
    await admin.disconnect();
  }
}

/** 16 random bytes as Kafka writes its ids; one that starts with "-" would be read as an option. */
function newClusterId(): string {
  for (;;) {
    const id = randomBytes(16).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}
