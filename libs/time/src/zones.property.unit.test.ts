import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { resolveLocalTime } from './resolve-local-time';
import { resolveWhen } from './resolve-when';

const ZONES = [
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Nuuk',
  'Asia/Kolkata',
  'Africa/Casablanca',
  'Pacific/Apia',
  'UTC',
];
const zone = fc.constantFrom(...ZONES);
const minute = fc
  .integer({ min: 0, max: 2 * 366 * 24 * 60 })
  .map((minutes) => Temporal.PlainDateTime.from('2026-01-01T00:00').add({ minutes }));
/** Near a transition, where rules matter; anywhere else most samples would be exact. */
const nearTransition = fc
  .tuple(zone, fc.integer({ min: 0, max: 5 }), fc.integer({ min: -180, max: 180 }))
  .map(([name, skip, minutes]) => {
    let at: Temporal.ZonedDateTime | null = Temporal.ZonedDateTime.from(`2026-01-01T00:00[${name}]`);
    for (let count = 0; count <= skip % 4; count++) at = at?.getTimeZoneTransition('next') ?? at;
    return { name, local: at!.toPlainDateTime().round('minute').add({ minutes }) };
  });

describe('for every local time in every zone', () => {
  it('an instant that came out shows the local time that went in, unless it was shifted over a gap', () => {
    fc.assert(
      fc.property(fc.oneof(nearTransition, fc.record({ name: zone, local: minute })), ({ name, local }) => {
        const { kind, instants } = resolveLocalTime(local, name, 'shift', 'both');
        for (const { at, rule } of instants) {
          const shows = at.toPlainDateTime().equals(local);
          expect(shows).toBe(rule !== 'gap_shift');
        }
        expect(instants).toHaveLength(kind === 'fold' ? 2 : 1);
        if (kind === 'fold') expect(Temporal.ZonedDateTime.compare(instants[0]!.at, instants[1]!.at)).toBe(-1);
        expect(resolveLocalTime(local, name, 'skip', 'first').instants).toHaveLength(kind === 'gap' ? 0 : 1);
      }),
      { numRuns: 400 },
    );
  });

  it('writing the resolved time with its offset means the same instant', () => {
    fc.assert(
      fc.property(nearTransition, fc.constantFrom('first' as const, 'second' as const), ({ name, local }, fold) => {
        const resolved = resolveWhen({ at: local.toString({ smallestUnit: 'second' }), timeZone: name, fold }, 0);
        if (!resolved.ok) throw new Error(JSON.stringify(resolved.faults));
        const again = resolveWhen({ at: resolved.time.resolvedLocal, timeZone: name }, 0);
        expect(again.ok && again.time.dueAtMs).toBe(resolved.time.dueAtMs);
      }),
      { numRuns: 200 },
    );
  });
});
