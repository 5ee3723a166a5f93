import type { RandomSource } from '../timing/random';
import type { Action, Rule } from './actions';

/** What a rule can match on. */
export interface RuleSubject {
  phoneNumberId: string;
  recipient: string;
  token: string;
  type: string;
  template?: { name: string; language: string };
  accessToken: string;
}

interface KeptRule {
  id: string;
  rule: Rule;
  matched: number;
  applied: number;
  /** The access token that a `token_expired` rule has declared dead. */
  expiredToken?: string;
}

export interface RuleState {
  id: string;
  rule: Rule;
  /** Requests that met the conditions before `nth`, `every` and `probability`. */
  matched: number;
  applied: number;
}

const withoutPlus = (recipient: string): string => (recipient.startsWith('+') ? recipient.slice(1) : recipient);

/** Rules in the order they were added. A request is shown to all of them until one ends it. */
export class RuleBook {
  #rules: KeptRule[] = [];
  #lastId = 0;

  constructor(private readonly random: RandomSource) {}

  add(rule: Rule): string {
    const id = rule.id ?? `rule-${(this.#lastId += 1)}`;
    this.#rules = this.#rules.filter((kept) => kept.id !== id);
    this.#rules.push({ id, rule, matched: 0, applied: 0 });
    return id;
  }

  remove(id: string): boolean {
    const before = this.#rules.length;
    this.#rules = this.#rules.filter((kept) => kept.id !== id);
    return this.#rules.length < before;
  }

  clear(): void {
    this.#rules = [];
  }

  list(): RuleState[] {
    return this.#rules.map(({ id, rule, matched, applied }) => ({ id, rule, matched, applied }));
  }

  /** The actions for this request, up to and with the first that ends it. */
  actionsFor(subject: RuleSubject): Action[] {
    const actions: Action[] = [];
    for (const kept of this.#rules) {
      if (!meets(kept.rule.match, subject)) continue;
      kept.matched += 1;
      if (!this.#acts(kept, subject)) continue;
      kept.applied += 1;
      actions.push(kept.rule.action);
      if (endsRequest(kept.rule.action)) break;
    }
    return actions;
  }

  /** Whether a `token_expired` rule has declared this token dead: reads with it are refused as well. */
  hasExpired(accessToken: string): boolean {
    return this.#rules.some((kept) => kept.expiredToken === accessToken);
  }

  #acts(kept: KeptRule, subject: RuleSubject): boolean {
    const { match, times, action } = kept.rule;
    if (times !== undefined && kept.applied >= times) return false;
    if (match.nth !== undefined && kept.matched !== match.nth) return false;
    if (match.every !== undefined && kept.matched % match.every !== 0) return false;
    if (match.probability !== undefined && this.random() >= match.probability) return false;
    if (action.kind === 'token_expired') {
      kept.expiredToken ??= subject.accessToken;
      return kept.expiredToken === subject.accessToken;
    }
    return true;
  }
}

function meets(match: Rule['match'], subject: RuleSubject): boolean {
  return (
    (match.phoneNumberId === undefined || match.phoneNumberId === subject.phoneNumberId) &&
    (match.recipient === undefined || withoutPlus(match.recipient) === subject.recipient) &&
    (match.recipientPrefix === undefined || subject.recipient.startsWith(withoutPlus(match.recipientPrefix))) &&
    (match.template === undefined || match.template === subject.template?.name) &&
    (match.language === undefined || match.language === subject.template?.language) &&
    (match.type === undefined || match.type === subject.type) &&
    (match.tokenPrefix === undefined || subject.token.startsWith(match.tokenPrefix))
  );
}

function endsRequest(action: Action): boolean {
  switch (action.kind) {
    case 'delay':
    case 'headers':
    case 'usage':
    case 'webhook_first':
    case 'journey':
    case 'hold':
      return false;
    case 'graph_error':
    case 'http_error':
    case 'truncate':
    case 'drop_connection':
    case 'hang':
    case 'token_expired':
      return true;
    default:
      return action satisfies never;
  }
}
