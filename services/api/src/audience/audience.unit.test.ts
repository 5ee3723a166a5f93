import { deflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { openChunk, sealChunk } from '#contracts/audience-chunk';
import { recipientHash } from '#contracts/ids';
import { ChunkBuilder } from './chunks/chunk-builder';
import { DistinctRecipients } from './chunks/distinct-recipients';
import { maskNumber, normaliseNumber } from './numbers/normalise-number';
import { BlockReader } from './reading/read-block';
import { readHeader } from './reading/read-header';
import { prepareInlineAudience } from './seal-inline-audience';
import { RecordSplitter } from './reading/split-records';

const idKey = Buffer.alloc(32, 5);
const rules = { distinctBy: 'number' as const, idKey };

describe('numbers', () => {
  it.each([
    ['+1 (202) 555-0143', {}, '+12025550143'],
    ['+61 491 570 156', {}, '+61491570156'],
    ['\u202a+1\u00a0202\u2011555\u20110143\u202c', {}, '+12025550143'],
    ['＋12025550143', {}, '+12025550143'],
    ['919999900000', { digits: 'international' as const }, '+919999900000'],
    ['00919999900000', { digits: 'international' as const }, '+919999900000'],
    ['0491 570 156', { defaultCountry: 'AU' }, '+61491570156'],
    ['+12025550143', { defaultCountry: 'AU' }, '+12025550143'],
  ])('%s becomes %s', (text, declared, e164) => {
    expect(normaliseNumber(text, declared)).toMatchObject({ ok: true, e164 });
  });

  it.each([
    ['', {}, 'number_missing'],
    [' - ', {}, 'number_missing'],
    ['n/a', {}, 'number_invalid'],
    ['+1 202 555 FLOWERS', {}, 'number_invalid'],
    ['++12025550143', {}, 'number_invalid'],
    ['0491570156', {}, 'number_needs_country'],
    ['+46 70', {}, 'number_too_short'],
    ['+1234567890123456', {}, 'number_too_long'],
    ['+99912345678', {}, 'number_invalid'],
    ['+19005550143', {}, 'number_not_reachable'],
  ])('%s is refused as %s', (text, declared, code) => {
    expect(normaliseNumber(text, declared)).toEqual({ ok: false, code });
  });

  it('that are valid both ways are marked', () => {
    expect(normaliseNumber('919876543210', { defaultCountry: 'DE' })).toEqual({
      ok: true,
      e164: '+49919876543210',
      ambiguous: true,
    });
    expect(normaliseNumber('0491570156', { defaultCountry: 'AU' })).toMatchObject({ ambiguous: false });
  });

  it('are shortened where they are shown', () => {
    expect(maskNumber('+1 (202) 555-0143')).toBe('+1 (202) ***-**43');
    expect(maskNumber('n/a')).toBe('n/a');
  });
});

describe('a header', () => {
  it.each([
    ['phone,firstName\n', ',', 2],
    ['\ufeffphone;firstName;code\n', ';', 3],
    ['to\tfirstName\n', '\t', 2],
    ['"phone","ref","timeZone"\n', ',', 3],
  ])('is found whatever wrote it: %j', (text, delimiter, fields) => {
    expect(readHeader(text)).toMatchObject({ ok: true, layout: { delimiter, fields, to: 0 } });
  });

  it.each([
    ['phone,a\n+12025550143,b\nx', '+12025550143,b\nx'],
    ['"phone","a"\n+12025550143,b\nx', '+12025550143,b\nx'],
    ['phone\n', ''],
    ['phone', ''],
  ])('is followed by the rows, all of them: %j', (text, rest) => {
    expect(readHeader(text)).toMatchObject({ ok: true, rest });
  });

  it.each([
    ['\n1,2\n', 'header_missing'],
    ['name,code\n', 'header_number_missing'],
    ['phone,to\n', 'header_number_missing'],
    ['phone,first name\n', 'header_name_invalid'],
    ['phone,code,CODE\n', 'header_name_twice'],
    ['phone,__proto__\n', 'header_name_invalid'],
    ['phone,a\r+12025550143,x\r', 'line_ends_unknown'],
    [`phone,${Array.from({ length: 65 }, (_, i) => `c${i}`).join(',')}\n`, 'too_many_columns'],
  ])('is refused: %j', (text, code) => {
    expect(readHeader(text)).toMatchObject({ ok: false, code });
  });
});

describe('blocks of a file', () => {
  const cell = fc.string({ unit: fc.constantFrom('a', 'é', '"', ',', '\n', ' ', '😀'), maxLength: 8 });
  const quote = (text: string): string => (/["\n,]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  it('hold whole records wherever the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(cell, { minLength: 2, maxLength: 2 }), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 40 }),
        (table, step) => {
          const text = table.map((row) => `${row.map(quote).join(',')}\n`).join('');
          const bytes = Buffer.from(text);
          const splitter = new RecordSplitter(24, 10_000);
          const blocks: Buffer[] = [];
          for (let at = 0; at < bytes.length; at += step) {
            const block = splitter.push(bytes.subarray(at, at + step));
            if (block === 'too_long') throw new Error('no record is that long');
            if (block !== null) blocks.push(block);
          }
          const { rest, unclosed } = splitter.finish();
          expect(unclosed).toBe(false);
          blocks.push(rest);
          expect(Buffer.concat(blocks).toString()).toBe(text);
          // A cut inside a record would leave an odd number of quotes or half a row on one side.
          for (const block of blocks) {
            expect((block.toString().match(/"/g) ?? []).length % 2).toBe(0);
            if (block.length > 0) expect(block.at(-1)).toBe(0x0a);
          }
        },
      ),
    );
  });

  it('say when a record does not end, or the file ends in a quote', () => {
    const splitter = new RecordSplitter(16, 64);
    expect(splitter.push(Buffer.from('phone\n"never closed' + 'x'.repeat(100)))).toBe('too_long');
    const cut = new RecordSplitter(16, 64);
    cut.push(Buffer.from('phone\n"cut of'));
    expect(cut.finish().unclosed).toBe(true);
  });

  it('give rows with the numbers a spreadsheet shows, empty lines counted', () => {
    const header = readHeader('phone,ref,name\n');
    if (!header.ok) throw new Error(header.detail);
    const text = '+12025550143,a,Zoë\n\n+12025550144,b,\nbad,c,X\n+12025550145,d\n,,\n+12025550146,e,"f"x\n+12025550147,g,h';
    const block = new BlockReader(idKey).read(Buffer.from(text), header.layout, rules);
    expect(block).toMatchObject({ records: 8, accepted: 3 });
    expect([...block.recordOf]).toEqual([0, 2, 7]);
    expect([...block.missing!.subarray(0, 6)]).toEqual([0, 0, 1, 0, 0, 0]);
    expect(block.rejected).toEqual([
      { record: 3, code: 'number_invalid', value: 'bad' },
      { record: 4, code: 'columns_mismatch', value: '2 fields, 3 columns' },
      { record: 6, code: 'row_unreadable', value: '' },
    ]);
  });
});

describe('chunks', () => {
  it('are the bytes that the contracts would seal, 500 recipients each', () => {
    const recipients = Array.from({ length: 1_203 }, (_, i) => ({
      to: `+1202555${String(i).padStart(4, '0')}`,
      ref: null,
      timeZone: null,
      parameters: { n: `${i}` },
    }));
    const builder = new ChunkBuilder(['n']);
    const chunks = recipients.flatMap((one) => {
      const row = Buffer.from(JSON.stringify([one.to, null, null, one.parameters.n]));
      return builder.add(row, 0, row.length, recipientHash(idKey, one.to), 0, 1) ?? [];
    });
    const last = builder.finish()!;
    expect([...chunks, last].map((chunk) => chunk.count)).toEqual([500, 500, 203]);
    expect(deflateRawSync(chunks[1]!.json, { level: 1 })).toEqual(sealChunk(['n'], recipients.slice(500, 1_000)));
    expect(last.hashes.subarray(8, 16)).toEqual(recipientHash(idKey, recipients[1_001]!.to));
    expect(openChunk(deflateRawSync(last.json))).toEqual(recipients.slice(1_000));
  });
});

describe('recipients seen before', () => {
  it('are found, and only they', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 9_000 }), (ids) => {
        const seen = new DistinctRecipients();
        const model = new Map<number, number>();
        ids.forEach((id, index) => {
          const hash = Buffer.alloc(8);
          hash.writeUInt32BE(id * 7_919, 0);
          hash.writeUInt32BE(id % 17, 4);
          expect(seen.firstRowOf(hash, 0, index + 1)).toBe(model.get(id) ?? 0);
          if (!model.has(id)) model.set(id, index + 1);
        });
        expect(seen.size).toBe(model.size);
      }),
      { numRuns: 20 },
    );
  });
});

describe('recipients of a request', () => {
  const inline = (...numbers: string[]) => numbers.map((to, index) => ({ index, to, parameters: { name: `n${index}` } }));

  it('get a result each: accepted, rejected, or a duplicate of an earlier one', () => {
    const audience = prepareInlineAudience(inline('+1 202 555 0143', 'nope', '+12025550143', '+12025550144'), rules);
    expect(audience.results).toMatchObject([
      { index: 0, result: 'accepted', position: 0 },
      { index: 1, result: 'rejected', error: { code: 'number_invalid' } },
      { index: 2, result: 'duplicate', duplicateOf: 0 },
      { index: 3, result: 'accepted', position: 1 },
    ]);
    expect(audience.chunks.map((chunk) => chunk.count)).toEqual([2]);
  });

  it('are one set whatever their order, and another with other parameters', () => {
    const people = [
      { index: 0, to: '+12025550143', parameters: { a: '1' } },
      { index: 1, to: '+12025550144', parameters: { a: '2' } },
    ];
    const hash = prepareInlineAudience(people, rules).setHash;
    expect(prepareInlineAudience([...people].reverse(), rules).setHash).toEqual(hash);
    expect(prepareInlineAudience([people[0]!, { ...people[1]!, parameters: { a: '3' } }], rules).setHash).not.toEqual(hash);
  });

  it('share a number when they are told apart by ref', () => {
    const family = [
      { index: 0, to: '+12025550143', ref: 'anna' },
      { index: 1, to: '+12025550143', ref: 'ben' },
      { index: 2, to: '+12025550143', ref: 'anna' },
      { index: 3, to: '+12025550143' },
    ];
    expect(prepareInlineAudience(family, { ...rules, distinctBy: 'ref' }).results.map((one) => one.result)).toEqual([
      'accepted',
      'accepted',
      'duplicate',
      'rejected',
    ]);
  });
});
