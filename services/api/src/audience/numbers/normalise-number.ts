import { parsePhoneNumberFromString, type CountryCode } from 'libphonenumber-js/max';
import { readInternational } from './phone-plans';

/** How numbers without a plus are meant; without a declaration they are invalid, since one country's number is another's too. */
export interface NumberDeclaration {
  digits?: 'international';
  defaultCountry?: string;
}

export type NumberFault =
  'number_missing' | 'number_invalid' | 'number_needs_country' | 'number_too_short' | 'number_too_long' | 'number_not_reachable';

export type NormalisedNumber = { ok: true; e164: string; ambiguous: boolean } | { ok: false; code: NumberFault };

const SEPARATORS = /[\s().\-/\u00a0\u2007\u2009\u200b-\u200f\u202a-\u202f\u2060\ufeff\u2010-\u2015]+/g;
/** Characters that stand for plus in spreadsheets of other scripts. */
const PLUS = /^[+\uff0b]/;

/**
 * E.164 (ITU-T E.164: plus, at most 15 digits) or why not. Letters are never read as digits: "555-FLOWERS" is a typing
 * error in an audience. Numbers that no handset can have (premium rate, shared cost) are refused.
 */
export function normaliseNumber(text: string, declared: NumberDeclaration): NormalisedNumber {
  const bare = text.replace(SEPARATORS, '');
  if (bare === '') return { ok: false, code: 'number_missing' };
  const plus = PLUS.test(bare);
  const digits = plus ? bare.slice(1) : bare;
  if (!/^[0-9]+$/.test(digits)) return { ok: false, code: 'number_invalid' };
  if (plus || declared.digits === 'international')
    return international(digits.startsWith('00') && !plus ? digits.slice(2) : digits, false);
  if (declared.defaultCountry === undefined) return { ok: false, code: 'number_needs_country' };
  const national = parsePhoneNumberFromString(digits, { defaultCountry: declared.defaultCountry as CountryCode, extract: false });
  if (national === undefined) return { ok: false, code: digits.length < 6 ? 'number_too_short' : 'number_invalid' };
  if (!national.isValid()) return { ok: false, code: 'number_invalid' };
  // 919876543210 is an Indian number with its country code and, dialled in Germany, a German one: the caller must know.
  const otherwise = digits.length >= 10 ? international(digits, false) : undefined;
  return reachable(national.number, national.getType(), otherwise?.ok === true && otherwise.e164 !== national.number);
}

function international(digits: string, ambiguous: boolean): NormalisedNumber {
  if (digits.length > 15) return { ok: false, code: 'number_too_long' };
  if (digits.length < 7) return { ok: false, code: 'number_too_short' };
  const read = readInternational(digits);
  if (read === null) return { ok: false, code: 'number_invalid' };
  return read.reachable ? { ok: true, e164: read.e164, ambiguous } : { ok: false, code: 'number_not_reachable' };
}

const DIGITS = Buffer.alloc(16);

/**
 * The same for a number that lies as bytes in a file and is written as nearly all are: plus, digits, and white space or
 * punctuation of ASCII between them. Null for every other, which goes the long way.
 */
export function readDigits(bytes: Uint8Array, from: number, to: number, declared: NumberDeclaration): NormalisedNumber | null {
  let length = 0;
  let plus = false;
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!;
    if (byte >= 0x30 && byte <= 0x39) {
      if (length === 15) return null;
      DIGITS[length++] = byte;
    } else if (byte === 0x2b && length === 0 && !plus) {
      plus = true;
    } else if (byte !== 0x20 && byte !== 0x2d && byte !== 0x2e && byte !== 0x28 && byte !== 0x29 && byte !== 0x2f) {
      return null;
    }
  }
  if (length < 7 || (!plus && (declared.digits !== 'international' || DIGITS[0] === 0x30))) return null;
  return international(DIGITS.toString('latin1', 0, length), false);
}

function reachable(e164: string, type: string | undefined, ambiguous: boolean): NormalisedNumber {
  if (type === 'PREMIUM_RATE' || type === 'SHARED_COST') return { ok: false, code: 'number_not_reachable' };
  return { ok: true, e164, ambiguous };
}

/** First and last digits only: enough to recognise one's own number, not enough to call a stranger's. */
export function maskNumber(text: string): string {
  const kept = text.trim().slice(0, 40);
  const digits = kept.replace(/[^0-9]/g, '').length;
  if (digits < 7) return kept;
  let seen = 0;
  return kept.replace(/[0-9]/g, (digit) => {
    seen++;
    return seen <= 4 || seen > digits - 2 ? digit : '*';
  });
}
