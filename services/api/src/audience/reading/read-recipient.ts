import type { ValidRecipient } from '../chunks/recipient-chunks';
import { maskNumber, normaliseNumber, type NumberDeclaration, type NumberFault } from '../numbers/normalise-number';

export type RecipientFault =
  | NumberFault
  | 'columns_mismatch'
  | 'row_unreadable'
  | 'ref_missing'
  | 'ref_too_long'
  | 'parameter_too_long'
  | 'time_zone_unknown';

/** What each fault says to the person who made the list. */
export const RECIPIENT_FAULTS: Record<RecipientFault, string> = {
  number_missing: 'There is no number.',
  number_invalid: 'This is no valid phone number.',
  number_needs_country:
    'The number has no plus. Say how such numbers are meant: digits=international or defaultCountry=<country>.',
  number_too_short: 'The number is too short for any country.',
  number_too_long: 'The number has more than 15 digits.',
  number_not_reachable: 'Premium-rate and shared-cost numbers get no messages.',
  columns_mismatch: 'The row has not as many fields as the header.',
  row_unreadable: 'The row can not be read: look for a quote that is not closed or not doubled.',
  ref_missing: 'distinctBy is ref, and this recipient has none.',
  ref_too_long: 'A ref has at most 128 characters.',
  parameter_too_long: 'A parameter has at most 1,024 characters.',
  time_zone_unknown: 'The time zone is no IANA zone name.',
};

export interface ReadingRules extends NumberDeclaration {
  distinctBy: 'number' | 'ref';
  idKey: Uint8Array;
}

export interface RawRecipient {
  to: string;
  ref: string | null;
  timeZone: string | null;
  /** In the order of the audience's columns; null where there is none. */
  values: Array<string | null>;
}

export type ReadRecipient =
  | {
      ok: true;
      recipient: ValidRecipient;
      /** What tells it from others: its number, or `ref:` and its ref. */
      key: string;
      ambiguous: boolean;
    }
  | { ok: false; code: RecipientFault; value: string };

export const MAX_PARAMETER = 1024;
export const MAX_REF = 128;
const knownZones = new Map<string, boolean>();

export function isZone(name: string): boolean {
  let known = knownZones.get(name);
  if (known === undefined) {
    try {
      known = /^[A-Za-z]/.test(name) && Boolean(new Intl.DateTimeFormat('en', { timeZone: name }));
    } catch {
      known = false;
    }
    if (knownZones.size < 5_000) knownZones.set(name, known);
  }
  return known;
}

export interface RejectedValue {
  code: RecipientFault;
  value: string;
}

export function shownValue(code: RecipientFault, value: string): RejectedValue {
  // Cutting may have halved a character of two units, and no database takes the half.
  return { code, value: Buffer.from(maskNumber(value)).toString() };
}

/** A recipient of a request. Uploads go through `BlockReader`, with the same checks and the same bytes as a result. */
export function readRecipient(raw: RawRecipient, rules: ReadingRules): ReadRecipient {
  const fault = (code: RecipientFault, value = raw.to): ReadRecipient => ({ ok: false, ...shownValue(code, value) });
  const number = normaliseNumber(raw.to, rules);
  if (!number.ok) return fault(number.code);
  const ref = raw.ref === '' ? null : raw.ref;
  if (ref !== null && ref.length > MAX_REF) return fault('ref_too_long', ref.slice(0, 40));
  if (rules.distinctBy === 'ref' && ref === null) return fault('ref_missing');
  const timeZone = raw.timeZone === '' ? null : raw.timeZone;
  if (timeZone !== null && !isZone(timeZone)) return fault('time_zone_unknown', timeZone.slice(0, 64));
  for (const value of raw.values)
    if (value !== null && value.length > MAX_PARAMETER) return fault('parameter_too_long', value.slice(0, 40));
  return {
    ok: true,
    recipient: { to: number.e164, ref, timeZone, values: raw.values },
    key: rules.distinctBy === 'ref' ? `ref:${ref}` : number.e164,
    ambiguous: number.ambiguous,
  };
}
