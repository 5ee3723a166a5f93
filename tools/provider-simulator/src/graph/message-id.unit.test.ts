import fc from 'fast-check';
import { sample } from '../../test-support/samples';
import { messageId, runSaltFrom } from './message-id';

/** Everything but the eighteen hex digits, which may be anything. */
function layoutOf(id: string): { head: string; tail: string; hex: boolean } {
  const bytes = Buffer.from(id.replace('wamid.', ''), 'base64').toString('latin1');
  const hex = bytes.slice(-19, -1);
  return { head: bytes.slice(0, -19), tail: bytes.slice(-1), hex: /^[0-9A-F]{18}$/.test(hex) };
}

describe('messageId', () => {
  it('is laid out as the recorded ids are', () => {
    for (const [name, recipient] of [
      ['wa-send-response-accepted', '12025550143'],
      ['wa-send-response-text-no-status', '447700900123'],
    ] as const) {
      const recorded = sample<{ body: { messages: { id: string }[] } }>(name).body.messages[0]!.id;
      expect(layoutOf(messageId(recipient, 5, 'ABCDEF0123'))).toEqual(layoutOf(recorded));
      expect(layoutOf(recorded).hex).toBe(true);
    }
  });

  it('is another for every message', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_000_000_000 }), fc.integer({ min: 0, max: 4_000_000_000 }), (a, b) => {
        expect(messageId('447700900123', a, 'AAAAAAAAAA') === messageId('447700900123', b, 'AAAAAAAAAA')).toBe(a === b);
      }),
    );
    expect(runSaltFrom(Math.random)).toMatch(/^[0-9A-F]{10}$/);
  });
});
