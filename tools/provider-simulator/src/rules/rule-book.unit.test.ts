import { seededRandom } from '../timing/random';
import { ruleSchema, type RuleInput } from './actions';
import { RuleBook, type RuleSubject } from './rule-book';

const subject = (change: Partial<RuleSubject> = {}): RuleSubject => ({
  phoneNumberId: '700',
  recipient: '12025550143',
  token: 'p1.abc',
  type: 'template',
  template: { name: 'autumn_offer', language: 'en_US' },
  accessToken: 'token-1',
  ...change,
});

function book(...rules: RuleInput[]): RuleBook {
  const made = new RuleBook(seededRandom(3));
  for (const rule of rules) made.add(ruleSchema.parse(rule));
  return made;
}
const failing = (match: RuleInput['match'], more: Partial<RuleInput> = {}): RuleInput => ({
  match,
  action: { kind: 'graph_error', code: 131000 },
  ...more,
});
const acts = (rules: RuleBook, asked: RuleSubject): boolean => rules.actionsFor(asked).length > 0;

describe('RuleBook', () => {
  it.each([
    [{ phoneNumberId: '700' }, { phoneNumberId: '701' }],
    [{ recipient: '+12025550143' }, { recipient: '12025550144' }],
    [{ recipientPrefix: '+1202' }, { recipient: '13055550143' }],
    [{ template: 'autumn_offer' }, { template: { name: 'winter', language: 'en_US' } }],
    [{ language: 'en_US' }, { template: { name: 'autumn_offer', language: 'fr' } }],
    [{ type: 'template' }, { type: 'text', template: undefined }],
    [{ tokenPrefix: 'p1.' }, { token: 'p2.abc' }],
  ])('matches on %j and not on %j', (match, other) => {
    expect(acts(book(failing(match)), subject())).toBe(true);
    expect(acts(book(failing(match)), subject(other))).toBe(false);
  });

  it('acts on the nth, on every nth, and a limited number of times', () => {
    const pattern = (rules: RuleBook): string => Array.from({ length: 6 }, () => (acts(rules, subject()) ? 'x' : '.')).join('');
    expect(pattern(book(failing({ nth: 3 })))).toBe('..x...');
    expect(pattern(book(failing({ every: 2 })))).toBe('.x.x.x');
    expect(pattern(book(failing({}, { times: 2 })))).toBe('xx....');
    expect(pattern(book(failing({ every: 2 }, { times: 2 })))).toBe('.x.x..');
  });

  it('acts on a share', () => {
    const rules = book(failing({ probability: 0.25 }));
    const acted = Array.from({ length: 4000 }, () => acts(rules, subject())).filter(Boolean).length;
    expect(acted).toBeGreaterThan(900);
    expect(acted).toBeLessThan(1100);
    expect(rules.list()).toMatchObject([{ matched: 4000, applied: acted }]);
  });

  it('goes on past actions that only add, and stops at the first that ends the request', () => {
    const rules = book(
      { action: { kind: 'delay', ms: 5 } },
      { action: { kind: 'graph_error', code: 131000 } },
      { action: { kind: 'hang', delivered: true } },
    );
    expect(rules.actionsFor(subject()).map(({ kind }) => kind)).toEqual(['delay', 'graph_error']);
  });

  it('declares the first token dead until the caller has another', () => {
    const rules = book({ action: { kind: 'token_expired' } });
    expect(acts(rules, subject())).toBe(true);
    expect(acts(rules, subject())).toBe(true);
    expect(acts(rules, subject({ accessToken: 'token-2' }))).toBe(false);
    expect(acts(rules, subject())).toBe(true);
    rules.clear();
    expect(acts(rules, subject())).toBe(false);
  });

  it('replaces a rule of the same id and removes by id', () => {
    const rules = book(failing({}, { id: 'mine' }), failing({ nth: 99 }, { id: 'mine' }));
    expect(rules.list()).toHaveLength(1);
    expect(acts(rules, subject())).toBe(false);
    expect(rules.remove('mine')).toBe(true);
    expect(rules.remove('mine')).toBe(false);
  });
});
