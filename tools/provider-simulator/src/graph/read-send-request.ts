import type { GraphRefusal } from './graph-errors';
import type { SentComponent } from './template-definitions';

export interface SendRequest {
  /** As the caller wrote it. */
  input: string;
  /** Digits of the E.164 number, or the business-scoped user id. */
  recipient: string;
  isUserId: boolean;
  token: string;
  type: string;
  template?: { name: string; language: string; components: SentComponent[] };
}

export type ReadSendRequest = { request: SendRequest } | { refusal: GraphRefusal };

const MEDIA_TYPES = new Set(['image', 'document', 'video', 'audio', 'sticker']);
const OTHER_TYPES = new Set(['template', 'text', 'location', 'contacts', 'interactive', 'reaction']);
const COMPONENT_TYPES = new Set(['header', 'body', 'button', 'limited_time_offer', 'carousel']);
const E164 = /^\+[1-9][0-9]{6,14}$/;
const MAX_TOKEN = 512;
const MAX_TEXT = 4096;

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const invalid = (details: string): { refusal: GraphRefusal } => ({ refusal: { code: 100, details } });
const missing = (details: string): { refusal: GraphRefusal } => ({ refusal: { code: 131008, details } });
const badValue = (details: string): { refusal: GraphRefusal } => ({ refusal: { code: 131009, details } });

/** Judges the shape of a send as the Cloud API does; what a template needs is judged against its definition elsewhere. */
export function readSendRequest(body: unknown): ReadSendRequest {
  if (!isObject(body)) return invalid('The request body must be a JSON object.');
  if (body.messaging_product === undefined) {
    return { refusal: { code: 100, title: '(#100) The parameter messaging_product is required.' } };
  }
  if (body.messaging_product !== 'whatsapp') return invalid('Param messaging_product must be one of {WHATSAPP}');
  if (body.recipient_type !== undefined && body.recipient_type !== 'individual') {
    return invalid('Param recipient_type must be one of {INDIVIDUAL}');
  }

  const recipient = readRecipient(body);
  if ('refusal' in recipient) return recipient;

  const token = body.biz_opaque_callback_data ?? '';
  if (typeof token !== 'string') return invalid('Param biz_opaque_callback_data must be a string');
  if (token.length > MAX_TOKEN) return invalid(`Param biz_opaque_callback_data must be at most ${MAX_TOKEN} characters long.`);

  const type = body.type ?? 'text';
  if (typeof type !== 'string' || !(OTHER_TYPES.has(type) || MEDIA_TYPES.has(type))) {
    return invalid(
      `Param type must be one of {AUDIO, CONTACTS, DOCUMENT, IMAGE, INTERACTIVE, LOCATION, REACTION, STICKER, TEMPLATE, TEXT, VIDEO} - got "${String(type)}".`,
    );
  }
  const content = body[type];
  if (content === undefined) return missing(`Parameter '${type}' is mandatory for type '${type}'`);
  if (!(isObject(content) || (type === 'contacts' && Array.isArray(content))))
    return invalid(`Param ${type} must be a JSON object.`);

  const request: SendRequest = { ...recipient, token, type };
  if (type === 'template') {
    const template = readTemplate(content as Json);
    if ('refusal' in template) return template;
    return { request: { ...request, template } };
  }
  const refusal = freeFormRefusal(type, content as Json);
  return refusal ?? { request };
}

function readRecipient(body: Json): Pick<SendRequest, 'input' | 'recipient' | 'isUserId'> | { refusal: GraphRefusal } {
  if (body.to === undefined) {
    if (typeof body.recipient === 'string' && /^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$/.test(body.recipient)) {
      return { input: body.recipient, recipient: body.recipient, isUserId: true };
    }
    if (body.recipient !== undefined) return badValue('Param recipient is not a valid business-scoped user id');
    return { refusal: { code: 100, title: '(#100) The parameter to is required.' } };
  }
  if (typeof body.to !== 'string') return badValue('Parameter to must be a string');
  // Nearly every caller writes it plainly; only the others pay for the cleaning.
  if (E164.test(body.to)) return { input: body.to, recipient: body.to.slice(1), isUserId: false };
  const digits = body.to.replace(/[\s()-]/g, '');
  if (!digits.startsWith('+')) {
    return badValue(
      `Parameter to must begin with + (got ${digits.slice(0, 3)}...): without it the real API puts the sender's country code before the number, and a stranger gets the message`,
    );
  }
  if (!E164.test(digits)) return badValue('Parameter to is not a valid phone number');
  return { input: body.to, recipient: digits.slice(1), isUserId: false };
}

function readTemplate(template: Json): NonNullable<SendRequest['template']> | { refusal: GraphRefusal } {
  if (typeof template.name !== 'string' || template.name === '') return missing("Parameter 'template[name]' is mandatory");
  if (template.name.length > 512) return invalid('Param template[name] must be at most 512 characters long.');
  if (!isObject(template.language) || typeof template.language.code !== 'string' || template.language.code === '') {
    return missing("Parameter 'template[language][code]' is mandatory");
  }
  const sent: SentComponent[] = [];
  const components = template.components ?? [];
  if (!Array.isArray(components)) return invalid('Invalid parameter: template[components]');
  for (let index = 0; index < components.length; index += 1) {
    const read = readComponent(components[index], index);
    if ('refusal' in read) return read;
    sent.push(read);
  }
  return { name: template.name, language: template.language.code, components: sent };
}

/** Where in the request something is wrong: put together only when it is. */
function place(component: number, parameter?: number): string {
  return `template[components][${component}]${parameter === undefined ? '' : `[parameters][${parameter}]`}`;
}

function readComponent(component: unknown, position: number): SentComponent | { refusal: GraphRefusal } {
  if (!isObject(component)) return invalid(`Invalid parameter: ${place(position)}`);
  const type = typeof component.type === 'string' ? component.type.toLowerCase() : '';
  if (!COMPONENT_TYPES.has(type)) {
    return invalid(`Param ${place(position)}['type'] must be one of {HEADER, BODY, BUTTON, LIMITED_TIME_OFFER, CAROUSEL}`);
  }
  const read: SentComponent = { type, parameters: [] };
  if (type === 'carousel') {
    const hasCards = Array.isArray(component.cards) && component.cards.length > 0;
    return hasCards ? read : missing(`Parameter '${place(position)}[cards]' is mandatory`);
  }
  if (type === 'button') {
    if (typeof component.sub_type !== 'string') return missing(`Parameter '${place(position)}[sub_type]' is mandatory`);
    read.index = String(component.index ?? '');
    if (!/^[0-9]$/.test(read.index)) return invalid(`Param ${place(position)}['index'] must be a number from 0 to 9`);
  }
  const parameters = component.parameters ?? [];
  if (!Array.isArray(parameters)) return invalid(`Invalid parameter: ${place(position)}[parameters]`);
  for (let index = 0; index < parameters.length; index += 1) {
    const parameter: unknown = parameters[index];
    const refusal = parameterRefusal(parameter, type, position, index);
    if (refusal) return refusal;
    const name = (parameter as Json).parameter_name;
    read.parameters.push(typeof name === 'string' ? { name } : {});
  }
  return read;
}

function parameterRefusal(
  parameter: unknown,
  componentType: string,
  position: number,
  index: number,
): { refusal: GraphRefusal } | undefined {
  if (!isObject(parameter) || typeof parameter.type !== 'string') return invalid(`Invalid parameter: ${place(position, index)}`);
  if (parameter[parameter.type] === undefined) {
    return missing(`Parameter '${place(position, index)}[${parameter.type}]' is mandatory`);
  }
  if (parameter.type !== 'text') return undefined;
  if (typeof parameter.text !== 'string' || parameter.text === '') {
    return missing(`Parameter of type text is missing text value: ${place(position, index)}`);
  }
  if (componentType === 'body' && /[\n\t]| {5,}/.test(parameter.text)) {
    const details = `Param text cannot have new-line/tab characters or more than 4 consecutive spaces: ${place(position, index)}`;
    return { refusal: { code: 132018, details } };
  }
  return undefined;
}

function freeFormRefusal(type: string, content: Json): { refusal: GraphRefusal } | undefined {
  if (type === 'text') {
    if (typeof content.body !== 'string' || content.body === '') return missing("Parameter 'text[body]' is mandatory");
    if (content.body.length > MAX_TEXT) return invalid(`Param text['body'] must be at most ${MAX_TEXT} characters long.`);
  }
  if (MEDIA_TYPES.has(type) && typeof content.id !== 'string' && typeof content.link !== 'string') {
    return missing(`Parameter '${type}[id]' or '${type}[link]' is mandatory`);
  }
  if (type === 'location' && (content.latitude === undefined || content.longitude === undefined)) {
    return missing("Parameters 'location[latitude]' and 'location[longitude]' are mandatory");
  }
  return undefined;
}
