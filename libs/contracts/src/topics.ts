import type { EventName } from './events';

/** Everything that is fixed about a topic. Names get the installation's prefix, `punctual.` by default. */
export interface Topic {
  suffix: string;
  /** What the key is, and what the partition is computed from where that is something else. */
  key: 'schedule id' | 'run id' | 'occurrence id' | 'endpoint id';
  partitionedBy: 'schedule id' | 'run id' | 'occurrence id' | 'provider identity' | 'time slice';
  partitions: number;
  retentionDays: number;
  /** Public topics are CloudEvents in binary mode; others may change with any release. */
  public: boolean;
  events: readonly EventName[];
}

const define = <T extends Record<string, Topic>>(topics: T) => topics;

export const TOPICS = define({
  schedules: {
    suffix: 'schedules',
    key: 'schedule id',
    partitionedBy: 'schedule id',
    partitions: 6,
    retentionDays: 7,
    public: true,
    events: ['ScheduleRequested', 'ScheduleRevised', 'SchedulePaused', 'ScheduleResumed', 'ScheduleCancelled'],
  },
  executions: {
    suffix: 'executions',
    key: 'occurrence id',
    partitionedBy: 'provider identity',
    partitions: 12,
    retentionDays: 1,
    public: false,
    events: ['ExecutionDue'],
  },
  runs: {
    suffix: 'runs',
    key: 'run id',
    partitionedBy: 'run id',
    partitions: 6,
    retentionDays: 7,
    public: false,
    events: ['RunPlanned', 'RecipientsRefused', 'RunReleased'],
  },
  deliveries: {
    suffix: 'deliveries',
    key: 'occurrence id',
    partitionedBy: 'occurrence id',
    partitions: 6,
    retentionDays: 7,
    public: false,
    events: [
      'MessageSubmitted',
      'MessageRefused',
      'MessageHeld',
      'SendRetryPlanned',
      'MessageFailed',
      'OutcomeUncertain',
      'OutcomeUnconfirmed',
      'RunHeld',
    ],
  },
  webhooks: {
    suffix: 'webhooks',
    key: 'endpoint id',
    // A header `content-encoding: gzip` says that the body inside is deflated, which only large ones are.
    // Whatever comes within 50 ms goes to one partition: a batch for one costs a sixth of six small ones.
    partitionedBy: 'time slice',
    partitions: 6,
    retentionDays: 7,
    public: false,
    events: ['WebhookReceived'],
  },
  receipts: {
    suffix: 'receipts',
    key: 'occurrence id',
    partitionedBy: 'occurrence id',
    partitions: 6,
    retentionDays: 7,
    public: false,
    events: ['ReceiptRecorded'],
  },
  status: {
    suffix: 'status',
    key: 'occurrence id',
    partitionedBy: 'occurrence id',
    partitions: 6,
    retentionDays: 7,
    public: true,
    events: ['MessageStatusChanged', 'RunProgressed', 'RunCompleted', 'ScheduleHeld', 'ScheduleHoldEnded'],
  },
});

export type TopicName = keyof typeof TOPICS;

export function topicName(prefix: string, topic: TopicName): string {
  return prefix + TOPICS[topic].suffix;
}

/** What the broker is told when it creates the topics (`<prefix><suffix>`, and one `.dead` beside each for parked records). */
export function topicSpecs(prefix: string): Array<{ name: string; partitions: number; config: Record<string, string> }> {
  return (Object.keys(TOPICS) as TopicName[]).flatMap((topic) => {
    const { partitions, retentionDays } = TOPICS[topic];
    const config = { 'retention.ms': String(retentionDays * 86_400_000), 'cleanup.policy': 'delete' };
    const name = topicName(prefix, topic);
    return [
      { name, partitions, config },
      { name: `${name}.dead`, partitions: 1, config: { ...config, 'retention.ms': String(30 * 86_400_000) } },
    ];
  });
}
