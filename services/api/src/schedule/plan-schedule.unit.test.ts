import type { CreateScheduleBody } from '../request/schedule-request';
import { placeholdersIn } from './check-content';
import { duplicateHash } from './duplicate-hash';
import { planSchedule, type PlanFacts } from './plan-schedule';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const facts: PlanFacts = {
  nowMs: NOW,
  number: { id: 'n1', name: 'wa-main', providerIdentity: 'whatsapp_cloud:1', channel: 'whatsapp', ratePerSecond: 80 },
  audience: {
    ready: {
      id: 'a1',
      inline: false,
      accepted: 10,
      rejected: 0,
      duplicates: 0,
      chunkCount: 1,
      columns: ['name', 'code'],
      missing: {},
    },
  },
  keptSlot: null,
};
const body: CreateScheduleBody = {
  from: { number: 'wa-main' },
  category: 'utility',
  content: { text: 'Hello {{name}}' },
  audienceId: 'aud_x',
  when: { at: '2026-12-24T18:00:00', timeZone: 'Europe/Berlin' },
};
const plan = (asked: Partial<CreateScheduleBody>, more: Partial<PlanFacts> = {}) =>
  planSchedule({ ...body, ...asked }, { ...facts, ...more });
const codes = (answer: ReturnType<typeof planSchedule>) =>
  answer.ok ? [] : answer.faults.map(({ pointer, code }) => `${pointer} ${code}`);

describe('a plan', () => {
  it('has defaults for what was left out, and no recipients among the words it keeps', () => {
    const answer = plan({ recipients: [{ to: '+4915112345678' }] });
    expect(answer).toMatchObject({
      ok: true,
      definition: {
        priority: 5,
        onUncertain: 'leave',
        retryDelaysMs: [120_000, 240_000, 480_000],
        labels: {},
        slot: { validUntilMs: null },
      },
    });
    expect(JSON.stringify(answer)).not.toContain('4915112345678');
  });

  it('gives authentication an hour, unless something else was asked', () => {
    const due = Date.parse('2026-12-24T17:00:00Z');
    expect(plan({ category: 'authentication' })).toMatchObject({ definition: { slot: { validUntilMs: due + 3_600_000 } } });
    expect(plan({ category: 'authentication', validity: { for: 'PT5M' } })).toMatchObject({
      definition: { slot: { validUntilMs: due + 300_000 } },
    });
  });

  it('needs a category for a text, and assumes marketing for a template', () => {
    expect(codes(plan({ category: undefined }))).toEqual(['#/category required']);
    const answer = plan({ category: undefined, content: { template: { name: 'x', language: 'en' } } });
    expect(answer).toMatchObject({
      ok: true,
      definition: { category: 'marketing', warnings: [{ code: 'category_assumed' }, { code: 'template_unknown' }] },
    });
  });

  it('refuses placeholders that the audience has no column for, or not everywhere', () => {
    expect(codes(plan({ content: { text: 'Hello {{surname}}' } }))).toEqual(['#/audienceId parameter_missing']);
    const ready: object = { ...(facts.audience as { ready: object }).ready, missing: { name: { count: 3, firstRow: 7 } } };
    const audience = { ready } as PlanFacts['audience'];
    expect(codes(plan({}, { audience }))).toEqual(['#/audienceId parameter_missing']);
    expect(plan({ onInvalidRecipient: 'skip' }, { audience })).toMatchObject({
      ok: true,
      definition: { warnings: expect.arrayContaining([expect.objectContaining({ code: 'parameter_missing' })]) as unknown },
    });
    expect(plan({ content: { text: '{{code}}' } }, { audience }).ok).toBe(true);
  });

  it('keeps the slot of a revision that leaves the time alone, also when it is past by now', () => {
    const first = plan({});
    if (!first.ok) throw new Error('a plan was expected');
    const keptSlot = first.definition.slot;
    const later = plan({ priority: 1 }, { nowMs: NOW + 10 * 365 * 86_400_000, keptSlot });
    expect(later).toMatchObject({ ok: true, definition: { slot: keptSlot, priority: 1 } });
    expect(codes(plan({}, { nowMs: NOW + 10 * 365 * 86_400_000 }))).toEqual(['#/when/at time_in_past']);
  });

  it('reports everything at once', () => {
    const answer = plan(
      {
        category: undefined,
        when: { at: 'soon', timeZone: 'Europe/Berln' },
        retry: { delays: ['PT2M', 'P9D', 'x'] },
      },
      { number: null, audience: { faults: [{ pointer: '#/audienceId', code: 'audience_unknown', detail: '' }] } },
    );
    expect(codes(answer)).toEqual([
      '#/from/number number_unknown',
      '#/category required',
      '#/when/timeZone time_zone_unknown',
      '#/when/at time_unparseable',
      '#/retry/delays/1 duration_invalid',
      '#/retry/delays/2 duration_invalid',
      '#/audienceId audience_unknown',
    ]);
  });

  it('finds what a schema can not: a button index twice, a link that is no https', () => {
    const content: CreateScheduleBody['content'] = {
      template: {
        name: 'x',
        language: 'en',
        header: { image: { link: 'http://cdn.example.com/a.jpg' } },
        buttons: [
          { index: 0, quickReply: 'A' },
          { index: 0, url: '{{code}}' },
        ],
      },
    };
    expect(codes(plan({ content }))).toEqual([
      '#/content/template/buttons/1/index button_index_repeated',
      '#/content/template/header/image/link link_not_https',
    ]);
  });
});

it('finds the placeholders of every part of a content, and none in escaped braces', () => {
  expect(
    placeholdersIn({
      template: {
        name: 'x',
        language: 'en',
        header: { image: { link: '{{ picture }}' } },
        body: { first: '{{name}} and {{name}}', second: '{{{{literal}}' },
        buttons: [{ index: 0, url: '{{code}}' }],
      },
    }),
  ).toEqual(['picture', 'name', 'code']);
});

describe('the hash of a campaign', () => {
  const set = Buffer.from('set');
  const hashOf = (asked: Partial<CreateScheduleBody>, setHash = set, nowMs = NOW, allow = false) => {
    const answer = plan(asked, { nowMs });
    if (!answer.ok) throw new Error(JSON.stringify(answer.faults));
    return duplicateHash(answer.definition, setHash, allow)?.toString('hex') ?? null;
  };

  it('is the same for the same campaign, however its content is written down', () => {
    const content = (members: object) => ({ template: { name: 'x', language: 'en', ...members } });
    const a = hashOf({ content: content({ body: { one: '{{name}}', two: 'b' } }), name: 'first', labels: { a: 'b' } });
    const b = hashOf({ content: content({ body: { two: 'b', one: '{{name}}' } }) });
    expect(a).toBe(b);
    expect(hashOf({ when: { at: '2026-12-24T18:00:00+01:00' } })).toBe(hashOf({}));
  });

  it('differs with content, instant and recipients', () => {
    const hashes = [
      hashOf({}),
      hashOf({ content: { text: 'Bye {{name}}' } }),
      hashOf({ when: { at: '2026-12-24T18:00:01', timeZone: 'Europe/Berlin' } }),
      hashOf({}, Buffer.from('others')),
    ];
    expect(new Set(hashes).size).toBe(4);
  });

  it('is of the minute for now: a double click is one campaign', () => {
    const now = { when: { now: true as const } };
    expect(hashOf(now, set, NOW + 1)).toBe(hashOf(now, set, NOW + 900));
    expect(hashOf(now, set, NOW)).not.toBe(hashOf(now, set, NOW + 60_000));
  });

  it('is none for one recipient, or where a duplicate is meant', () => {
    expect(hashOf({}, set, NOW, true)).toBeNull();
    const lone: object = { ...(facts.audience as { ready: object }).ready, accepted: 1 };
    const one = { ready: lone } as PlanFacts['audience'];
    const answer = plan({}, { audience: one });
    expect(answer.ok && duplicateHash(answer.definition, set, false)).toBeNull();
  });
});
