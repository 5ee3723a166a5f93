import fc from 'fast-check';
import { decide, type Decision, type ScheduleCommand } from './decide';
import type { ScheduleDefinition } from './definition';
import { evolve, replay } from './evolve';
import type { ScheduleEvent } from './schedule-events';
import { initialState, type ExistingSchedule, type ScheduleState } from './schedule-state';

const definition: ScheduleDefinition = {
  number: { id: 'n', name: 'wa-main', providerIdentity: 'whatsapp_cloud:1', channel: 'whatsapp', ratePerSecond: 80 },
  category: 'marketing',
  content: { text: 'Hello' },
  audience: { id: 'a', inline: true, accepted: 3, rejected: 0, duplicates: 0, chunkCount: 1 },
  slot: {
    slot: 'once',
    timeZone: 'Europe/Berlin',
    local: '2027-01-01T10:00:00',
    resolvedLocal: '2027-01-01T10:00:00+01:00',
    dueAtMs: 1_798_794_000_000,
    validUntilMs: null,
    rule: 'exact',
    tzdb: '2025c',
    note: null,
  },
  priority: 5,
  onUncertain: 'leave',
  retryDelaysMs: [120_000],
  labels: { a: 'b' },
  warnings: [],
  asked: { name: 'Sale' },
};

const stamp = { atMs: 1_000, by: 'key:1' };
const request: ScheduleCommand = {
  name: 'request',
  ...stamp,
  scheduleId: 's',
  tenantId: 't',
  mode: 'test',
  externalId: null,
  runId: '00',
  definition,
};
const change = (name: 'pause' | 'cancel', more = {}): ScheduleCommand => ({
  name,
  ...stamp,
  reason: null,
  completed: false,
  ...more,
});
const resume = (more = {}): ScheduleCommand => ({
  name: 'resume',
  ...stamp,
  reason: null,
  completed: false,
  runHeld: false,
  ...more,
});
const revise = (next: Partial<ScheduleDefinition>, more = {}): ScheduleCommand => ({
  name: 'revise',
  ...stamp,
  definition: { ...definition, ...next },
  expectedVersion: 'any',
  completed: false,
  ...more,
});

/** The state and stream after commands that all have to happen. */
function given(...commands: ScheduleCommand[]): { state: ScheduleState; events: ScheduleEvent[] } {
  return commands.reduce<{ state: ScheduleState; events: ScheduleEvent[] }>(
    ({ state, events }, command) => {
      const decision = decide(command, state);
      if (decision.outcome !== 'happened') throw new Error(`${command.name}: ${JSON.stringify(decision)}`);
      return { state: evolve(state, decision.event), events: [...events, decision.event] };
    },
    { state: initialState, events: [] },
  );
}
const when = (command: ScheduleCommand, ...before: ScheduleCommand[]): Decision => decide(command, given(...before).state);

describe('a schedule', () => {
  it('begins with a request, once', () => {
    expect(given(request).state).toMatchObject({ status: 'active', version: 1, revision: 1, paused: null });
    expect(when(request, request)).toEqual({ outcome: 'refused', reason: 'schedule_exists' });
    expect(decide(change('pause'), initialState)).toEqual({ outcome: 'refused', reason: 'schedule_not_found' });
  });

  it('is paused and resumed without a new revision', () => {
    const { state } = given(request, change('pause', { reason: 'legal' }));
    expect(state).toMatchObject({ version: 2, revision: 1, paused: { reason: 'legal', by: 'key:1' }, pausedVersion: 2 });
    expect(given(request, change('pause'), resume()).state).toMatchObject({ version: 3, revision: 1, paused: null });
  });

  it('says why nothing happens', () => {
    expect(when(change('pause'), request, change('pause'))).toEqual({ outcome: 'nothing', why: 'already_paused' });
    expect(when(resume(), request)).toEqual({ outcome: 'nothing', why: 'not_paused' });
    expect(when(change('cancel'), request, change('cancel'))).toEqual({ outcome: 'nothing', why: 'already_cancelled' });
    expect(when(change('cancel', { completed: true }), request)).toEqual({ outcome: 'nothing', why: 'already_completed' });
    expect(when(revise({}), request)).toEqual({ outcome: 'nothing', why: 'no_change' });
  });

  it('is resumed from the hold of its run, though nobody paused it', () => {
    expect(when(resume({ runHeld: true }), request)).toMatchObject({ outcome: 'happened', event: { name: 'resumed' } });
  });

  it.each([
    ['paused', change('pause')],
    ['resumed', resume()],
    ['revised', revise({ priority: 1 })],
  ])('can not be %s after a cancel or its end', (_, command) => {
    const ended = { outcome: 'refused', reason: 'schedule_ended' };
    expect(when(command, request, change('cancel'))).toEqual(ended);
    expect(when({ ...command, completed: true } as ScheduleCommand, request)).toEqual(ended);
  });

  it('forgets its pause when it is cancelled', () => {
    expect(given(request, change('pause'), change('cancel')).state).toMatchObject({
      status: 'cancelled',
      paused: null,
      cancelledVersion: 3,
    });
  });
});

describe('a revision', () => {
  it.each<[string, Partial<ScheduleDefinition>]>([
    ['content', { content: { text: 'Bye' } }],
    ['time', { slot: { ...definition.slot, dueAtMs: 1 } }],
    ['audience', { audience: { ...definition.audience, id: 'b' } }],
    ['priority', { priority: 1 }],
    ['retry', { retryDelaysMs: [] }],
  ])('of the %s raises version and revision', (_, next) => {
    expect(given(request, revise(next)).state).toMatchObject({ version: 2, revision: 2 });
  });

  it.each<[string, Partial<ScheduleDefinition>]>([
    ['labels', { labels: {} }],
    ['name', { asked: { name: 'Winter' } }],
  ])('of the %s alone raises the version only', (_, next) => {
    expect(given(request, revise(next)).state).toMatchObject({ version: 2, revision: 1 });
  });

  it('tells whether the audience changed, since the gate refuses that once messages are claimed', () => {
    const { events } = given(request, revise({ priority: 1 }), revise({ audience: { ...definition.audience, id: 'b' } }));
    expect(events.slice(1).map(({ data }) => (data as { audienceChanged: boolean }).audienceChanged)).toEqual([false, true]);
  });

  it('of an old version is refused, before anything else', () => {
    const refused = { outcome: 'refused', reason: 'version_mismatch', currentVersion: 2 };
    expect(when(revise({ priority: 1 }, { expectedVersion: 1 }), request, change('cancel'))).toEqual(refused);
    expect(when(revise({ priority: 1 }, { expectedVersion: 2 }), request, change('pause')).outcome).toBe('happened');
  });
});

describe('for any order of commands', () => {
  const command = fc.oneof(
    fc.constantFrom(change('pause'), change('cancel'), resume(), resume({ runHeld: true })),
    fc.integer({ min: 1, max: 9 }).map((priority) => revise({ priority })),
    fc.constantFrom({}, { x: 'y' }).map((labels) => revise({ labels: labels as Record<string, string> })),
  );

  it('the stream replays to the same state, versions have no gaps, and the revision never leads the version', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 30 }), (commands) => {
        let { state, events } = given(request);
        for (const next of commands) {
          const decision = decide(next, state);
          if (decision.outcome !== 'happened') continue;
          const before = state as ExistingSchedule;
          state = evolve(state, decision.event);
          events = [...events, decision.event];
          expect((state as ExistingSchedule).version).toBe(before.version + 1);
        }
        const end = state as ExistingSchedule;
        expect(replay(JSON.parse(JSON.stringify(events)) as ScheduleEvent[])).toEqual(end);
        expect(end.version).toBe(events.length);
        expect(end.revision).toBeLessThanOrEqual(end.version);
        expect(end.status === 'cancelled').toBe(events.at(-1)!.name === 'cancelled');
      }),
    );
  });
});
