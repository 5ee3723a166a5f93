import type { Recipient } from '#contracts/audience-chunk';
import type { MessageContent, TemplateBody, TemplateButton, TemplateContent, TemplateHeader } from '#contracts/content';
import { render } from '#contracts/placeholders';

type Json = { [name: string]: Json | string | number | boolean | Json[] };

export type BuiltRequest = { ok: true; body: string } | { ok: false; missing: string[] };

/**
 * The JSON of one send (`POST /{version}/{phone_number_id}/messages`), shapes of provider-semantics 1.1 to 1.3. `to` keeps its
 * plus: without it Meta puts the sender's country code in front and a stranger gets the message.
 * Refused where the recipient has no value for a placeholder: half a sentence is worse than none.
 */
export function buildRequest(
  content: MessageContent,
  recipient: Pick<Recipient, 'to' | 'parameters'>,
  token: string,
): BuiltRequest {
  const fill = new Filler(recipient.parameters);
  const envelope = { messaging_product: 'whatsapp', recipient_type: 'individual', to: recipient.to };
  const message: Json =
    'template' in content
      ? { ...envelope, type: 'template', template: template(content.template, fill), biz_opaque_callback_data: token }
      : {
          ...envelope,
          type: 'text',
          text: { preview_url: true, body: fill.text(content.text) },
          biz_opaque_callback_data: token,
        };
  if (fill.missing.size > 0) return { ok: false, missing: [...fill.missing] };
  return { ok: true, body: JSON.stringify(message) };
}

class Filler {
  readonly missing = new Set<string>();
  constructor(private readonly parameters: Readonly<Record<string, string>>) {}

  text(text: string): string {
    // Most strings of a template hold no placeholder at all.
    if (!text.includes('{{')) return text;
    const rendered = render(text, this.parameters);
    if (rendered.ok) return rendered.text;
    for (const name of rendered.missing) this.missing.add(name);
    return '';
  }

  /**
   * Meta refuses template parameters with line breaks, tabs or more than four spaces in a row (132018): a stray line break in
   * one cell of a file must not cost that recipient the message.
   */
  parameter(text: string): string {
    const filled = this.text(text);
    return /[\n\r\t]| {5}/.test(filled) ? filled.replace(/[\n\r\t]+/g, ' ').replace(/ {5,}/g, '    ') : filled;
  }
}

function template(content: TemplateContent, fill: Filler): Json {
  const components = parts(content, fill);
  if (content.carousel) {
    const cards = content.carousel.cards.map((card, index) => ({ card_index: index, components: parts(card, fill) }));
    components.push({ type: 'carousel', cards });
  }
  const named: Json = { name: content.name, language: { code: content.language } };
  return components.length > 0 ? { ...named, components } : named;
}

function parts(content: { header?: TemplateHeader; body?: TemplateBody; buttons?: TemplateButton[] }, fill: Filler): Json[] {
  const components: Json[] = [];
  if (content.header) components.push({ type: 'header', parameters: [header(content.header, fill)] });
  if (content.body) {
    const parameters = body(content.body, fill);
    if (parameters.length > 0) components.push({ type: 'body', parameters });
  }
  for (const each of content.buttons ?? []) components.push(button(each, fill));
  return components;
}

function header(content: TemplateHeader, fill: Filler): Json {
  if ('text' in content) return { type: 'text', text: fill.parameter(content.text) };
  if ('image' in content) return { type: 'image', image: media(content.image, fill) };
  if ('video' in content) return { type: 'video', video: media(content.video, fill) };
  if ('document' in content) {
    const { filename } = content.document;
    return {
      type: 'document',
      document: { ...media(content.document, fill), ...(filename === undefined ? {} : { filename: fill.text(filename) }) },
    };
  }
  const { latitude, longitude, name, address } = content.location;
  return {
    type: 'location',
    location: {
      latitude: String(latitude),
      longitude: String(longitude),
      ...(name === undefined ? {} : { name: fill.text(name) }),
      ...(address === undefined ? {} : { address: fill.text(address) }),
    },
  };
}

function media(content: { link: string } | { id: string }, fill: Filler): Json {
  return 'id' in content ? { id: fill.text(content.id) } : { link: fill.text(content.link) };
}

/** A list fills a positional template in order, an object a named one. */
function body(content: TemplateBody, fill: Filler): Json[] {
  if (Array.isArray(content)) return content.map((text) => ({ type: 'text', text: fill.parameter(text) }));
  return Object.entries(content).map(([name, text]) => ({ type: 'text', parameter_name: name, text: fill.parameter(text) }));
}

function button(content: TemplateButton, fill: Filler): Json {
  // Meta's pages show the index as number and as text; text is what all of them accept.
  const index = String(content.index);
  if ('quickReply' in content) {
    const parameters = [{ type: 'payload', payload: fill.text(content.quickReply) }];
    return { type: 'button', sub_type: 'quick_reply', index, parameters };
  }
  if ('url' in content) {
    return { type: 'button', sub_type: 'url', index, parameters: [{ type: 'text', text: fill.text(content.url) }] };
  }
  const parameters = [{ type: 'coupon_code', coupon_code: fill.text(content.copyCode) }];
  return { type: 'button', sub_type: 'copy_code', index, parameters };
}
