import { parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { ORDINARY_RECIPIENTS, ordinaryRecipient } from '../ordinary-recipients';
import { MAGIC_RECIPIENTS, magicNumber, magicRecipient } from './magic-recipients';

const isValid = (number: string): boolean => parsePhoneNumberFromString(number)?.isValid() ?? false;

describe('magic recipients', () => {
  it.each(MAGIC_RECIPIENTS.map(({ digits, what }) => [digits, what]))('%s (%s) passes number validation', (digits) => {
    for (const areaCode of [202, 212, 305, 415, 602, 808, 907]) expect(isValid(magicNumber(digits, areaCode))).toBe(true);
  });

  it('would be refused in the British and French ranges for fiction', () => {
    expect(isValid('+447700900123')).toBe(false);
    expect(isValid('+33639980017')).toBe(false);
  });

  it('are found by their last two digits under every area code', () => {
    expect(magicRecipient('12025550160')?.digits).toBe('60');
    expect(magicRecipient('19075550160')?.digits).toBe('60');
    for (const ordinary of ['12025550143', '12025550260', '12025551160', '447700900160', '112025550160']) {
      expect(magicRecipient(ordinary)).toBeUndefined();
    }
    expect(new Set(MAGIC_RECIPIENTS.map(({ digits }) => digits)).size).toBe(MAGIC_RECIPIENTS.length);
    for (const { digits } of MAGIC_RECIPIENTS) expect(Number(digits)).toBeGreaterThanOrEqual(50);
  });
});

describe('ordinaryRecipient', () => {
  it('is valid, ordinary and distinct', () => {
    const step = 9973;
    const seen = new Set<string>();
    for (let index = 0; index < ORDINARY_RECIPIENTS; index += step) {
      const number = ordinaryRecipient(index);
      expect(isValid(number)).toBe(true);
      expect(magicRecipient(number.slice(1))).toBeUndefined();
      seen.add(number);
    }
    expect(seen.size).toBe(Math.ceil(ORDINARY_RECIPIENTS / step));
    expect(() => ordinaryRecipient(ORDINARY_RECIPIENTS)).toThrow(RangeError);
  });
});
