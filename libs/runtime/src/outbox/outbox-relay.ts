import type { BatchProducer } from '../kafka/port';
import { silentLog, type Log } from '../log';
import { counter, histogram } from '../metrics';
import { pause } from '../pause';
import type { Database, Statement } from '../postgres/database';
import { DedicatedClient } from '../postgres/dedicated-client';
import { isRetriable } from '../retriable';
import { sqlFile } from '../postgres/sql-file';
import { METRICS } from '../telemetry-names';
import { SentRows } from './delete-sent';
import { encodeRows, type Encoding, type OutboxRow } from './encode-rows';
import { LANE_GROUPS, LaneOwnership, groupOf } from './lane-ownership';

export interface OutboxOptions {
  database: Database;
  /** For a connection of the relay's own, which carries its locks. */
  databaseUrl: string;
  /** The schema that has the tables `outbox` and `outbox_parked`. */
  schema: string;
  producer: BatchProducer;
  encode?: Encoding['encode'];
  partitionOf?: Encoding['partitionOf'];
  /** The name as it is in the table, if absent. */
  topicName?: Encoding['topicName'];
  log?: Log;
  /** Rows of one lane taken at once; 500 if absent. Four times as many of a negative lane, since they go to many partitions. */
  batch?: number;
  /**
   * From the start of one pass to the start of the next, at least; 0 if absent. At a trickle a pass for each row costs more
   * than the row: what nobody waits for is collected this long.
   */
  collectMs?: number;
}

const ACTIVE_POLL_MS = 50;
const IDLE_POLL_MS = 200;
const BALANCE_EVERY_MS = 1_000;

const relayedRows = counter(METRICS.outboxRelayed, 'Outbox rows that Kafka has acknowledged');
const parkedRows = counter(METRICS.outboxParked, 'Outbox rows that could not be encoded and were put aside');
const relaySeconds = histogram(METRICS.outboxRelaySeconds, 'From reading a batch of a lane until its rows are deleted');

/**
 * Brings the rows of `<schema>.outbox` to Kafka, in order within each lane, and deletes them after the acknowledgement. Dying at
 * any line repeats rows and loses none.
 */
export class OutboxRelay {
  private readonly stopping = new AbortController();
  private readonly client: DedicatedClient;
  private readonly ownership: LaneOwnership;
  private readonly sent: SentRows;
  private readonly encoding: Encoding;
  private readonly log: Log;
  private readonly statements: { select: Statement; park: Statement };
  /** A lane is busy until its rows are deleted: it would send them again otherwise. */
  private readonly busy = new Map<number, Promise<void>>();
  private readonly skipped = new Set<string>();
  private loop: Promise<void> | undefined;
  private stopped: Promise<void> | undefined;
  private balanced = -Infinity;
  private lastActive = 0;
  private rouse: () => void = () => undefined;
  private roused = false;
  private listening = false;

  constructor(private readonly options: OutboxOptions) {
    const { schema, database } = options;
    this.log = (options.log ?? silentLog).with({ part: `outbox-${schema}` });
    this.client = new DedicatedClient({ url: options.databaseUrl, name: `outbox-${schema}`, log: options.log });
    this.ownership = new LaneOwnership(this.client, schema);
    this.statements = {
      select: sqlFile(__dirname, 'select-due-rows.sql', { schema }),
      park: sqlFile(__dirname, 'park-rows.sql', { schema }),
    };
    const deleteSent = sqlFile(__dirname, 'delete-sent-rows.sql', { schema });
    // The acknowledgements of a pass come one after the other: a quarter of the pass's time brings most of them together.
    this.sent = new SentRows(database, deleteSent, this.stopping.signal, (options.collectMs ?? 0) / 4);
    this.encoding = {
      encode: options.encode ?? refuseDraft,
      partitionOf: options.partitionOf ?? refuseNegativeLane,
      topicName: options.topicName ?? ((topic) => topic),
    };
  }

  /** Lane groups (lane modulo 16) that this instance relays now. */
  get groups(): number[] {
    return this.ownership.groups();
  }

  /** Connects and starts the loop. Waits for the database. */
  async start(): Promise<void> {
    await this.connect();
    this.loop ??= this.run();
  }

  /** Ends after the batches that are out; gives the lanes to the others at once. */
  stop(): Promise<void> {
    return (this.stopped ??= this.stopOnce());
  }

  private async stopOnce(): Promise<void> {
    const patience = new AbortController();
    const idle = Promise.all(this.busy.values());
    this.stopping.abort();
    this.wake();
    await Promise.race([idle, pause(5_000, patience.signal)]);
    patience.abort();
    await this.client.close();
    await this.loop;
  }

  /** There may be new rows: call it after a write of this process. */
  wake(): void {
    this.roused = true;
    this.rouse();
  }

  /** One pass over all owned lanes, to its end. Answers how many rows were relayed. */
  async relayOnce(): Promise<number> {
    await this.connect();
    if (this.balanced === -Infinity) await this.balanceOnce();
    const { rows, lanes } = await this.startLanes();
    await Promise.all(lanes);
    return rows;
  }

  /** One step towards this instance's fair share of the lanes. */
  async balanceOnce(): Promise<void> {
    this.balanced = performance.now();
    const inUse = new Set([...this.busy.keys()].map(groupOf));
    await this.ownership.balanceOnce((group) => inUse.has(group));
  }

  private async connect(): Promise<void> {
    await this.client.connect();
    if (this.listening) return;
    this.listening = true;
    await this.client.listen(`${this.options.schema}_outbox`, () => this.wake());
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        if (performance.now() - this.balanced > BALANCE_EVERY_MS) await this.balanceOnce();
        this.roused = false;
        const started = performance.now();
        const { rows, lanes } = await this.startLanes();
        if (lanes.length > 0) this.lastActive = performance.now();
        await this.waitForWork(lanes.length > 0);
        const left = (this.options.collectMs ?? 0) - (performance.now() - started);
        // A full pass leaves more behind: nothing is gained by waiting.
        if (left > 0 && rows < (this.options.batch ?? 500)) await pause(left, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.log.warn('relaying failed; tried again in a moment, nothing is lost', { error });
        await pause(500, signal);
      }
    }
  }

  /** Until a lane is free again while there is work, else until somebody calls or the poll is due. */
  private async waitForWork(started: boolean): Promise<void> {
    if (this.roused) return;
    const poll = performance.now() - this.lastActive < 1_000 ? ACTIVE_POLL_MS : IDLE_POLL_MS;
    const over = new AbortController();
    const called = new Promise<void>((resolve) => (this.rouse = resolve));
    const freed = started ? [...this.busy.values()] : [];
    await Promise.race([called, pause(poll, over.signal), ...freed]);
    over.abort();
  }

  private async startLanes(): Promise<{ rows: number; lanes: Promise<void>[] }> {
    const groups = this.ownership.groups();
    if (groups.length === 0 || this.stopping.signal.aborted) return { rows: 0, lanes: [] };
    const rows = await this.options.database.rows<OutboxRow>(this.statements.select, [
      groups,
      LANE_GROUPS,
      [...this.busy.keys()],
      this.options.batch ?? 500,
      [...this.skipped],
    ]);
    const byLane = new Map<number, OutboxRow[]>();
    for (const row of rows) {
      const lane = byLane.get(row.lane);
      if (lane) lane.push(row);
      else byLane.set(row.lane, [row]);
    }
    const lanes = [...byLane].map(([lane, laneRows]) => {
      const work = this.relayLane(lane, laneRows).finally(() => this.busy.delete(lane));
      this.busy.set(lane, work);
      return work;
    });
    return { rows: rows.length, lanes };
  }

  private async relayLane(lane: number, rows: OutboxRow[]): Promise<void> {
    const started = performance.now();
    const { schema } = this.options;
    try {
      const { batches, poison } = encodeRows(rows, this.encoding);
      if (poison.length > 0) await this.park(lane, poison);
      // The lane may have been lost while its rows were read and encoded.
      if (!this.ownership.owns(groupOf(lane)) || this.stopping.signal.aborted) return;
      const outcomes = await Promise.allSettled(
        batches.map(async ({ topic, partition, records, ids }) => {
          await this.options.producer.send(topic, partition, records);
          await this.sent.delete(ids);
          relayedRows.add(ids.length, { schema, topic });
        }),
      );
      const failed = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failed) throw failed.reason;
      relaySeconds.record((performance.now() - started) / 1000, { schema });
    } catch (error) {
      if (this.stopping.signal.aborted) return;
      this.log.warn('a lane could not be relayed; it is tried again, in order, in a moment', { lane, count: rows.length, error });
      await pause(500, this.stopping.signal);
    }
  }

  private async park(lane: number, poison: { id: string; reason: string }[]): Promise<void> {
    const ids = poison.map(({ id }) => id);
    const { schema } = this.options;
    try {
      await this.options.database.rows(this.statements.park, [ids, poison.map(({ reason }) => reason)]);
      this.log.error('outbox rows can not be sent; they were moved to outbox_parked, the others go on', {
        lane,
        count: ids.length,
        hint: poison[0]!.reason,
      });
    } catch (error) {
      if (isRetriable(error)) throw error;
      // They must not hold up the lane even so; they stay where they are and are tried again after the next start.
      for (const id of ids) this.skipped.add(id);
      this.log.error('outbox rows can not be sent and not be parked either; they are skipped until the next start', {
        lane,
        count: ids.length,
        error,
      });
    }
    parkedRows.add(ids.length, { schema });
  }
}

function refuseDraft(topic: string): never {
  throw new Error(`a draft for ${topic}, but this relay was given no encoder`);
}

function refuseNegativeLane(topic: string): never {
  throw new Error(`a negative lane for ${topic}, but this relay was not told how to compute partitions`);
}
