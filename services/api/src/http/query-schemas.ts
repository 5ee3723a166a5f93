import { z } from 'zod';

/** A parameter that may be given several times; once is a string, more are an array. */
export function repeated<T extends z.ZodType>(one: T) {
  return z.preprocess((given) => (given === undefined || Array.isArray(given) ? given : [given]), z.array(one).min(1).max(20));
}

export const page = {
  limit: z.coerce.number().int().min(1).max(500).default(50).optional().describe('At most this many; default 50'),
  cursor: z.string().min(1).max(500).optional().describe('`nextCursor` of the page before, with the same filters'),
};
