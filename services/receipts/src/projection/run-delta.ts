import type { MessageStatus } from '#contracts/words';
import { runOf, uuidText } from '#contracts/ids';
import type { RunCount } from '../status/run-outcome';
import type { RunEvent, ScheduleEvent } from './items';
import type { Change } from './message-rows';
import type { RunOwner } from './run-rows';

/** What one batch changes in one run. */
export interface RunDelta {
  runId: Buffer;
  /** Null where only something about the schedule came, which creates no run. */
  owner: RunOwner | null;
  counts: CountDelta;
  /** Positions that got their first fact of their own. */
  answered: number[];
  firstCalledAt: number | null;
  lastCalledAt: number | null;
  events: RunEvent[];
  scheduleEvents: ScheduleEvent[];
}

/** Differences by status and reason. */
export class CountDelta {
  private readonly byName = new Map<string, RunCount>();

  add(status: MessageStatus, reason: string | null, count: number): void {
    const name = `${status}/${reason ?? ''}`;
    const known = this.byName.get(name);
    if (known) known.count += count;
    else this.byName.set(name, { status, reason, count });
  }

  /** The counts that change, as they are afterwards. */
  applyTo(counts: RunCount[]): RunCount[] {
    return [...this.byName.values()]
      .filter(({ count }) => count !== 0)
      .map(({ status, reason, count }) => {
        const known = counts.find((one) => one.status === status && one.reason === reason);
        return { status, reason, count: (known?.count ?? 0) + count };
      });
  }
}

export class RunDeltas {
  readonly byRun = new Map<string, RunDelta>();

  /** From the row's own before and after, so that a fact that was known already counts nothing. */
  addChange({ occurrenceId, owner, before, after }: Change): void {
    if (after.facts.own === null) return;
    const delta = this.of(runOf(occurrenceId));
    if (owner) delta.owner ??= { runId: delta.runId, ...owner };
    const counted = before !== null && before.facts.own !== null;
    if (counted) delta.counts.add(before.status.status, before.status.reason, -1);
    else delta.answered.push(after.facts.own.position);
    delta.counts.add(after.status.status, after.status.reason, 1);
    const { submitted } = after.facts;
    if (submitted && submitted !== before?.facts.submitted) {
      delta.firstCalledAt = Math.min(delta.firstCalledAt ?? submitted.calledAt, submitted.calledAt);
      delta.lastCalledAt = Math.max(delta.lastCalledAt ?? submitted.calledAt, submitted.calledAt);
    }
  }

  addRunEvent(told: RunEvent): void {
    const { runId, scheduleId } = told.event;
    const delta = this.of(runId);
    // RunReleased does not name the tenant; a run is planned, and so known, before it is released.
    if ('tenantId' in told.event)
      delta.owner ??= { runId, scheduleId: uuidText(scheduleId), tenantId: uuidText(told.event.tenantId) };
    delta.events.push(told);
  }

  addScheduleEvent(runId: Buffer, told: ScheduleEvent): void {
    this.of(runId).scheduleEvents.push(told);
  }

  private of(runId: Buffer): RunDelta {
    const name = runId.toString('hex');
    let delta = this.byRun.get(name);
    if (!delta) {
      delta = {
        runId,
        owner: null,
        counts: new CountDelta(),
        answered: [],
        firstCalledAt: null,
        lastCalledAt: null,
        events: [],
        scheduleEvents: [],
      };
      this.byRun.set(name, delta);
    }
    return delta;
  }
}
