import fc from 'fast-check';
import { DatabaseUnavailableError } from './postgres/failures';
import { PunctualError } from './errors';
import { openLog, type LogFields } from './log';
import { scrub } from './scrub';

function lines(use: (log: ReturnType<typeof openLog>) => void): string {
  let text = '';
  use(openLog({ service: 'test', level: 'debug', fields: { schedule: 'id', note: 'text' }, write: (line) => (text += line) }));
  return text;
}

const phone = fc
  .tuple(
    fc.constantFrom('+', '00', ''),
    fc.bigInt({ min: 1_000_000n, max: 999_999_999_999_999n }),
    fc.constantFrom('', ' ', '-', '.', ' - ', ')'),
    fc.integer({ min: 2, max: 5 }),
  )
  .map(([prefix, digits, separator, every]) => ({
    digits: String(digits),
    written: prefix + String(digits).replace(new RegExp(`(\\d{${every}})(?=\\d)`, 'g'), `$1${separator}`),
  }))
  // Four groups of up to three digits with dots are an address, not a number.
  .filter(({ written }) => !/^\d{1,3}(\.\d{1,3}){3}$/.test(written));

/** At most five digits of a number in a row, with whatever stands between them. */
const leaks = (text: string, { digits }: { digits: string }) => text.replace(/\D/g, '').includes(digits);

describe('the log', () => {
  it('writes one line with level, time, service, message and listed fields', () => {
    const line = JSON.parse(
      lines((log) =>
        log.info('released', {
          topic: 'punctual.executions',
          count: 3,
          schedule: '0192f0c1-2a3b-7c4d-8e5f-001122334455',
          durationMs: 1.23456,
        }),
      ),
    );
    expect(line).toMatchObject({
      level: 'info',
      service: 'test',
      message: 'released',
      topic: 'punctual.executions',
      count: 3,
      durationMs: 1.235,
      schedule: '0192f0c1-2a3b-7c4d-8e5f-001122334455',
    });
    expect(Date.parse(line.time)).not.toBeNaN();
  });

  it('drops fields that nobody listed and keeps their names', () => {
    const line = lines((log) =>
      log.info('sent', { body: 'Dear Anna', recipient: { phone: '+4915112345678' }, '+4915112345678': 1 }),
    );
    expect(line).not.toMatch(/Anna|15112345678/);
    expect(JSON.parse(line).droppedFields).toEqual(['body', 'recipient', '[unnamed]']);
  });

  it('shows no phone number, wherever it was put', () => {
    fc.assert(
      fc.property(
        phone,
        fc.constantFrom('topic', 'reason', 'schedule', 'note', 'hint', 'at', 'unlisted', 'code', 'retriable', 'requestId'),
        (number, field) => {
          const { written } = number;
          const nested: LogFields = {
            [field]: written,
            error: new Error(`no route to ${written}`, { cause: new PunctualError('x', written, { cause: { written } }) }),
          };
          const pgError = Object.assign(new Error(`Key (recipient)=(${written}) already exists.`), {
            code: '23505',
            severity: 'ERROR',
            detail: `Key (recipient)=(${written})`,
            where: written,
            constraint: written,
            table: written,
          });
          const text = lines((log) => {
            log.warn(`calling ${written} failed`, nested);
            log.with({ [field]: written }).error('again', { error: pgError, note: `to:${written};` });
            log.info('thrown', { error: { phone: written } });
            log.info('wrapped', { error: new DatabaseUnavailableError(pgError) });
          });
          // Time, pid and line numbers are digits too.
          const own = text.replace(/"time":"[^"]*"/g, '').replace(/"stack":"[^"]*"/g, '');
          expect(leaks(own, number)).toBe(false);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('would notice a leak: the same number in a number field is the caller’s own word', () => {
    expect(
      leaks(
        lines((log) => log.info('x', { count: 4915112345678 })),
        { digits: '4915112345678' },
      ),
    ).toBe(true);
  });

  it('shows no text that an error quotes from its input', () => {
    const text = lines((log) => {
      try {
        JSON.parse('Dear Anna, your code');
      } catch (error) {
        log.error('unreadable', { error });
      }
      log.error('bad', {
        error: Object.assign(new Error('invalid input syntax for type uuid: "Dear Anna"'), { code: '22P02', severity: 'ERROR' }),
      });
    });
    expect(text).not.toContain('Anna');
    expect(text).toContain('22P02');
  });

  it('keeps what operators need of an error: type, code, retriable, frames, constraint, causes', () => {
    const cause = Object.assign(new Error('duplicate key value violates unique constraint "claim_pkey"'), {
      code: '23505',
      severity: 'ERROR',
      constraint: 'claim_pkey',
      table: 'claim',
    });
    const { error } = JSON.parse(
      lines((log) =>
        log.error('failed', { error: new PunctualError('claim_lost', 'another has it', { retriable: true, cause }) }),
      ),
    );
    expect(error).toMatchObject({
      type: 'PunctualError',
      code: 'claim_lost',
      retriable: true,
      message: 'another has it',
      cause: { code: '23505', constraint: 'claim_pkey', table: 'claim' },
    });
    expect(error.stack).toContain('log.unit.test.ts');
  });
});

describe('scrub', () => {
  it('masks tokens and credentials, and keeps addresses and ids', () => {
    expect(scrub('connect ECONNREFUSED 192.168.100.200:5432')).toBe('connect ECONNREFUSED 192.168.100.200:5432');
    expect(scrub('postgres://punctual_api:pa55@db:5432/x')).toBe('postgres://[credentials]@db:5432/x');
    expect(scrub('Authorization: Bearer EAAGm0PX4ZCpsBAKZC')).toBe('Authorization: [token]');
    expect(scrub('token EAAGm0PX4ZCpsBAKZCZCZCZCZCZC99')).toBe('token [token]');
    expect(scrub('schedule 0192f0c1-2a3b-7c4d-8e5f-001122334455 is gone')).toBe(
      'schedule 0192f0c1-2a3b-7c4d-8e5f-001122334455 is gone',
    );
    expect(scrub('code 123456 for (415) 555-2671')).toBe('code [digits] for [digits]');
  });
});
