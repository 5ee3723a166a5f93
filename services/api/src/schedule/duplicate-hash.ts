import { createHash } from 'node:crypto';
import type { ScheduleDefinition } from './definition';

const NOW_WINDOW_MS = 60_000;

/**
 * Two campaigns are the same one when number, content, recipients with their parameters, and instant are. One recipient is no
 * campaign: two equal messages to a person may well be meant. For `now` the instant is the minute, or a double click would pass.
 */
export function duplicateHash(definition: ScheduleDefinition, setHash: Uint8Array, allowDuplicate: boolean): Buffer | null {
  if (allowDuplicate || definition.audience.accepted < 2) return null;
  const { slot } = definition;
  const instant = slot.rule === 'now' ? `now ${Math.floor(slot.dueAtMs / NOW_WINDOW_MS)}` : String(slot.dueAtMs);
  return createHash('sha256')
    .update(JSON.stringify([definition.number.id, instant, sorted(definition.content)]))
    .update(setHash)
    .digest();
}

/** Member order says nothing in JSON. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)]);
}
