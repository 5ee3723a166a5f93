import { readDuration } from './duration';
import { resolveValidity } from './resolve-validity';
import { resolveWhen, type WhenAsked } from './resolve-when';

const NOW = Date.parse('2026-06-01T12:00:00Z');
function timeOf(when: WhenAsked) {
  const answer = resolveWhen(when, NOW);
  if (!answer.ok) throw new Error(answer.faults[0]?.detail);
  return answer.time;
}
const until = (validity: Parameters<typeof resolveValidity>[0], when: WhenAsked, zoneAsked = true) => {
  const answer = resolveValidity(validity, timeOf(when), zoneAsked);
  return answer.ok ? (answer.validUntilMs === null ? null : new Date(answer.validUntilMs).toISOString()) : answer.faults[0]?.code;
};

describe('validity', () => {
  const evening = { at: '2026-10-24T20:00:00', timeZone: 'Europe/Berlin' };

  it('is endless where nothing was asked', () => {
    expect(until(undefined, evening)).toBeNull();
  });

  it('counts a duration from the due time', () => {
    expect(until({ for: 'PT2H' }, evening)).toBe('2026-10-24T20:00:00.000Z');
  });

  it('ends at the next time that the wall clock shows, also over a night with 25 hours', () => {
    expect(until({ untilLocal: '22:30' }, evening)).toBe('2026-10-24T20:30:00.000Z');
    expect(until({ untilLocal: '09:00' }, evening)).toBe('2026-10-25T08:00:00.000Z');
    expect(until({ untilLocal: '20:00' }, evening)).toBe('2026-10-25T19:00:00.000Z');
  });

  it('moves an end that the clock skips', () => {
    expect(until({ untilLocal: '02:30' }, { at: '2027-03-27T20:00:00', timeZone: 'Europe/Berlin' })).toBe(
      '2027-03-28T01:30:00.000Z',
    );
  });

  it('needs a zone for a local end, and readable members', () => {
    expect(until({ untilLocal: '09:00' }, { now: true }, false)).toBe('time_zone_required');
    expect(until({ untilLocal: '9:00' }, evening)).toBe('validity_invalid');
    expect(until({ for: 'two hours' }, evening)).toBe('duration_invalid');
  });
});

describe('durations', () => {
  it.each([
    ['PT2M', 120_000],
    ['PT1H30M', 5_400_000],
    ['P1DT1S', 86_401_000],
    ['P2W', 1_209_600_000],
    ['PT0.5S', 500],
  ])('%s is %d ms', (text, ms) => expect(readDuration(text)).toBe(ms));

  it.each(['PT0S', '-PT1H', 'P1M', 'P1Y', '2h', '', 'PT'])('%p is none', (text) => expect(readDuration(text)).toBeNull());
});
