import { formatId, uuidBytes } from '#contracts/ids';

/** How the messages of a run stood right after a cancel or a pause; the five parts add up to the total. */
export interface CommandCounts {
  version: number;
  atMs: number;
  total: number;
  /** Of a pause: held. */
  prevented: number;
  inFlight: number;
  submitted: number;
  uncertain: number;
  ended: number;
}

export type ReceiptOutcome = 'all_prevented' | 'partly_prevented' | 'nothing_prevented';

export function outcomeOf(counts: Pick<CommandCounts, 'total' | 'prevented'>): ReceiptOutcome {
  if (counts.prevented === 0) return 'nothing_prevented';
  return counts.prevented === counts.total ? 'all_prevented' : 'partly_prevented';
}

export function commandReceipt(kind: 'cancel' | 'pause', scheduleId: string, counts: CommandCounts): Record<string, unknown> {
  const { total, prevented, inFlight, submitted, uncertain, ended } = counts;
  return {
    scheduleId: formatId('sch', uuidBytes(scheduleId)),
    scope: { slots: ['once'], future: true },
    outcome: outcomeOf(counts),
    version: counts.version,
    at: new Date(counts.atMs).toISOString(),
    total,
    ...(kind === 'cancel' ? { prevented } : { held: prevented }),
    inFlight,
    submitted,
    uncertain,
    ended,
  };
}
