import { CLAIM_STATES } from '#contracts/words';
import { ALL_FROM, CLAIM_MOVES, cancelShare, isFinal, mayMove } from './claim-moves';

test('final states are those from which only evidence leads on', () => {
  for (const state of CLAIM_STATES) {
    const causes = new Set(Object.values(CLAIM_MOVES[state]).flat());
    causes.delete('evidence');
    expect([state, isFinal(state)]).toEqual([state, causes.size === 0]);
  }
});

test('an uncertain outcome leads to another attempt through the gate only, and never from unconfirmed', () => {
  expect(mayMove('uncertain', 'sending', 'gate')).toBe(true);
  expect(mayMove('uncertain', 'sending', 'sweeper')).toBe(false);
  expect(mayMove('unconfirmed', 'sending', 'gate')).toBe(false);
  expect(mayMove('accepted', 'failed', 'evidence')).toBe(false);
});

test('every state has its place in a cancel’s receipt', () => {
  const shares = Object.fromEntries(ALL_FROM.map((state) => [state, cancelShare(state)]));
  expect(shares).toEqual({
    none: 'prevented',
    retry_wait: 'prevented',
    sending: 'inFlight',
    accepted: 'submitted',
    uncertain: 'uncertain',
    unconfirmed: 'uncertain',
    failed: 'ended',
    refused: 'ended',
    expired: 'ended',
    cancelled: 'ended',
  });
});
