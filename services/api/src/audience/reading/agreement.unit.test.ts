import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';
import examples from 'libphonenumber-js/examples.mobile.json';
import metadata from 'libphonenumber-js/metadata.max.json';
import { recipientHash } from '#contracts/ids';
import { normaliseNumber, readDigits, type NumberDeclaration } from '../numbers/normalise-number';
import { readInternational } from '../numbers/phone-plans';
import { BlockReader } from './read-block';
import { readHeader } from './read-header';
import { readRecipient, type ReadingRules } from './read-recipient';
import { RecipientChunks } from '../chunks/recipient-chunks';
import { rowDigest } from './row-digest';
import { SetHash } from '../chunks/set-hash';
import { Hmac } from './hmac';

const idKey = Buffer.alloc(32, 5);
const plans = metadata as unknown as {
  country_calling_codes: Record<string, string[]>;
  countries: Record<string, [string, string, string, ...unknown[]]>;
  nonGeographic: Record<string, [string, string, string, ...unknown[]]>;
};

function byTheLibrary(digits: string): { e164: string; reachable: boolean } | null {
  const parsed = parsePhoneNumberFromString(`+${digits}`, { extract: false });
  if (!parsed?.isValid()) return null;
  const type = parsed.getType();
  return { e164: parsed.number, reachable: type !== 'PREMIUM_RATE' && type !== 'SHARED_COST' };
}

/** Numbers as the plans describe them, all types of them, whole or damaged, with trunk prefixes where none belongs. */
const planned = fc
  .constantFrom(...Object.values(plans.countries), ...Object.values(plans.nonGeographic))
  .chain((plan) => {
    const types = (plan[11] as Array<[string] | undefined> | 0 | undefined) || [];
    const patterns = [plan[2], ...types.flatMap((type) => (type?.[0] ? [type[0]] : []))];
    return fc.tuple(fc.constant(plan), fc.constantFrom(...patterns));
  })
  .chain(([plan, pattern]) => fc.tuple(fc.constant(plan[0]), fc.stringMatching(new RegExp(`^(?:${pattern})$`))))
  .map(([code, national]) => ({ code, national }));

const digit = fc.constantFrom(...'0123456789');
const internationalDigits = fc
  .oneof(
    { weight: 5, arbitrary: planned },
    {
      weight: 1,
      arbitrary: fc.record({
        code: fc.constantFrom(...Object.keys(plans.country_calling_codes)),
        national: fc.string({ unit: digit, maxLength: 13 }),
      }),
    },
  )
  .chain(({ code, national }) =>
    fc.record({
      code: fc.constant(code),
      prefix: fc.oneof(
        { weight: 4, arbitrary: fc.constant('') },
        fc.constantFrom('0', '1', '8', '00', '15', '90', '06'),
        fc.string({ unit: digit, maxLength: 2 }),
      ),
      national: fc.oneof(
        { weight: 4, arbitrary: fc.constant(national) },
        fc.nat(3).map((cut) => national.slice(cut)),
      ),
      more: fc.oneof({ weight: 4, arbitrary: fc.constant('') }, fc.string({ unit: digit, maxLength: 2 })),
    }),
  )
  .map(({ code, prefix, national, more }) => (code + prefix + national + more).slice(0, 15))
  .filter((digits) => digits.length >= 7);

describe('numbers read from compiled plans', () => {
  it('are what the library says, of every country and kind', () => {
    let valid = 0;
    let unreachable = 0;
    fc.assert(
      fc.property(internationalDigits, (digits) => {
        const expected = byTheLibrary(digits);
        if (expected) valid++;
        if (expected && !expected.reachable) unreachable++;
        expect(readInternational(digits)).toEqual(expected);
      }),
      { numRuns: 4_000 },
    );
    // Otherwise the property would hold for a reader that refuses everything, or calls everything reachable.
    expect(valid).toBeGreaterThan(1_000);
    expect(unreachable).toBeGreaterThan(50);
  });

  it('hold the example of every country', () => {
    for (const [country, national] of Object.entries(examples as Record<string, string>)) {
      const digits = `${plans.countries[country]![0]}${national}`;
      expect(readInternational(digits)).toEqual(byTheLibrary(digits));
      expect(readInternational(digits)).toMatchObject({ reachable: true });
    }
  });

  it('in a file are read as the same text in a request is', () => {
    const text = fc.oneof(
      fc
        .tuple(
          internationalDigits,
          fc.array(fc.constantFrom(' ', '-', '.', '(', ')', '/', '', '', ''), { minLength: 16, maxLength: 16 }),
        )
        .map(([digits, between]) => `${between[0]}+${[...digits].map((one, at) => one + between[at + 1]).join('')}`),
      fc.string({ unit: fc.constantFrom(...'0123456789+ -()\t\u00a0x'), maxLength: 20 }),
      internationalDigits,
      internationalDigits.map((digits) => `00${digits}`),
    );
    const declared = fc.constantFrom<NumberDeclaration>({}, { digits: 'international' }, { defaultCountry: 'DE' });
    let short = 0;
    fc.assert(
      fc.property(text, declared, (given, how) => {
        const bytes = Buffer.from(given);
        const read = readDigits(bytes, 0, bytes.length, how);
        if (read === null) return;
        short++;
        expect(read).toEqual(normaliseNumber(given, how));
      }),
      { numRuns: 2_000 },
    );
    expect(short).toBeGreaterThan(500);
  });
});

describe('hashes of recipients', () => {
  it('are those of node:crypto, whatever the length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 100 }), (bytes, key) => {
        const made = new Uint8Array(32);
        new Hmac(key).sign(bytes, 0, bytes.length, made, 0, 8);
        expect(Buffer.from(made)).toEqual(createHmac('sha256', key).update(bytes).digest());
      }),
    );
  });
});

describe('digests of rows', () => {
  it('are MurmurHash3: the verification value of its author comes out', () => {
    const key = Uint8Array.from({ length: 256 }, (_, at) => at);
    const all = new Uint32Array(4 * 256);
    for (let length = 0; length < 256; length++) rowDigest(key, 0, length, all, length * 4, 256 - length);
    const final = new Uint32Array(4);
    rowDigest(new Uint8Array(all.buffer), 0, all.byteLength, final, 0);
    expect(final[0]!.toString(16)).toBe('b3ece62a');
  });
});

describe('rows of a file', () => {
  const value = fc.string({
    unit: fc.constantFrom('a', 'é', '"', ',', '\n', '\\', '\t', '\u0001', '\u007f', ' ', '😀', '\u2028'),
    maxLength: 8,
  });
  const recipient = fc.record({
    to: fc.oneof(
      internationalDigits.map((digits) => `+${digits}`),
      fc.constantFrom('+12025550143', '+4915112345678', '015112345678', ' +1 202-555-0143 ', 'n/a', ''),
    ),
    ref: fc.oneof(fc.constantFrom('', 'r1', ' r2 ', '\u00a0r3'), fc.string({ unit: 'grapheme', maxLength: 140 })),
    timeZone: fc.constantFrom('', 'Europe/Berlin', ' Asia/Kolkata', 'Mars/Base'),
    first: fc.oneof(
      value,
      fc.string({ unit: 'grapheme-composite', maxLength: 10 }),
      fc.constantFrom('x'.repeat(1_024), 'x'.repeat(1_025), 'é'.repeat(1_024)),
    ),
    second: value,
  });

  it('become what the same recipients in a request become, byte by byte', () => {
    fc.assert(
      fc.property(
        fc.array(recipient, { minLength: 1, maxLength: 12 }),
        fc.constantFrom<Omit<ReadingRules, 'idKey'>>(
          { distinctBy: 'number' },
          { distinctBy: 'ref', digits: 'international' },
          { distinctBy: 'number', defaultCountry: 'DE' },
        ),
        fc.constantFrom('\n', '\r\n'),
        (recipients, rules, lineEnd) => {
          const header = readHeader('ref,phone,first,timeZone,second\n');
          if (!header.ok) throw new Error(header.detail);
          const rows = recipients.map(({ ref, to, first, timeZone, second }) => [ref, to, first, timeZone, second]);
          const text = rows.map((row) => row.map(field).join(',') + lineEnd).join('');
          const block = new BlockReader(idKey).read(Buffer.from(text), header.layout, rules);

          const expected = rows.map(([ref, to, first, timeZone, second]) =>
            readRecipient(
              {
                to: to!,
                ref: ref!.trim(),
                timeZone: timeZone!.trim(),
                values: [first, second].map((one) => (one === '' ? null : one!)),
              },
              { ...rules, idKey },
            ),
          );
          const accepted = expected.flatMap((one, record) => (one.ok ? [{ ...one, record }] : []));
          const texts = accepted.map(({ recipient: { to, ref, timeZone, values } }) =>
            JSON.stringify([to, ref, timeZone, ...values]),
          );
          const chunks = new RecipientChunks(['first', 'second']);
          for (const { recipient: valid } of accepted) chunks.add(valid, Buffer.alloc(8));
          const { last, setHash } = chunks.finish();
          const sum = new SetHash();
          sum.addSum(block.digestSum, block.accepted);
          expect(Buffer.from(block.rows).toString()).toBe(texts.join(','));
          expect(last?.json.toString() ?? null).toBe(
            texts.length === 0 ? null : `{"columns":["first","second"],"rows":[${texts.join(',')}]}`,
          );
          expect([...block.rowEnds]).toEqual(texts.map((_, at) => Buffer.byteLength(texts.slice(0, at + 1).join(','))));
          expect(Buffer.from(block.hashes)).toEqual(Buffer.concat(accepted.map(({ key }) => recipientHash(idKey, key))));
          expect(sum.digest(['first', 'second'])).toEqual(setHash);
          expect([...block.recordOf]).toEqual(accepted.map(({ record }) => record));
          expect(block.ambiguous).toEqual(accepted.flatMap(({ ambiguous }, at) => (ambiguous ? [at] : [])));
          expect(block.rejected.map(({ record, code, value: shown }) => ({ record, code, shown }))).toEqual(
            expected.flatMap((one, record) => (one.ok ? [] : [{ record, code: one.code, shown: one.value }])),
          );
        },
      ),
      { numRuns: 300 },
    );
  });

  function field(text: string): string {
    return /["\n,\r]/.test(text) || /^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  it('hash under the key as the contracts do', () => {
    const header = readHeader('phone\n');
    if (!header.ok) throw new Error(header.detail);
    const { hashes } = new BlockReader(idKey).read(Buffer.from('+12025550143\n'), header.layout, { distinctBy: 'number' });
    expect(Buffer.from(hashes)).toEqual(recipientHash(idKey, '+12025550143'));
  });
});
