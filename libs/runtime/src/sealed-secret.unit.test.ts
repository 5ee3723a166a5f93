import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { UnsealError, keyFrom, seal, unseal } from './sealed-secret';
import { Secret } from './secret';

const key = randomBytes(32);

describe('sealed secrets', () => {
  it('open for the same key and owner only', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (plain, owner, other) => {
        const sealed = seal(key, plain, owner);
        expect(unseal(key, sealed, owner).toString()).toBe(plain);
        expect(sealed.includes(Buffer.from(plain)) && plain.length > 3).toBe(false);
        expect(() => unseal(randomBytes(32), sealed, owner)).toThrow(UnsealError);
        if (other !== owner) expect(() => unseal(key, sealed, other)).toThrow(UnsealError);
      }),
    );
  });

  it('do not open when any byte was changed, or when they are no sealed bytes', () => {
    const sealed = seal(key, 'token', 'num_1');
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at]! ^= 1;
      expect(() => unseal(key, changed, 'num_1')).toThrow(UnsealError);
    }
    expect(() => unseal(key, Buffer.from('short'), 'num_1')).toThrow(UnsealError);
  });

  it('differ each time they are sealed', () => {
    expect(seal(key, 'token', 'a').equals(seal(key, 'token', 'a'))).toBe(false);
  });

  it('need a key of 32 bytes', () => {
    expect(keyFrom(new Secret(key.toString('base64'))).equals(key)).toBe(true);
    expect(() => keyFrom(new Secret('c2hvcnQ='))).toThrow('32 bytes');
  });
});
