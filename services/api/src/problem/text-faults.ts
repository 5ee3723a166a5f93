import { placeOf, type Place } from './faults-from-zod';
import type { Fault } from './problem-table';

const MOST = 100;

/**
 * Texts that can't be kept, wherever they stand, names of members included: PostgreSQL takes no U+0000, and half of a surrogate pair is
 * no character in any encoding. Asked before anything else, so that no schema has to remember it.
 */
export function textFaults(input: unknown, place: Place): Fault[] {
  const faults: Fault[] = [];
  const open: Found[] = [{ value: input, step: '', above: null }];
  while (open.length > 0 && faults.length < MOST) {
    const found = open.pop()!;
    const { value } = found;
    if (typeof value === 'string') {
      if (!isText(value)) faults.push(fault(found, place));
    } else if (typeof value === 'object' && value !== null && !Buffer.isBuffer(value)) {
      for (const [step, member] of Object.entries(value).reverse()) {
        if (isText(step)) open.push({ value: member, step, above: found });
        else faults.push(fault(found, place));
      }
    }
  }
  return faults;
}

/** The way to a value is put together only when it has a fault: copied for each, it would grow with the square of the depth. */
interface Found {
  value: unknown;
  step: string;
  above: Found | null;
}

function pathTo(found: Found): string[] {
  const path: string[] = [];
  for (let at = found; at.above !== null; at = at.above) path.push(at.step);
  return path.reverse();
}

const LONE_SURROGATE = /\p{Surrogate}/u;

function isText(value: string): boolean {
  return !value.includes('\u0000') && !LONE_SURROGATE.test(value);
}

function fault(found: Found, place: Place): Fault {
  return {
    ...placeOf(pathTo(found), place),
    code: 'format_invalid',
    detail: 'holds a character that no text can have',
    allowed: 'Unicode text without U+0000 and without lone surrogates',
  };
}
