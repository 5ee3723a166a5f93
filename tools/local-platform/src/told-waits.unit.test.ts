import { ToldWaits, waitOf } from './told-waits';

/** Asked every 50 ms, as the services are. */
function hearAll(told: ToldWaits, name: string, heard: Array<[reason: string, forMs: number]>, startMs = 0): string[] {
  const lines: string[] = [];
  let nowMs = startMs;
  for (const [reason, forMs] of heard) {
    for (const end = nowMs + forMs; nowMs < end; nowMs += 50) {
      const line = told.hear(name, reason, nowMs);
      if (line !== undefined) lines.push(line);
    }
  }
  return lines;
}

it('says a wait once when it lasts, and again when it has become another', () => {
  const heard: Array<[string, number]> = [
    ['postgres', 10_000],
    ['kafka', 5_000],
    ['postgres', 5_000],
  ];
  expect(hearAll(new ToldWaits(), 'api', heard)).toEqual([
    'api waits for postgres',
    'api waits for kafka',
    'api waits for postgres',
  ]);
});

it('says nothing of what passes at once, nor again what it only seemed to have left', () => {
  const steps: Array<[string, number]> = ['http', 'postgres', 'kafka', 'outbox', 'consumers'].map((step) => [step, 400]);
  expect(hearAll(new ToldWaits(), 'sender', steps)).toEqual([]);
  const flapping = Array.from({ length: 10 }, (): Array<[string, number]> => [
    ['postgres', 2_500],
    ['its first answer', 50],
  ]).flat();
  expect(hearAll(new ToldWaits(), 'sender', flapping)).toEqual(['sender waits for postgres']);
});

it('tells services apart', () => {
  const told = new ToldWaits();
  expect(hearAll(told, 'api', [['kafka', 3_000]])).toEqual(['api waits for kafka']);
  expect(hearAll(told, 'sender', [['kafka', 3_000]])).toEqual(['sender waits for kafka']);
});

it('reads the reasons of a service, and shows another answer as it is', () => {
  expect(waitOf('{"status":"not_ready","reasons":["starting: kafka"]}')).toBe('kafka');
  expect(waitOf('{"status":"not_ready","reasons":["postgres: PostgreSQL does not answer","draining"]}')).toBe(
    'postgres: PostgreSQL does not answer, draining',
  );
  expect(waitOf('<html>')).toBe('<html>');
});
