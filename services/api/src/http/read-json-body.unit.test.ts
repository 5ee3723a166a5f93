import { DEEPEST_BODY, parseJson, BodyRefused } from './read-json-body';

const parse = (text: string) => parseJson(Buffer.from(text));

describe('a JSON body', () => {
  it('is read; an empty one is none', () => {
    expect(parse('{"a":[1,"x]}"]}')).toEqual({ a: [1, 'x]}'] });
    expect(parse('')).toBeUndefined();
  });

  it('may be so deep and no deeper; brackets in strings do not count', () => {
    expect(parse('['.repeat(DEEPEST_BODY) + ']'.repeat(DEEPEST_BODY))).toBeDefined();
    expect(() => parse('['.repeat(DEEPEST_BODY + 1) + ']'.repeat(DEEPEST_BODY + 1))).toThrow(BodyRefused);
    expect(() => parse('['.repeat(2_000_000))).toThrow(BodyRefused);
    expect(parse(JSON.stringify(`\\"${'['.repeat(100)}`))).toContain('[');
  });

  it('does not show what it could not read', () => {
    for (const text of ['{"to":"+4915123456789",}', '{"to":"+4915123456789"', 'secret']) {
      expect(() => parse(text)).toThrow(BodyRefused);
      try {
        parse(text);
      } catch (error) {
        expect((error as Error).message).not.toMatch(/4915|secret/);
      }
    }
    expect(() => parseJson(Buffer.from([0x22, 0xff, 0x22]))).toThrow('UTF-8');
  });
});
