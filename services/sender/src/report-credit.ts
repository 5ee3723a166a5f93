import type { Clock } from '#runtime/clock';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { CreditReport, laneCredit } from './lane/credit';
import type { Lanes } from './lane/lanes';
import type { NumberDirectory } from './numbers/number-directory';
import type { HostCircuit } from './outcome/host-circuit';

const REPORT_CREDIT = sqlFile(__dirname, 'report-credit.sql');

/** The scheduler forgets what is older than 5 s. */
const REFRESH_MS = 2_000;

export interface ReportCreditOptions {
  database: Database;
  clock: Clock;
  lanes: Lanes;
  numbers: NumberDirectory;
  circuits: Readonly<Record<'test' | 'live', HostCircuit>>;
  instance: string;
  windowMs: number;
  /** False while nothing may be claimed (results can't be recorded, the process drains): then no lane takes anything. */
  accepting(): boolean;
}

/** Tells the scheduler how many more records each lane takes. */
export class ReportCredit {
  private readonly report = new CreditReport();
  private refreshedAt = Number.NEGATIVE_INFINITY;
  private given = false;

  constructor(private readonly options: ReportCreditOptions) {}

  received(numberId: string): void {
    this.report.received(numberId);
  }

  /** One report of what has changed; of everything when two seconds have passed. Answers how many numbers it told of. */
  async reportOnce(): Promise<number> {
    if (this.given) return 0;
    const now = this.options.clock.monotonicMs();
    const refresh = now - this.refreshedAt >= REFRESH_MS;
    return this.tell(this.levels(now), refresh, now);
  }

  /** Nothing any more, for any number: the process gives its lanes up. */
  async giveUp(): Promise<void> {
    this.given = true;
    await this.tell(new Map(), false, this.options.clock.monotonicMs());
  }

  private async tell(levels: Map<string, number>, refresh: boolean, now: number): Promise<number> {
    const due = this.report.due(levels, refresh);
    if (due.size === 0) return 0;
    await this.options.database.rows(REPORT_CREDIT, [this.options.instance, [...due.keys()], [...due.values()]]);
    this.report.reported(due, levels);
    if (refresh) this.refreshedAt = now;
    return due.size;
  }

  private levels(now: number): Map<string, number> {
    const { lanes, numbers, circuits, windowMs } = this.options;
    const accepting = this.options.accepting();
    const levels = new Map<string, number>();
    for (const lane of lanes.owned()) {
      const number = numbers.get(lane.numberId);
      if (!number) continue;
      const blocked = !accepting || lane.block !== null || circuits[number.mode].isOpen(now);
      levels.set(lane.numberId, laneCredit({ ratePerSecond: lane.pace.rate.at(now), queued: lane.queued, blocked }, windowMs));
    }
    return levels;
  }
}
