import type { Database } from '#runtime/postgres/database';
import { retrying } from '#runtime/postgres/retrying';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { CommandCounts } from '../schedule/command-receipt';
import type { ExistingSchedule } from '../schedule/schedule-state';
import { instant } from './schedules';

const STATEMENTS = {
  cancel: sqlFile(__dirname, 'settle-cancel.sql'),
  pause: sqlFile(__dirname, 'count-pause.sql'),
};

interface Row {
  version: number;
  at: Date;
  total: number;
  prevented: number;
  in_flight: number;
  submitted: number;
  uncertain: number;
  ended: number;
}

/** Counts once and keeps the result: asked again, it answers the same. May run twice, so a lost connection is no reason to fail. */
export async function settle(
  database: Database,
  kind: 'cancel' | 'pause',
  state: ExistingSchedule,
  version: number,
  atMs: number,
): Promise<CommandCounts> {
  const values = [
    state.tenantId,
    state.scheduleId,
    Buffer.from(state.runId, 'hex'),
    state.definition.audience.accepted,
    version,
    instant(atMs),
  ];
  const [row] = await retrying(() => database.rows<Row>(STATEMENTS[kind], values), {
    states: ['55P03'],
    idempotent: true,
    attempts: 4,
  });
  if (!row) throw new Error(`no receipt was kept for version ${version} of schedule ${state.scheduleId}`);
  return {
    version: row.version,
    atMs: row.at.getTime(),
    total: row.total,
    prevented: row.prevented,
    inFlight: row.in_flight,
    submitted: row.submitted,
    uncertain: row.uncertain,
    ended: row.ended,
  };
}
