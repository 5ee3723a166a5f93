import { createScheduleBody } from '../request/schedule-request';
import { faultsFromZod } from './faults-from-zod';
import { PROBLEMS, problemOf, refuse } from './problem-table';

const valid = {
  from: { number: 'wa-main' },
  content: { template: { name: 'sale', language: 'en_US' } },
  audienceId: 'aud_x',
  when: { now: true },
};
function read(body: unknown) {
  const result = createScheduleBody.safeParse(body);
  if (result.success) return { unknown: false, lines: [] as string[], faults: [] };
  const { unknown, faults } = faultsFromZod(result.error, body, 'body');
  return { unknown, faults, lines: faults.map(({ pointer, code }) => `${pointer} ${code}`) };
}

describe('faults of a body', () => {
  it('are none for a valid one', () => {
    expect(read(valid).lines).toEqual([]);
  });

  it('point at each member, inside the branch of a union that was meant', () => {
    expect(read({ ...valid, content: { template: { name: 'Sale!', language: 'english', body: ['a', 5] } } }).lines).toEqual([
      '#/content/template/name format_invalid',
      '#/content/template/language format_invalid',
      '#/content/template/body/1 type_invalid',
    ]);
    expect(read({ ...valid, content: { text: '' } }).lines).toEqual(['#/content/text too_short']);
    expect(
      read({ ...valid, content: { template: { ...valid.content.template, header: { image: { lnk: 'x' } } } } }).lines,
    ).toEqual(['#/content/template/header/image/link required', '#/content/template/header/image/lnk unknown_member']);
    expect(
      read({ ...valid, content: { template: { ...valid.content.template, buttons: [{ index: 10, quickReply: 'x' }] } } }).lines,
    ).toEqual(['#/content/template/buttons/0/index out_of_range']);
  });

  it('tell a missing member from a wrong one, and an unknown one from both', () => {
    const answer = read({ ...valid, from: undefined, priority: 10, labels: { 'a b': 'x' }, whenn: 1 });
    expect(answer.unknown).toBe(true);
    expect(answer.lines.sort()).toEqual([
      '#/from required',
      '#/labels/a%20b format_invalid',
      '#/priority out_of_range',
      '#/whenn unknown_member',
    ]);
    expect(read({ ...valid, priority: 10 }).unknown).toBe(false);
  });

  it('need exactly one way to say when, and how long', () => {
    expect(read({ ...valid, when: {} }).lines).toEqual(['#/when/at required']);
    expect(read({ ...valid, when: { now: true, at: '2027-01-01T00:00:00Z' } }).lines).toEqual(['#/when/now ambiguous']);
    expect(read({ ...valid, validity: { for: 'PT1H', untilLocal: '09:00' } }).lines).toEqual(['#/validity ambiguous']);
  });

  it('never repeat numbers, parameters or texts', () => {
    const answer = read({
      ...valid,
      content: { text: 5 },
      recipients: [{ to: 491512345678, parameters: { name: 77 } }],
      priority: 'high',
    });
    expect(answer.lines).toContain('#/recipients/0/to type_invalid');
    const text = JSON.stringify(answer.faults);
    expect(text).not.toContain('491512345678');
    expect(text).not.toContain('77');
    expect(text).toContain('high');
  });

  it('do not let a prototype in', () => {
    const body: unknown = JSON.parse('{"from":{"number":"a"},"labels":{"__proto__":"x"}}');
    expect(read(body).faults.length).toBeGreaterThan(0);
    expect(read(JSON.parse(JSON.stringify(valid).replace('{', '{"__proto__":{},'))).lines).toEqual([
      '#/__proto__ unknown_member',
    ]);
  });
});

describe('problems', () => {
  it('are complete, and cut long lists', () => {
    const errors = Array.from({ length: 130 }, (_, index) => ({ pointer: `#/${index}`, code: 'x', detail: 'y' }));
    const problem = problemOf(refuse('request_invalid', { errors }), 'https://api.example.com', '/v1/schedules');
    expect(problem.status).toBe(422);
    expect(problem.body).toMatchObject({
      type: 'https://api.example.com/errors/request_invalid',
      code: 'request_invalid',
      instance: '/v1/schedules',
      errorsOmitted: 30,
    });
    expect(problem.body.errors).toHaveLength(100);
  });

  it('all say what to do', () => {
    for (const [status, title, action] of Object.values(PROBLEMS)) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(title.length).toBeGreaterThan(5);
      expect(action).toMatch(/[.]$/);
    }
  });
});
