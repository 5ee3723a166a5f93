import { CLAIM_STATES, type ClaimState } from '#contracts/words';

/** What makes a claim move. `gate`: an item asked; `cancel`: somebody cancelled it, or its schedule; `given_up`: the scheduler. */
export const MOVE_CAUSES = ['gate', 'result', 'evidence', 'sweeper', 'cancel', 'given_up'] as const;
export type MoveCause = (typeof MOVE_CAUSES)[number];

export type From = ClaimState | 'none';

type Moves = { readonly [F in From]: { readonly [T in ClaimState]?: readonly MoveCause[] } };

/**
 * Every move that a claim can make. The functions of the database make these and no others; docs/flow.md draws them.
 * A message that has waited for too long fails with `hold_expired` without ever having been claimed, hence none -> failed.
 */
export const CLAIM_MOVES = {
  none: {
    sending: ['gate'],
    refused: ['gate', 'given_up'],
    cancelled: ['gate', 'cancel', 'given_up'],
    expired: ['gate', 'given_up'],
    failed: ['gate'],
  },
  sending: { accepted: ['result', 'evidence'], failed: ['result'], retry_wait: ['result'], uncertain: ['result', 'sweeper'] },
  retry_wait: {
    sending: ['gate'],
    accepted: ['evidence'],
    cancelled: ['gate', 'cancel'],
    refused: ['gate'],
    expired: ['gate'],
    failed: ['gate'],
  },
  uncertain: {
    accepted: ['result', 'evidence'],
    failed: ['result', 'evidence'],
    retry_wait: ['result'],
    sending: ['gate'],
    unconfirmed: ['sweeper'],
  },
  unconfirmed: { accepted: ['evidence'], failed: ['evidence'] },
  accepted: {},
  failed: {},
  refused: {},
  cancelled: {},
  expired: {},
} as const satisfies Moves;

export function mayMove(from: From, to: ClaimState, by: MoveCause): boolean {
  return (CLAIM_MOVES as Moves)[from][to]?.includes(by) ?? false;
}

/** No attempt follows. `unconfirmed` is among them: evidence may still correct it, we do nothing more. */
export function isFinal(state: ClaimState): boolean {
  switch (state) {
    case 'accepted':
    case 'failed':
    case 'unconfirmed':
    case 'refused':
    case 'cancelled':
    case 'expired':
      return true;
    case 'sending':
    case 'retry_wait':
    case 'uncertain':
      return false;
    default:
      return state satisfies never;
  }
}

/** Words of a cancel's receipt; every claim state is in exactly one of them. */
export type CancelShare = 'prevented' | 'inFlight' | 'submitted' | 'uncertain' | 'ended';

export function cancelShare(state: From): CancelShare {
  switch (state) {
    case 'none':
    case 'retry_wait':
      return 'prevented';
    case 'sending':
      return 'inFlight';
    case 'accepted':
      return 'submitted';
    case 'uncertain':
    case 'unconfirmed':
      return 'uncertain';
    case 'failed':
    case 'refused':
    case 'expired':
    case 'cancelled':
      return 'ended';
    default:
      return state satisfies never;
  }
}

export const ALL_FROM: readonly From[] = ['none', ...CLAIM_STATES];
