import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { attemptToken } from '#contracts/attempt-token';
import { messageContent, type MessageContent } from '#contracts/content';
import { buildRequest } from './build-request';

const INES = { to: '+12025550143', parameters: { firstName: 'Ines', discount: '20%', code: 'autumn?c=7f3' } };
const TOKEN = attemptToken(Buffer.alloc(32, 1), Buffer.alloc(20, 2), 1);

function built(content: MessageContent, recipient: Parameters<typeof buildRequest>[1] = INES): ReturnType<typeof JSON.parse> {
  const request = buildRequest(messageContent.parse(content) as MessageContent, recipient, TOKEN);
  if (!request.ok) throw new Error(`missing ${request.missing.join()}`);
  return JSON.parse(request.body);
}

const template = (rest: object): MessageContent => ({ template: { name: 'autumn_offer', language: 'en_US', ...rest } });

describe('the request of one send', () => {
  it('is exactly the sample of a template with image header, named body, URL and quick-reply button', () => {
    const { body } = JSON.parse(readFileSync(join(__dirname, 'samples/wa-send-template-request.json'), 'utf8'));
    const content = template({
      header: { image: { id: '1122334455667788' } },
      body: { first_name: '{{firstName}}', discount: '{{discount}}' },
      buttons: [
        { index: 0, url: '{{code}}' },
        { index: 1, quickReply: 'STOP_PROMO' },
      ],
    });
    expect(built(content)).toEqual(body);
  });

  it('fills a positional body in order', () => {
    expect(built(template({ body: ['Hello {{firstName}}', '{{discount}}'] })).template.components).toEqual([
      {
        type: 'body',
        parameters: [
          { type: 'text', text: 'Hello Ines' },
          { type: 'text', text: '20%' },
        ],
      },
    ]);
  });

  it('leaves components out where the template has no variables', () => {
    expect(built(template({})).template).toEqual({ name: 'autumn_offer', language: { code: 'en_US' } });
  });

  it.each([
    [{ text: 'Sale for {{firstName}}' }, { type: 'text', text: 'Sale for Ines' }],
    [
      { image: { link: 'https://cdn.example.com/{{code}}.jpg' } },
      { type: 'image', image: { link: 'https://cdn.example.com/autumn?c=7f3.jpg' } },
    ],
    [{ video: { id: '77' } }, { type: 'video', video: { id: '77' } }],
    [
      { document: { id: '78', filename: 'for-{{firstName}}.pdf' } },
      { type: 'document', document: { id: '78', filename: 'for-Ines.pdf' } },
    ],
    [
      { location: { latitude: 37.44, longitude: -122.16, name: 'Depot', address: '101 Forest Ave' } },
      { type: 'location', location: { latitude: '37.44', longitude: '-122.16', name: 'Depot', address: '101 Forest Ave' } },
    ],
  ])('writes the header %j', (header, parameter) => {
    expect(built(template({ header })).template.components).toEqual([{ type: 'header', parameters: [parameter] }]);
  });

  it('writes every kind of button with its position in the template', () => {
    const buttons = [
      { index: 0, quickReply: 'MORE' },
      { index: 1, url: '{{code}}' },
      { index: 2, copyCode: '20OFF' },
    ];
    expect(built(template({ buttons })).template.components).toEqual([
      { type: 'button', sub_type: 'quick_reply', index: '0', parameters: [{ type: 'payload', payload: 'MORE' }] },
      { type: 'button', sub_type: 'url', index: '1', parameters: [{ type: 'text', text: 'autumn?c=7f3' }] },
      { type: 'button', sub_type: 'copy_code', index: '2', parameters: [{ type: 'coupon_code', coupon_code: '20OFF' }] },
    ]);
  });

  it('writes a carousel card by card', () => {
    const card = { header: { image: { id: '1558' } }, body: ['{{firstName}}'], buttons: [{ index: 0, quickReply: 'more' }] };
    const [carousel] = built(template({ carousel: { cards: [card, card] } })).template.components;
    expect(carousel.cards.map((each: { card_index: number }) => each.card_index)).toEqual([0, 1]);
    expect(carousel.cards[1].components).toEqual([
      { type: 'header', parameters: [{ type: 'image', image: { id: '1558' } }] },
      { type: 'body', parameters: [{ type: 'text', text: 'Ines' }] },
      { type: 'button', sub_type: 'quick_reply', index: '0', parameters: [{ type: 'payload', payload: 'more' }] },
    ]);
  });

  it('writes free text', () => {
    expect(built({ text: 'Hi {{firstName}}' })).toEqual({
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: '+12025550143',
      type: 'text',
      text: { preview_url: true, body: 'Hi Ines' },
      biz_opaque_callback_data: TOKEN,
    });
  });

  it('names every placeholder that the recipient has no value for, and sends nothing', () => {
    const content = template({ body: ['{{firstName}} {{city}}'], header: { text: '{{season}}' } });
    expect(buildRequest(content, INES, TOKEN)).toEqual({ ok: false, missing: ['season', 'city'] });
  });

  it('never lets a value of a recipient change anything but the text it stands in', () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ unit: 'binary' }), (name, city) => {
        const request = built(template({ body: ['{{name}}', 'x{{city}}'] }), {
          to: '+4915112345678',
          parameters: { name, city },
        });
        const [first, second] = request.template.components[0].parameters;
        expect(Object.keys(first)).toEqual(['type', 'text']);
        expect(first.text).not.toMatch(/[\n\r\t]| {5}/);
        expect(second.text.startsWith('x')).toBe(true);
        expect(request.to).toBe('+4915112345678');
        expect(request.biz_opaque_callback_data).toBe(TOKEN);
      }),
    );
  });
});
