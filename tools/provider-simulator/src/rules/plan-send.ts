import type { GraphRefusal } from '../graph/graph-errors';
import type { RandomSource } from '../timing/random';
import type { Action, JourneyStep } from './actions';

/** What the caller is told. */
export type PlannedAnswer =
  | { kind: 'accepted'; messageStatus: string }
  | { kind: 'graph_error'; refusal: GraphRefusal }
  | { kind: 'http_error'; httpStatus: number; body: 'html' | 'empty' }
  | { kind: 'truncated' }
  | { kind: 'dropped'; how: 'close' | 'reset' }
  | { kind: 'hung' };

export interface SendPlan {
  answer: PlannedAnswer;
  /** Whether the provider takes the message on, whatever it answers. */
  delivered: boolean;
  extraDelayMs: number;
  /** Flat list of names and values. */
  headers: string[];
  journey: readonly JourneyStep[];
  copies: number;
  webhookFirst: boolean;
}

export interface JourneyShares {
  readShare: number;
  failShare: number;
  failCode: number;
}

const READ: readonly JourneyStep[] = [
  { status: 'sent', after: 'sent' },
  { status: 'delivered', after: 'delivered' },
  { status: 'read', after: 'read' },
];
const UNREAD: readonly JourneyStep[] = READ.slice(0, 2);

function ordinaryJourney(shares: JourneyShares, random: RandomSource): readonly JourneyStep[] {
  if (shares.failShare > 0 && random() < shares.failShare) return [{ status: 'failed', after: 'failed', code: shares.failCode }];
  return random() < shares.readShare ? READ : UNREAD;
}

/** Folds the actions of the rules over an ordinary accepted send. */
export function planSend(actions: readonly Action[], shares: JourneyShares, wabaId: string, random: RandomSource): SendPlan {
  const plan: SendPlan = {
    answer: { kind: 'accepted', messageStatus: 'accepted' },
    delivered: true,
    extraDelayMs: 0,
    headers: [],
    journey: ordinaryJourney(shares, random),
    copies: 1,
    webhookFirst: false,
  };
  for (const action of actions) applyAction(plan, action, wabaId);
  return plan;
}

function applyAction(plan: SendPlan, action: Action, wabaId: string): void {
  switch (action.kind) {
    case 'graph_error': {
      const { code, httpStatus, subcode, title, details, transient } = action;
      plan.answer = { kind: 'graph_error', refusal: { code, httpStatus, subcode, title, details, transient } };
      plan.delivered = action.delivered;
      if (action.retryAfter !== undefined) plan.headers.push('retry-after', String(action.retryAfter));
      if (action.regainMinutes !== undefined) plan.headers.push(...usageHeaders(wabaId, 100, action.regainMinutes));
      return;
    }
    case 'http_error':
      plan.answer = { kind: 'http_error', httpStatus: action.httpStatus, body: action.body };
      plan.delivered = action.delivered;
      if (action.retryAfter !== undefined) plan.headers.push('retry-after', String(action.retryAfter));
      return;
    case 'truncate':
      plan.answer = { kind: 'truncated' };
      plan.delivered = action.delivered;
      return;
    case 'drop_connection':
      plan.answer = { kind: 'dropped', how: action.how };
      plan.delivered = action.delivered;
      return;
    case 'hang':
      plan.answer = { kind: 'hung' };
      plan.delivered = action.delivered;
      return;
    case 'token_expired':
      plan.answer = { kind: 'graph_error', refusal: { code: 190 } };
      plan.delivered = false;
      return;
    case 'delay':
      plan.extraDelayMs += action.ms;
      return;
    case 'headers':
      for (const [name, value] of Object.entries(action.headers)) plan.headers.push(name, value);
      return;
    case 'usage':
      plan.headers.push(...usageHeaders(wabaId, action.callCount, action.regainMinutes));
      return;
    case 'hold':
      plan.answer = { kind: 'accepted', messageStatus: action.messageStatus };
      plan.journey = heldJourney(plan.journey, action.then, action.afterMs);
      return;
    case 'journey':
      plan.journey = action.steps;
      plan.copies = action.copies;
      return;
    case 'webhook_first':
      plan.webhookFirst = true;
      return;
    default:
      return action satisfies never;
  }
}

function heldJourney(
  journey: readonly JourneyStep[],
  then: 'release' | 'drop' | 'nothing',
  afterMs: number | undefined,
): readonly JourneyStep[] {
  const after = afterMs ?? 'held';
  switch (then) {
    case 'release':
      return journey.map((step, index) => (index === 0 ? { ...step, after } : step));
    case 'drop':
      return [{ status: 'failed', after, code: 132015 }];
    case 'nothing':
      return [];
    default:
      return then satisfies never;
  }
}

/** Percentages of three ceilings; 100 means throttled. */
export function usageHeaders(wabaId: string, callCount: number, regainMinutes: number): string[] {
  const share = Math.round(callCount * 0.4);
  return [
    'x-business-use-case-usage',
    `{"${wabaId}": [{"type": "whatsapp", "call_count": ${callCount}, "total_cputime": ${share}, "total_time": ${share}, "estimated_time_to_regain_access": ${regainMinutes}}]}`,
    'x-app-usage',
    `{"call_count": ${callCount}, "total_time": ${share}, "total_cputime": ${share}}`,
  ];
}
