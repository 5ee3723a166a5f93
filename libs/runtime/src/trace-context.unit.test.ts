import fc from 'fast-check';
import { formatTraceparent, parseTraceparent } from './trace-context';

const hex = (length: number) =>
  fc
    .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
    .filter((text) => !/^0+$/.test(text));

it('reads what it writes', () => {
  fc.assert(
    fc.property(hex(32), hex(16), fc.constantFrom(0, 1), (traceId, spanId, traceFlags) => {
      expect(parseTraceparent(formatTraceparent({ traceId, spanId, traceFlags }))).toMatchObject({
        traceId,
        spanId,
        traceFlags,
        isRemote: true,
      });
    }),
  );
});

it.each([
  ['nothing', undefined],
  ['an empty text', ''],
  ['zeros as trace id', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
  ['zeros as span id', `00-4bf92f3577b34da6a3ce929d0e0e4736-${'0'.repeat(16)}-01`],
  ['the forbidden version', 'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
  ['upper case', '00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01'],
  ['a fifth field in version 00', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x'],
])('takes %s for no context', (_, header) => {
  expect(parseTraceparent(header)).toBeUndefined();
});

it('reads later versions by their first four fields', () => {
  expect(parseTraceparent('01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-extra')).toMatchObject({ traceFlags: 1 });
});
