import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { getCountryCallingCode, type CountryCode } from 'libphonenumber-js/max';
import examples from 'libphonenumber-js/examples.mobile.json';

/** Where large campaigns go; numbers are the published example of the country with other last digits. */
// prettier-ignore
const COUNTRIES: CountryCode[] = [
  'US', 'DE', 'IN', 'BR', 'GB', 'FR', 'ES', 'IT', 'MX', 'ID', 'NG', 'ZA', 'TR', 'PL', 'NL',
  'SE', 'AU', 'JP', 'KR', 'PH', 'VN', 'EG', 'SA', 'AE', 'AR', 'CO', 'CA', 'MY', 'KE', 'PK',
];
const NAMES = ['Ελένη', 'Nguyễn', '이서연', 'Søren', 'Anna', 'Bob', 'José', 'Müller', 'Ivan', 'Grace'];

export interface MadeRecipient {
  phone: string;
  ref: string;
  firstName: string;
  discount: string;
  code: string;
}

/** The same rows in every run. One number in five is written with separators; a few come twice and a few are no numbers. */
export function* makeRecipients(count: number): Generator<MadeRecipient> {
  let state = 1;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 0x1_0000_0000) * below);
  };
  for (let index = 0; index < count; index++) {
    const country = COUNTRIES[random(COUNTRIES.length)]!;
    const example = (examples as Record<string, string>)[country]!;
    let national = example.slice(0, Math.max(3, example.length - 7));
    while (national.length < example.length) national += random(10);
    const code = getCountryCallingCode(country);
    yield {
      phone:
        random(5) === 0 ? `+${code} ${national.slice(0, 3)}-${national.slice(3, 6)} ${national.slice(6)}` : `+${code}${national}`,
      ref: `customer-${10_000 + index}`,
      firstName: NAMES[random(NAMES.length)]!,
      discount: `${5 * random(6)}%`,
      code: `SUN${random(0x10000).toString(16).toUpperCase()}`,
    };
  }
}

export async function writeRecipients(file: string, count: number): Promise<void> {
  const stream = createWriteStream(file);
  let text = 'phone,ref,firstName,discount,code\n';
  for (const { phone, ref, firstName, discount, code } of makeRecipients(count)) {
    text += `${phone},${ref},${firstName},${discount},${code}\n`;
    if (text.length > 1_000_000) {
      if (!stream.write(text)) await once(stream, 'drain');
      text = '';
    }
  }
  stream.end(text);
  await once(stream, 'close');
}
