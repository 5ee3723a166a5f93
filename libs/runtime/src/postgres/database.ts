import type { Pool, PoolClient, QueryResultRow } from 'pg';

/** A named prepared statement; the name is unique for its text. */
export interface Statement {
  name: string;
  text: string;
}

export interface Queryable {
  rows<R extends QueryResultRow>(statement: Statement, values?: unknown[]): Promise<R[]>;
}

export interface Database extends Queryable {
  readonly pool: Pool;
  /** READ COMMITTED; for batches only: begin and commit are round trips of their own. Retries 40P01 and 53200 with jitter, up to 5 times. */
  transaction<T>(work: (transaction: Queryable & { client: PoolClient }) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}
