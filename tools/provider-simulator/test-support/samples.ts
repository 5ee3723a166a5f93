import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A recorded shape of the real API from ../samples. */
export function sample<T = { http_status: number; headers: Record<string, string>; body: unknown }>(name: string): T {
  return JSON.parse(readFileSync(join(__dirname, '..', 'samples', `${name}.json`), 'utf8')) as T;
}

/** Member names and types of a JSON value, without its values. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}
