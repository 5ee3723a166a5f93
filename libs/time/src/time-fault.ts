/** What can be wrong with a time that somebody asked for. */
export type TimeFaultCode =
  | 'time_unparseable'
  | 'time_zone_required'
  | 'time_zone_unknown'
  | 'offset_contradicts_zone'
  | 'local_time_does_not_exist'
  | 'fold_both_needs_repeat'
  | 'rule_without_local_time'
  | 'time_in_past'
  | 'duration_invalid'
  | 'validity_invalid';

/** A refusal that names the member at fault, so that the caller can point at it. */
export interface TimeFault {
  /** Path below the object that was resolved: `['timeZone']`. */
  member: string[];
  code: TimeFaultCode;
  detail: string;
  hint?: string;
  allowed?: string;
}
