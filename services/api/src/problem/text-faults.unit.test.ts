import { textFaults } from './text-faults';

it('finds what no text can have, in values and in names, and says where', () => {
  const body = {
    name: 'a\u0000b',
    recipients: [{ to: 'fine' }, { ref: '\ud800' }],
    labels: { 'x\u0000': 'y' },
    ok: '\u{1F600}\n',
  };
  expect(textFaults(body, 'body').map(({ pointer }) => pointer)).toEqual(['#/name', '#/recipients/1/ref', '#/labels']);
  expect(textFaults({ id: 'ext:\u0000' }, 'path')).toMatchObject([{ parameter: 'id', code: 'format_invalid' }]);
});

it('takes all other text, numbers and nothing', () => {
  expect(textFaults({ a: 'Grüße, 你好, \u{1F468}\u200D\u{1F469}', b: [1, null, true], c: {} }, 'body')).toEqual([]);
});

it('is not deeper than the input, and stops at a hundred', () => {
  let deep: unknown = '\u0000';
  for (let level = 0; level < 20_000; level++) deep = [deep];
  expect(textFaults(deep, 'body')).toHaveLength(1);
  expect(
    textFaults(
      Array.from({ length: 500 }, () => '\u0000'),
      'body',
    ),
  ).toHaveLength(100);
});
