import type { z } from 'zod';
import { jsonPointer } from './json-pointer';
import type { Fault } from './problem-table';

type Issue = z.core.$ZodIssue;

/** Where the faulty thing was given. */
export type Place = 'body' | 'query' | 'path';

/** Members whose values are personal or secret, wherever they stand. */
const HIDDEN_MEMBERS = new Set([
  'to',
  'phone',
  'parameters',
  'credentials',
  'accessToken',
  'webhook',
  'appSecret',
  'verifyToken',
  'text',
]);

export interface ReadFaults {
  /** Unknown members make a request unreadable (400), everything else makes it invalid (422). */
  unknown: boolean;
  faults: Fault[];
}

/** All faults of a parse at once, in the order of the schema. */
export function faultsFromZod(error: z.ZodError, input: unknown, place: Place): ReadFaults {
  const issues = error.issues.flatMap((issue) => flatten(issue as Issue, []));
  return {
    unknown: issues.some((issue) => issue.code === 'unrecognized_keys'),
    faults: issues.flatMap((issue) => faultsOf(issue, input, place)),
  };
}

/** The branch of a union that was most likely meant: the one whose members are all known, then the one with fewest faults. */
function flatten(issue: Issue, above: PropertyKey[]): Issue[] {
  const path = [...above, ...issue.path];
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [{ ...issue, path } as Issue];
  const branches = issue.errors.map((branch) => branch.flatMap((inner) => flatten(inner as Issue, path)));
  const distance = (branch: Issue[]) =>
    branch.reduce((sum, inner) => {
      const depth = inner.path.length - path.length;
      if (inner.code === 'unrecognized_keys') return sum + (depth === 0 ? 100 : 10) * inner.keys.length;
      return sum + (depth === 0 && inner.code === 'invalid_type' ? 1_000 : 1);
    }, 0);
  return branches.reduce((best, branch) => (distance(branch) < distance(best) ? branch : best));
}

function faultsOf(issue: Issue, input: unknown, place: Place): Fault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      ...placeOf([...issue.path, key], place),
      code: 'unknown_member',
      detail: 'there is no such member here',
    }));
  }
  const given = valueAt(input, issue.path);
  const fault: Fault = { ...placeOf(issue.path, place), ...meaning(issue, given) };
  if (given !== undefined && !isHidden(issue.path) && (typeof given !== 'object' || given === null)) {
    fault.given = typeof given === 'string' && given.length > 100 ? `${given.slice(0, 100)}…` : given;
  }
  return [fault];
}

function meaning(issue: Issue, given: unknown): Pick<Fault, 'code' | 'detail' | 'allowed'> {
  switch (issue.code) {
    case 'invalid_type':
      return given === undefined
        ? { code: 'required', detail: 'this member is required', allowed: issue.expected }
        : { code: 'type_invalid', detail: `must be ${issue.expected}`, allowed: issue.expected };
    case 'invalid_value':
      return given === undefined
        ? { code: 'required', detail: 'this member is required', allowed: issue.values }
        : { code: 'value_invalid', detail: 'not one of the allowed values', allowed: issue.values };
    case 'too_big':
      return {
        code: sized(issue.origin) ? 'too_long' : 'out_of_range',
        detail: issue.message,
        allowed: { maximum: Number(issue.maximum) },
      };
    case 'too_small':
      return {
        code: sized(issue.origin) ? 'too_short' : 'out_of_range',
        detail: issue.message,
        allowed: { minimum: Number(issue.minimum) },
      };
    case 'invalid_format':
    case 'not_multiple_of':
    case 'invalid_key':
    case 'invalid_element':
      return { code: 'format_invalid', detail: issue.message };
    case 'custom':
      return { code: (issue.params?.code as string | undefined) ?? 'value_invalid', detail: issue.message };
    case 'invalid_union':
    case 'unrecognized_keys':
      return { code: 'value_invalid', detail: issue.message };
    default:
      return issue satisfies never;
  }
}

function sized(origin: string): boolean {
  return origin === 'string' || origin === 'array' || origin === 'set' || origin === 'map';
}

export function placeOf(path: PropertyKey[], place: Place): Pick<Fault, 'pointer' | 'parameter'> {
  return place === 'body' ? { pointer: jsonPointer(path) } : { parameter: path.map(String).join('.') };
}

function valueAt(input: unknown, path: PropertyKey[]): unknown {
  let value = input;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return value;
}

function isHidden(path: PropertyKey[]): boolean {
  return path.some((step) => typeof step === 'string' && HIDDEN_MEMBERS.has(step));
}
