import { sample } from '../../test-support/samples';
import { templateSend } from '../../test-support/send-message';
import { readSendRequest } from './read-send-request';

const code = (body: unknown): number | undefined => {
  const read = readSendRequest(body);
  return 'refusal' in read ? read.refusal.code : undefined;
};
const withComponents = (...components: unknown[]): unknown =>
  templateSend('+12025550143', { template: { name: 'a', language: { code: 'en' }, components } });
const text = (value: string): unknown => ({ type: 'text', text: value });

describe('readSendRequest', () => {
  it('takes the recorded template send', () => {
    const { body } = sample('wa-send-template-request');
    expect(readSendRequest(body)).toEqual({
      request: {
        input: '+12025550143',
        recipient: '12025550143',
        isUserId: false,
        token: 'p1.att.01JZ8Q2K7M4T9X3V6B0N5R1HDA',
        type: 'template',
        template: {
          name: 'autumn_offer',
          language: 'en_US',
          components: [
            { type: 'header', parameters: [{}] },
            { type: 'body', parameters: [{ name: 'first_name' }, { name: 'discount' }] },
            { type: 'button', index: '0', parameters: [{}] },
            { type: 'button', index: '1', parameters: [{}] },
          ],
        },
      },
    });
  });

  it('takes free-form messages, a spaced number and a business-scoped user id', () => {
    const send = { messaging_product: 'whatsapp', to: '+1 (202) 555-0143', type: 'text', text: { body: 'hello' } };
    expect(readSendRequest(send)).toMatchObject({ request: { recipient: '12025550143', type: 'text', token: '' } });
    const { to: _, ...rest } = send;
    expect(readSendRequest({ ...rest, recipient: 'US.13491208655302741918' })).toMatchObject({
      request: { recipient: 'US.13491208655302741918', isUserId: true },
    });
    expect(code({ ...send, type: 'image', image: { link: 'https://example.com/a.png' }, text: undefined })).toBeUndefined();
    expect(code({ ...send, type: 'location', location: { latitude: '1', longitude: '2' } })).toBeUndefined();
  });

  const cases: [string, unknown, number][] = [
    ['no JSON object', undefined, 100],
    ['no messaging_product', templateSend('+12025550143', { messaging_product: undefined }), 100],
    ['another messaging_product', templateSend('+12025550143', { messaging_product: 'sms' }), 100],
    ['a group', templateSend('+12025550143', { recipient_type: 'group' }), 100],
    ['no recipient', templateSend('+12025550143', { to: undefined }), 100],
    ['a number without plus', templateSend('12025550143'), 131009],
    ['a number that is none', templateSend('+120'), 131009],
    ['a number with letters', templateSend('+1202555abcd'), 131009],
    ['a user id that is none', templateSend('', { to: undefined, recipient: 'nobody' }), 131009],
    ['a token of 513 characters', templateSend('+12025550143', { biz_opaque_callback_data: 'x'.repeat(513) }), 100],
    ['a token that is no string', templateSend('+12025550143', { biz_opaque_callback_data: 5 }), 100],
    ['an unknown type', templateSend('+12025550143', { type: 'telegram' }), 100],
    ['no template', templateSend('+12025550143', { template: undefined }), 131008],
    ['no template name', templateSend('+12025550143', { template: { language: { code: 'en' } } }), 131008],
    ['no language', templateSend('+12025550143', { template: { name: 'a' } }), 131008],
    [
      'components that are no list',
      templateSend('+12025550143', { template: { name: 'a', language: { code: 'en' }, components: {} } }),
      100,
    ],
    ['an unknown component', withComponents({ type: 'footer' }), 100],
    ['a button without sub_type', withComponents({ type: 'button', index: '0', parameters: [text('a')] }), 131008],
    ['a button without index', withComponents({ type: 'button', sub_type: 'url', parameters: [text('a')] }), 100],
    ['a parameter without its value', withComponents({ type: 'body', parameters: [{ type: 'text' }] }), 131008],
    ['an empty text', withComponents({ type: 'body', parameters: [text('')] }), 131008],
    ['a new line in a body parameter', withComponents({ type: 'body', parameters: [text('a\nb')] }), 132018],
    ['a carousel without cards', withComponents({ type: 'carousel', cards: [] }), 131008],
    ['a text without body', { messaging_product: 'whatsapp', to: '+12025550143', type: 'text', text: {} }, 131008],
    [
      'a text of 4,097 characters',
      { messaging_product: 'whatsapp', to: '+12025550143', type: 'text', text: { body: 'x'.repeat(4097) } },
      100,
    ],
    ['media without id or link', { messaging_product: 'whatsapp', to: '+12025550143', type: 'image', image: {} }, 131008],
  ];

  it.each(cases)('refuses %s', (_, body, expected) => {
    expect(code(body)).toBe(expected);
  });

  it('allows the longest token', () => {
    expect(code(templateSend('+12025550143', { biz_opaque_callback_data: 'x'.repeat(512) }))).toBeUndefined();
  });
});
