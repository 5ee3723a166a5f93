import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Statement } from './database';

const IDENTIFIER = /^[a-z_][a-z0-9_]{0,62}$/;

/**
 * Reads one statement from its file, once, at start: `const CLAIM = sqlFile(__dirname, 'claim-due.sql')`.
 * `{{schema}}` and the like are replaced by identifiers of ours; values always travel as parameters.
 */
export function sqlFile(folder: string, file: string, identifiers: Record<string, string> = {}): Statement {
  const text = readFileSync(join(folder, file), 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const identifier = identifiers[name];
    if (identifier === undefined || !IDENTIFIER.test(identifier))
      throw new Error(`${file}: no usable identifier is given for {{${name}}}`);
    return identifier;
  });
  return statement(basename(file, '.sql'), text);
}

/** A prepared statement's name must never stand for two texts on one connection, and PostgreSQL cuts names at 63 bytes. */
export function statement(name: string, text: string): Statement {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return { name: `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 50)}_${hash}`, text };
}
