import { Client } from 'pg';
import { pause } from '#runtime/pause';
import { isConnectionLoss } from '#runtime/postgres/failures';

/** A migration job often starts before its database: waits until it answers, `deadlineMs` at most, and says so once. */
export async function waitForDatabase(
  url: string,
  { log, deadlineMs = 300_000 }: { log: (line: string) => void; deadlineMs?: number },
): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (let attempt = 1; ; attempt++) {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('SELECT 1');
      return;
    } catch (error) {
      if (!isConnectionLoss(error) || performance.now() > end) throw error;
      if (attempt === 1) log('PostgreSQL does not answer yet; waiting for it.');
      await pause(500);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
