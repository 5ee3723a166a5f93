import type { Pool } from 'pg';
import { DatabaseUnavailableError } from '#runtime/postgres/failures';
import type { Database } from '#runtime/postgres/database';

/** A database that is not open yet: the server already answers (503), while PostgreSQL or its schema is waited for. */
export class LateDatabase implements Database {
  private opened: Database | undefined;
  private away = false;

  open(database: Database): void {
    this.opened = database;
  }

  get pool(): Pool {
    return this.use().pool;
  }

  // Async, so that being closed is a rejection like any other outage.
  rows: Database['rows'] = async (statement, values) => this.watch(() => this.use().rows(statement, values));

  transaction: Database['transaction'] = async (work) => this.watch(() => this.use().transaction(work));

  /** By the last statement, whoever made it; the relay makes several a second. */
  notReady(): string | undefined {
    return this.away ? 'PostgreSQL does not answer' : undefined;
  }

  async close(): Promise<void> {
    const database = this.opened;
    this.opened = undefined;
    await database?.close();
  }

  private async watch<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.away = false;
      return result;
    } catch (error) {
      this.away = error instanceof DatabaseUnavailableError;
      throw error;
    }
  }

  private use(): Database {
    if (!this.opened) throw new DatabaseUnavailableError(new Error('PostgreSQL or its schema is still waited for'));
    return this.opened;
  }
}
