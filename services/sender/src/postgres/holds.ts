import type { Database } from '#runtime/postgres/database';
import { sqlFile } from '#runtime/postgres/sql-file';
import type { GatePort, NumberState, SuppressionEntry } from './gate-port';

const HOLD_NUMBER = sqlFile(__dirname, 'hold-number.sql');
const END_NUMBER_HOLD = sqlFile(__dirname, 'end-number-hold.sql');
const SET_LEARNED_RATE = sqlFile(__dirname, 'set-learned-rate.sql');
const READ_NUMBERS = sqlFile(__dirname, 'read-numbers.sql');
const HOLD_TEMPLATE = sqlFile(__dirname, 'hold-template.sql');
const END_TEMPLATE_HOLD = sqlFile(__dirname, 'end-template-hold.sql');
const ADD_SUPPRESSIONS = sqlFile(__dirname, 'add-suppressions.sql');

/** What keeps messages from being sent beside their own schedule: holds of numbers and templates, suppressed recipients. */
export class Holds implements Pick<
  GatePort,
  'holdNumber' | 'endNumberHold' | 'setLearnedRate' | 'readNumbers' | 'holdTemplate' | 'endTemplateHold' | 'addSuppressions'
> {
  constructor(protected readonly database: Database) {}

  async holdNumber({ numberId, reason, until, detail }: Parameters<GatePort['holdNumber']>[0]): Promise<void> {
    await this.database.rows(HOLD_NUMBER, [numberId, reason, until, detail]);
  }

  async endNumberHold(numberId: string): Promise<void> {
    await this.database.rows(END_NUMBER_HOLD, [numberId]);
  }

  async setLearnedRate(numberId: string, ratePerSecond: number | null): Promise<void> {
    await this.database.rows(SET_LEARNED_RATE, [numberId, ratePerSecond]);
  }

  async readNumbers(numberIds: readonly string[]): Promise<NumberState[]> {
    if (numberIds.length === 0) return [];
    const rows = await this.database.rows<{
      number_id: string;
      learned_rate: number | null;
      hold_reason: NumberState['holdReason'];
      hold_detail: string | null;
      hold_since: number | null;
      hold_until: number | null;
    }>(READ_NUMBERS, [numberIds]);
    return rows.map((row) => ({
      numberId: row.number_id,
      learnedRate: row.learned_rate,
      holdReason: row.hold_reason,
      holdSince: row.hold_since,
      holdUntil: row.hold_until,
      holdDetail: row.hold_detail,
    }));
  }

  async holdTemplate({ templateKey, until, detail }: Parameters<GatePort['holdTemplate']>[0]): Promise<void> {
    await this.database.rows(HOLD_TEMPLATE, [templateKey, until, detail]);
  }

  async endTemplateHold(templateKey: string): Promise<void> {
    await this.database.rows(END_TEMPLATE_HOLD, [templateKey]);
  }

  async addSuppressions(entries: readonly SuppressionEntry[]): Promise<void> {
    if (entries.length === 0) return;
    await this.database.rows(ADD_SUPPRESSIONS, [
      entries.map((entry) => entry.tenantId),
      entries.map((entry) => entry.channel),
      entries.map((entry) => entry.category),
      entries.map((entry) => entry.recipientHash),
      entries.map((entry) => entry.reason),
    ]);
  }
}
