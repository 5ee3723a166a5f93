import type { Pool, PoolClient, QueryResultRow } from 'pg';
import { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { PunctualError } from '../errors';
import { silentLog, type Log } from '../log';
import type { Database, Queryable, Statement } from './database';
import { DatabaseBusyError, DatabaseUnavailableError, isConnectionLoss, isNotPreparedYet, isServerFault } from './failures';
import { gauge } from '../metrics';
import { pause } from '../pause';
import { METRICS } from '../telemetry-names';
import { retrying } from './retrying';

export interface DatabaseOptions {
  url: string;
  /** Shown as application_name: the service and what the pool is for. */
  name: string;
  /** Connections at most; 10 if absent. */
  max?: number;
  /** Connections that are kept however long nothing happens: a new one plans every statement anew; 0 if absent. */
  min?: number;
  /** 10 s if absent. A statement that the server has not answered 5 s after that counts as a lost connection. */
  statementTimeoutMs?: number;
  /** 10 s if absent: an open transaction pins snapshots and holds vacuum back. */
  idleInTransactionTimeoutMs?: number;
  /** No limit if absent. */
  lockTimeoutMs?: number;
  /**
   * Every statement finds its rows by an index, and keeps one plan for all calls. A plan of a batch is otherwise made for the tables
   * as they were when it was made: for one made while a table was empty, each batch reads the whole table until the next analyze.
   */
  keepsIndexPlans?: boolean;
  log?: Log;
  /** Stops waiting for a server that does not answer at start. */
  signal?: AbortSignal;
}

/** The database with TypeORM's data source underneath, for Nest modules that want it. */
export interface PostgresDatabase extends Database {
  readonly dataSource: DataSource;
}

/** Waits until the server answers. Later outages reject the statements of that time with DatabaseUnavailableError; the pool reconnects by itself. */
export async function openDatabase(options: DatabaseOptions): Promise<PostgresDatabase> {
  const log = options.log ?? silentLog;
  for (let attempt = 1; ; attempt++) {
    const dataSource = dataSourceFor(options, log);
    try {
      await dataSource.initialize();
      return new PooledDatabase(dataSource, options.name);
    } catch (error) {
      await (dataSource.driver as PostgresDriver).master?.end?.().catch(() => undefined);
      if (!(isConnectionLoss(error) || isNotPreparedYet(error)) || options.signal?.aborted) throw error;
      // Often enough to be seen, seldom enough not to fill the log while a server is being set up.
      if (attempt === 1 || attempt % 10 === 0)
        log.warn(
          isNotPreparedYet(error)
            ? 'PostgreSQL does not let this role in yet: is the database migrated, and the password in DATABASE_URL right? Trying again every second'
            : 'PostgreSQL does not answer yet; trying again every second',
          { part: options.name, attempt, error },
        );
      await pause(Math.min(1_000, 100 * attempt), options.signal);
    }
  }
}

function dataSourceFor(options: DatabaseOptions, log: Log): DataSource {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  return new DataSource({
    type: 'postgres',
    url: options.url,
    applicationName: options.name.slice(0, 63),
    entities: [],
    logging: false,
    poolErrorHandler: (error: unknown) =>
      log.warn('an idle PostgreSQL connection was lost; the pool opens a new one when needed', { part: options.name, error }),
    extra: {
      max: options.max ?? 10,
      min: options.min ?? 0,
      connectionTimeoutMillis: 10_000,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 5_000,
      statement_timeout: statementTimeoutMs,
      query_timeout: statementTimeoutMs + 5_000,
      idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs ?? 10_000,
      ...(options.lockTimeoutMs === undefined ? {} : { lock_timeout: options.lockTimeoutMs }),
      ...(options.keepsIndexPlans ? { options: '-c enable_seqscan=off -c plan_cache_mode=force_generic_plan' } : {}),
    },
  });
}

class PooledDatabase implements PostgresDatabase {
  readonly pool: Pool;
  private readonly endGauge: () => void;

  constructor(
    readonly dataSource: DataSource,
    name: string,
  ) {
    const pool = (dataSource.driver as PostgresDriver).master as Pool;
    this.pool = pool;
    this.endGauge = gauge(METRICS.poolConnections, 'Connections of a pool, and callers that wait for one', () => [
      { value: pool.totalCount - pool.idleCount, labels: { pool: name, state: 'used' } },
      { value: pool.idleCount, labels: { pool: name, state: 'idle' } },
      { value: pool.waitingCount, labels: { pool: name, state: 'waiting' } },
    ]);
  }

  /** Tries again by itself after a deadlock or a full lock table: the statement was rolled back, so nothing can happen twice. */
  rows<R extends QueryResultRow>(statement: Statement, values?: unknown[]): Promise<R[]> {
    return retrying(() => this.withClient((client) => rowsOn<R>(client, statement, values)));
  }

  transaction<T>(work: (transaction: Queryable & { client: PoolClient }) => Promise<T>): Promise<T> {
    return retrying(() =>
      this.withClient(async (client) => {
        await client.query('BEGIN');
        try {
          const result = await work({ client, rows: (statement, values) => rowsOn(client, statement, values) });
          await client.query('COMMIT');
          return result;
        } catch (error) {
          if (!isConnectionLoss(error)) await client.query('ROLLBACK');
          throw error;
        }
      }),
    );
  }

  async close(): Promise<void> {
    this.endGauge();
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
  }

  /** `pool.query` throws the connection away on every error, a unique violation too; here only a broken one goes. */
  private async withClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    let client: PoolClient | undefined;
    let failure: unknown;
    // Without a listener the death of a connection that is in use ends the process.
    const onError = (error: Error) => (failure = error);
    try {
      client = await this.pool.connect();
      client.on('error', onError);
      return await work(client);
    } catch (error) {
      if (isConnectionLoss(error)) failure = error;
      if (error instanceof PunctualError) throw error;
      if (failure !== undefined) throw new DatabaseUnavailableError(error);
      throw isServerFault(error) ? new DatabaseBusyError(error) : error;
    } finally {
      client?.removeListener('error', onError);
      client?.release(failure !== undefined);
    }
  }
}

async function rowsOn<R extends QueryResultRow>(client: PoolClient, statement: Statement, values?: unknown[]): Promise<R[]> {
  return (await client.query<R>({ name: statement.name, text: statement.text, values: values ?? [] })).rows;
}
