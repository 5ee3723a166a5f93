import type { EachBatchPayload } from 'kafkajs';
import type { Log } from '../log';

export interface DueCommit {
  topic: string;
  partition: number;
  /** The offset of the next record to read. */
  next: bigint;
  done(): void;
}

export interface TimedCommitsOptions {
  everyMs: number;
  log: Log;
  /** What has moved since it was committed last. */
  due(): DueCommit[];
  /** Rises with every join: an offset from before it may be another member's by now. */
  generation(): number;
}

/**
 * Commits the offsets of all partitions in one request, a few times a second: a commit for every batch is a request to the broker
 * for every batch, and where batches are small that is most of what a consumer costs. What a crash brings again is what came
 * within that time.
 */
export class TimedCommits {
  private commit: EachBatchPayload['commitOffsetsIfNecessary'] | undefined;
  private committing: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: TimedCommitsOptions) {}

  start(): void {
    this.timer ??= setInterval(() => void this.commitOnce(), this.options.everyMs);
  }

  /** The commit of any payload reaches the whole group; the newest is the one that is sure to be alive. */
  through({ commitOffsetsIfNecessary }: EachBatchPayload): void {
    this.commit = commitOffsetsIfNecessary;
  }

  async commitOnce(): Promise<void> {
    this.committing ??= this.commitDue().finally(() => (this.committing = undefined));
    await this.committing;
  }

  /** The group is left or joined anew. Sent before the client's own request to join, while the group still takes it: fewer records come twice. */
  left(): void {
    void this.commitOnce();
    this.commit = undefined;
  }

  /** One last commit of everything, while the group still takes it. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.committing;
    await this.commitOnce();
  }

  private async commitDue(): Promise<void> {
    const { commit } = this;
    const generation = this.options.generation();
    const due = this.options.due();
    if (due.length === 0 || !commit) return;
    const topics = [...new Set(due.map(({ topic }) => topic))].map((topic) => ({
      topic,
      partitions: due.filter((each) => each.topic === topic).map(({ partition, next }) => ({ partition, offset: String(next) })),
    }));
    try {
      await commit({ topics });
      if (generation === this.options.generation()) for (const { done } of due) done();
    } catch (error) {
      // A rebalance or a moving coordinator: the same records come again, or the next tick commits them.
      this.options.log.debug('committing failed; tried again with the next tick', { error });
    }
  }
}
