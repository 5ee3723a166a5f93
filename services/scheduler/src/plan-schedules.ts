import type { Codec } from '#contracts/codec';
import { counter } from '#runtime/metrics';
import type { InBatch } from '#runtime/kafka/port';
import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import { foldChanges, type Changes } from './planning/fold-changes';
import type { PlannedRun } from './planning/plan-runs';
import { toDraft } from './kafka/outbox-drafts';
import { METRICS } from './metric-names';

const APPLY = sqlFile(__dirname, 'postgres/apply-changes.sql');
const ENSURE_PARTITIONS = sqlFile(__dirname, 'postgres/ensure-due-partitions.sql');
const DAY_MS = 86_400_000;
/** Days whose partitions are known to be there; forgotten altogether now and then instead of one by one. */
const MOST_KNOWN_DAYS = 4_000;

const plannedRuns = counter(METRICS.planned, 'Runs planned or planned anew');
const endedRuns = counter(METRICS.ended, 'Runs that ended before everybody was handed over');

export interface PlanOutcome {
  planned: number;
  ended: number;
  /** Time until the earliest of what was planned, by PostgreSQL's clock; null if nothing was. */
  nextDueInMs: number | null;
}

export interface PlanSettings {
  checkAfterMs: number;
}

/** Puts batches of punctual.schedules into the due index. A batch that comes again changes nothing. */
export class PlanSchedules {
  private readonly knownDays = new Set<number>();

  constructor(
    private readonly database: Database,
    private readonly codec: Codec,
    private readonly settings: PlanSettings,
    /** Told when something changed, and how soon the earliest of a batch is due. */
    private readonly onChange: (nextDueInMs: number | null) => void = () => undefined,
  ) {}

  async planBatch(batch: Pick<InBatch, 'records'>): Promise<PlanOutcome> {
    const outcome = await this.apply(foldChanges(batch.records.map(({ value }) => this.codec.decode(value))));
    if (outcome.planned + outcome.ended > 0 || outcome.nextDueInMs !== null) this.onChange(outcome.nextDueInMs);
    return outcome;
  }

  async apply({ plans, cancelled, resumed }: Changes): Promise<PlanOutcome> {
    if (plans.length + cancelled.length + resumed.length === 0) return { planned: 0, ended: 0, nextDueInMs: null };
    await this.ensurePartitions(plans);
    const [row] = await this.database.rows<{ planned: number; ended: number; next_due_ms: number | null; now_ms: number }>(
      APPLY,
      [
        JSON.stringify(plans.map(toRow)),
        cancelled.map(({ scheduleId }) => scheduleId),
        cancelled.map(({ version }) => version),
        resumed,
        this.settings.checkAfterMs,
      ],
    );
    const { planned, ended, next_due_ms: nextDue, now_ms: now } = row!;
    plannedRuns.add(planned);
    endedRuns.add(ended, { reason: 'cancelled' });
    return { planned, ended, nextDueInMs: nextDue === null ? null : Math.max(0, nextDue - now) };
  }

  private async ensurePartitions(plans: PlannedRun[]): Promise<void> {
    const missing = [...new Set(plans.map(({ dueAt }) => Math.floor(dueAt / DAY_MS)))].filter((day) => !this.knownDays.has(day));
    if (missing.length === 0) return;
    await this.database.rows(ENSURE_PARTITIONS, [missing.map((day) => new Date(day * DAY_MS).toISOString().slice(0, 10))]);
    if (this.knownDays.size > MOST_KNOWN_DAYS) this.knownDays.clear();
    for (const day of missing) this.knownDays.add(day);
  }
}

function toRow({ event, ...run }: PlannedRun): Record<string, unknown> {
  return { ...run, draft: toDraft('RunPlanned', event) };
}
