import type { FastifyInstance, FastifyRequest } from 'fastify';

/** JSON bodies; large audiences are uploaded as files instead. */
export const BODY_LIMIT_BYTES = 8 * 1024 * 1024;
export const DEEPEST_BODY = 32;

export class UnparseableBody extends Error {
  override readonly name = 'UnparseableBody';
}

const rawBodies = new WeakMap<FastifyRequest, Buffer>();

/** The bytes of a JSON body as they came. */
export function rawBodyOf(request: FastifyRequest): Buffer | undefined {
  return rawBodies.get(request);
}

/** JSON is read here; every other body stays on the socket for the endpoint that wants it. */
export function readJsonBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES }, (request, body, done) => {
    rawBodies.set(request, body as Buffer);
    try {
      done(null, parseJson(body as Buffer));
    } catch (error) {
      done(error as Error, undefined);
    }
  });
  server.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
}

/** Undefined for an empty body. Depth is checked on the bytes, so that nothing recursive ever meets a deep value. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (depthOf(bytes) > DEEPEST_BODY) throw new UnparseableBody(`The body is nested deeper than ${DEEPEST_BODY} levels.`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UnparseableBody('The body is not UTF-8.');
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // V8's message quotes the body; the position alone does not.
    const position = /position (\d+)/.exec((error as Error).message)?.[1];
    throw new UnparseableBody(`The body is not well-formed JSON${position ? `: look at character ${position}` : ''}.`);
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
