import type { OutRecord } from './port';

/**
 * What one `send()` of the client carries at most. It copies its list anew for every record, so its work grows with the square:
 * 97,000 records/s in batches of 100, 92,000 in batches of 500. Brokers refuse requests above 1 MB.
 */
const MOST_RECORDS = 250;
const MOST_BYTES = 900_000;

interface Call {
  records: OutRecord[];
  /** Records that were taken into a batch, and those of them that are acknowledged. */
  taken: number;
  acknowledged: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

export interface Batch {
  records: OutRecord[];
  acknowledge(): void;
  fail(error: Error): void;
}

/** The calls that wait for one topic-partition, in order. What arrives while a batch is out becomes the next one. */
export class PartitionQueue {
  private readonly calls: Call[] = [];
  busy = false;

  add(records: OutRecord[]): Promise<void> {
    if (records.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => this.calls.push({ records, taken: 0, acknowledged: 0, resolve, reject }));
  }

  get empty(): boolean {
    return this.calls.length === 0;
  }

  /** The next batch; a call may be spread over several, and is fulfilled by its last. */
  take(): Batch {
    const records: OutRecord[] = [];
    const parts: { call: Call; count: number }[] = [];
    let bytes = 0;
    let full = false;
    while (!full && this.calls.length > 0) {
      const call = this.calls[0]!;
      const before = call.taken;
      while (call.taken < call.records.length) {
        const record = call.records[call.taken]!;
        const size = record.key.length + record.value.length + 100;
        full = records.length >= MOST_RECORDS || (records.length > 0 && bytes + size > MOST_BYTES);
        if (full) break;
        records.push(record);
        bytes += size;
        call.taken++;
      }
      if (call.taken > before) parts.push({ call, count: call.taken - before });
      if (call.taken === call.records.length) this.calls.shift();
    }
    return {
      records,
      acknowledge: () => {
        for (const { call, count } of parts) {
          call.acknowledged += count;
          if (call.acknowledged === call.records.length) call.resolve();
        }
      },
      fail: (error) => {
        for (const { call } of parts) {
          call.reject(error);
          // The rest of a call that failed is not sent: its caller sends all of it again.
          if (this.calls[0] === call) this.calls.shift();
        }
      },
    };
  }

  failAll(error: Error): void {
    for (const call of this.calls.splice(0)) call.reject(error);
  }
}
