import fc from 'fast-check';
import { openChunk, sealChunk } from './audience-chunk';
import { draftToEvent } from './draft';
import { placeholdersOf, render } from './placeholders';
import { Codec } from './codec';

describe('placeholders', () => {
  it('are replaced by a recipient parameter, literal braces stay', () => {
    expect(
      render('Hi {{firstName}}, {{ discount }} off; write {{{{code}} to see it', { firstName: 'Zoë', discount: '20 %' }),
    ).toEqual({
      ok: true,
      text: 'Hi Zoë, 20 % off; write {{code}} to see it',
    });
  });

  it('name what is missing, also names that objects inherit', () => {
    expect(render('{{a}} {{toString}} {{b}}', { a: '1' })).toEqual({ ok: false, missing: ['toString', 'b'] });
    expect(placeholdersOf('{{a}} {{b}} {{a}} {{{{c}}')).toEqual(['a', 'b']);
  });

  it('never read a parameter as a template', () => {
    expect(render('{{a}}', { a: '{{b}}', b: 'secret' })).toEqual({ ok: true, text: '{{b}}' });
  });
});

describe('sealed chunks', () => {
  it('give back what was sealed', () => {
    const recipient = fc.record({
      to: fc.string(),
      ref: fc.option(fc.string()),
      timeZone: fc.option(fc.string()),
      parameters: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.string({ unit: 'grapheme' })),
    });
    fc.assert(
      fc.property(fc.array(recipient, { maxLength: 20 }), (recipients) => {
        const opened = openChunk(sealChunk(['a', 'b', 'c'], recipients));
        expect(opened).toEqual(recipients.map((one) => ({ ...one, parameters: { ...one.parameters } })));
      }),
    );
  });
});

describe('drafts of events', () => {
  it('become the event they describe', () => {
    const draft = {
      name: 'RunReleased',
      event: { eventId: 'evt_1', at: 5, runId: '00'.repeat(12), scheduleId: '11'.repeat(16), revision: 1, released: 3 },
    };
    const { name, event } = draftToEvent(draft);
    expect(new Codec().decode(new Codec().encode(name, event as never))).toEqual({ name, event });
  });

  it('are refused when an id is no hex', () => {
    expect(() => draftToEvent({ name: 'RunReleased', event: { runId: '\\x00' } })).toThrow(/runId/);
  });
});
