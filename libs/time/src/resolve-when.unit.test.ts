import { Temporal } from 'temporal-polyfill';
import { PAST_TOLERANCE_MS, resolveWhen, type WhenAsked } from './resolve-when';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const resolve = (when: WhenAsked, now = NOW) => resolveWhen(when, now);

describe('a local time in a zone', () => {
  it('keeps what was asked for beside what was derived', () => {
    expect(resolve({ at: '2026-12-24T18:00', timeZone: 'Europe/Berlin' })).toEqual({
      ok: true,
      time: {
        timeZone: 'Europe/Berlin',
        local: '2026-12-24T18:00:00',
        resolvedLocal: '2026-12-24T18:00:00+01:00',
        dueAtMs: Date.parse('2026-12-24T17:00:00Z'),
        rule: 'exact',
        note: null,
        tzdb: process.versions.tz,
      },
    });
  });

  // Vectors of both transitions in Berlin, and of zones with unusual ones.
  it.each([
    ['Europe/Berlin', '2027-03-28T02:30:00', {}, '2027-03-28T03:30:00+02:00', 'gap_shift'],
    ['Europe/Berlin', '2026-10-25T02:30:00', {}, '2026-10-25T02:30:00+02:00', 'fold_first'],
    ['Europe/Berlin', '2026-10-25T02:30:00', { fold: 'second' }, '2026-10-25T02:30:00+01:00', 'fold_second'],
    ['Australia/Lord_Howe', '2026-10-04T02:15:00', {}, '2026-10-04T02:45:00+11:00', 'gap_shift'],
    ['Australia/Lord_Howe', '2027-04-04T01:45:00', { fold: 'second' }, '2027-04-04T01:45:00+10:30', 'fold_second'],
    ['America/Nuuk', '2027-03-27T23:30:00', {}, '2027-03-28T00:30:00-01:00', 'gap_shift'],
    ['Asia/Kathmandu', '2026-07-01T09:00:00', {}, '2026-07-01T09:00:00+05:45', 'exact'],
    ['Africa/Cairo', '2027-04-30T00:30:00', {}, '2027-04-30T01:30:00+03:00', 'gap_shift'],
  ] as const)('%s %s %p is %s', (timeZone, at, rules, resolvedLocal, rule) => {
    const answer = resolve({ at, timeZone, ...rules });
    expect(answer).toMatchObject({ ok: true, time: { local: at, resolvedLocal, rule } });
  });

  it('says why a shifted time is not the one that was asked for', () => {
    const answer = resolve({ at: '2027-03-28T02:30:00', timeZone: 'Europe/Berlin' });
    expect(answer.ok && answer.time.note).toBe('02:30 does not exist on this date in Europe/Berlin');
  });

  it('refuses a time that does not exist where skipping was asked for', () => {
    expect(resolve({ at: '2027-03-28T02:30:00', timeZone: 'Europe/Berlin', gap: 'skip' })).toMatchObject({
      ok: false,
      faults: [{ member: ['at'], code: 'local_time_does_not_exist' }],
    });
    expect(resolve({ at: '2027-03-28T03:30:00', timeZone: 'Europe/Berlin', gap: 'skip' }).ok).toBe(true);
  });
});

describe('a time with an offset', () => {
  it('needs no zone, and agrees with the one that is given', () => {
    expect(resolve({ at: '2026-12-24T18:00:00+05:30' })).toMatchObject({
      time: { timeZone: '+05:30', rule: 'offset', dueAtMs: Date.parse('2026-12-24T12:30:00Z') },
    });
    expect(resolve({ at: '2026-12-24T18:00:00Z' })).toMatchObject({ time: { timeZone: 'UTC', rule: 'offset' } });
    expect(resolve({ at: '2026-10-25T02:30:00+01:00', timeZone: 'Europe/Berlin' })).toMatchObject({
      time: { timeZone: 'Europe/Berlin', dueAtMs: Date.parse('2026-10-25T01:30:00Z') },
    });
  });

  it.each(['2026-12-24T18:00:00+02:00', '2026-12-24T18:00:00Z', '2027-03-28T02:30:00+01:00'])(
    'contradicts the zone: %s',
    (at) => {
      expect(resolve({ at, timeZone: 'Europe/Berlin' })).toMatchObject({
        ok: false,
        faults: [{ code: 'offset_contradicts_zone', member: ['at'] }],
      });
    },
  );
});

describe('what is refused', () => {
  it.each([
    '2026-02-30T10:00:00',
    '2026-13-01T10:00:00',
    '2026-12-24',
    '2026-12-24 18:00',
    '2026-12-24T18:00:00[Europe/Berlin]',
    '2026-12-24T24:00:00',
    '2026-12-24T18:00:60',
    '2026-12-24T18:00:00+25:00',
    'tomorrow',
    '',
  ])('%p is no time', (at) => {
    const answer = resolve({ at, timeZone: at.includes('+') ? undefined : 'Europe/Berlin' });
    expect(answer).toMatchObject({ ok: false, faults: [{ member: ['at'], code: 'time_unparseable' }] });
  });

  it('names all faulty members at once', () => {
    const answer = resolve({ at: 'soon', timeZone: 'Mars/Base', fold: 'both' });
    expect(answer.ok ? [] : answer.faults.map(({ code }) => code)).toEqual([
      'time_zone_unknown',
      'fold_both_needs_repeat',
      'time_unparseable',
    ]);
  });

  it.each([
    [{ now: true, gap: 'skip' }, ['gap']],
    [{ now: true, timeZone: 'Europe/Berlin', fold: 'second', gap: 'shift' }, ['gap', 'fold']],
    [{ at: '2026-12-24T18:00:00+01:00', fold: 'first' }, ['fold']],
    [{ at: '2026-12-24T18:00:00+01:00', timeZone: 'Europe/Berlin', gap: 'shift' }, ['gap']],
  ] as const)('is a rule for local times where there is none: %j', (when, members) => {
    const answer = resolve(when);
    expect(answer.ok ? [] : answer.faults.map(({ code, member }) => [code, ...member])).toEqual(
      members.map((member) => ['rule_without_local_time', member]),
    );
  });

  it('is a naive time without a zone', () => {
    expect(resolve({ at: '2026-12-24T18:00:00' })).toMatchObject({
      ok: false,
      faults: [{ member: ['timeZone'], code: 'time_zone_required' }],
    });
  });

  it('is a time more than a minute past, saying how far', () => {
    const at = (ms: number) => Temporal.Instant.fromEpochMilliseconds(NOW - ms).toString();
    expect(resolve({ at: at(PAST_TOLERANCE_MS) }).ok).toBe(true);
    expect(resolve({ at: at(PAST_TOLERANCE_MS + 1) }).ok).toBe(false);
    const old = resolve({ at: at(2 * 3_600_000 + 5 * 60_000) });
    expect(old).toMatchObject({ ok: false, faults: [{ code: 'time_in_past' }] });
    expect(!old.ok && old.faults[0]?.detail).toContain('2 h 5 min past');
  });
});

it('resolves now, in the zone if there is one', () => {
  expect(resolve({ now: true })).toMatchObject({ time: { dueAtMs: NOW, rule: 'now', timeZone: 'UTC' } });
  expect(resolve({ now: true, timeZone: 'Asia/Tokyo' })).toMatchObject({
    time: { local: '2026-06-01T21:00:00', timeZone: 'Asia/Tokyo' },
  });
});
