import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { endpointOf } from './endpoint';

/** JSON bodies; large audiences are uploaded as files instead. */
export const BODY_LIMIT_BYTES = 8 * 1024 * 1024;
export const DEEPEST_BODY = 32;

/** Why a body was not taken. */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused';
  constructor(
    readonly code: 'body_unparseable' | 'body_too_large' | 'request_stalled',
    readonly detail: string,
  ) {
    super(detail);
  }
}

const rawBodies = new WeakMap<FastifyRequest, Buffer>();

/** The bytes of a JSON body as they came. */
export function rawBodyOf(request: FastifyRequest): Buffer | undefined {
  return rawBodies.get(request);
}

/** JSON is read here, where an endpoint takes it; every other body stays on the socket for the endpoint that wants it, or unread. */
export function readJsonBodies(server: FastifyInstance, deadlineMs: number): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    if (!endpointOf(request)?.body) return undefined;
    const body = await readWhole(request.raw, { mostBytes: BODY_LIMIT_BYTES, deadlineMs });
    rawBodies.set(request, body);
    return parseJson(body);
  });
  server.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
}

/** All bytes of a body. One that is too large or too slow is left where it is: the answer comes first. */
export function readWhole(
  request: IncomingMessage,
  { mostBytes, deadlineMs }: { mostBytes: number; deadlineMs: number },
): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0);
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const settle = (refused: BodyRefused | null): void => {
      clearTimeout(deadline);
      request.off('data', take).off('end', ended).off('error', broken).off('close', broken);
      if (refused) reject(refused);
      else resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
    };
    const tooLarge = () => settle(new BodyRefused('body_too_large', `A body has at most ${mostBytes / 1_048_576} MiB.`));
    const take = (part: Buffer): void => {
      bytes += part.length;
      parts.push(part);
      if (bytes > mostBytes) tooLarge();
    };
    const ended = (): void => settle(null);
    const broken = (): void => settle(new BodyRefused('body_unparseable', 'The connection ended before the body did.'));
    const deadline = setTimeout(() => {
      const detail = `The body was not whole after ${deadlineMs / 1_000} s; nothing was done.`;
      settle(new BodyRefused('request_stalled', detail));
    }, deadlineMs);
    if (announced > mostBytes) return tooLarge();
    if (request.destroyed) return broken();
    request.on('data', take).on('end', ended).on('error', broken).on('close', broken);
  });
}

/** Undefined for an empty body. Depth is checked on the bytes, so that nothing recursive ever meets a deep value. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (depthOf(bytes) > DEEPEST_BODY)
    throw new BodyRefused('body_unparseable', `The body is nested deeper than ${DEEPEST_BODY} levels.`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new BodyRefused('body_unparseable', 'The body is not UTF-8.');
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // V8's message quotes the body; the position alone does not.
    const position = /position (\d+)/.exec((error as Error).message)?.[1];
    throw new BodyRefused(
      'body_unparseable',
      `The body is not well-formed JSON${position ? `: look at character ${position}` : ''}.`,
    );
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function depthOf(bytes: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]!;
    if (inString) {
      if (byte === BACKSLASH) index++;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return deepest;
}
