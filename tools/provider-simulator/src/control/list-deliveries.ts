import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import type { DeliveryRecord } from '../oracle/delivery-log';
import { instant } from '../oracle/number-ledger';
import type { Simulator } from '../simulator';
import type { Delivery } from './control-types';

export interface ParsedDeliveryFilter {
  phoneNumberId?: string;
  recipient?: string;
  token?: string;
  sinceMicros?: number;
  afterSequence?: number;
  limit?: number;
}

const querySchema = z.strictObject({
  phoneNumberId: z.string().optional(),
  recipient: z.string().optional(),
  token: z.string().optional(),
  since: z.string().optional(),
  afterSequence: z.coerce.number().optional(),
  limit: z.coerce.number().int().min(1).optional(),
});

export function filterFrom(query: URLSearchParams): ParsedDeliveryFilter {
  const { since, recipient, ...rest } = querySchema.parse(Object.fromEntries(query));
  return {
    ...rest,
    recipient: recipient?.replace(/^\+/, ''),
    sinceMicros: since === undefined ? undefined : microsOf(since),
  };
}

function microsOf(since: string): number {
  const milliseconds = /^[0-9]+(\.[0-9]+)?$/.test(since) ? Number(since) : Date.parse(since);
  if (!Number.isFinite(milliseconds)) {
    throw new z.ZodError([
      { code: 'custom', path: ['since'], message: 'ISO 8601, or milliseconds since the epoch', input: since },
    ]);
  }
  // Date.parse knows milliseconds; the three digits after them count too.
  const fraction = /\.[0-9]{3}([0-9]{3})/.exec(since);
  return milliseconds * 1000 + (fraction ? Number(fraction[1]) : 0);
}

/** Records looked at before others get a turn: about a millisecond. */
const RECORDS_A_TURN = 2000;

/** One JSON object a line, oldest first, without holding up the sends that come in meanwhile. */
export async function streamDeliveries(
  simulator: Simulator,
  filter: ParsedDeliveryFilter,
  response: ServerResponse,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  const { log } = simulator.oracle;
  const end = log.nextSequence;
  let left = filter.limit ?? Number.POSITIVE_INFINITY;
  for (let from = firstOf(simulator, filter); from < end && left > 0 && !response.destroyed; from += RECORDS_A_TURN) {
    const lines: string[] = [];
    for (let sequence = from; sequence < Math.min(from + RECORDS_A_TURN, end) && left > 0; sequence += 1) {
      const record = log.at(sequence);
      if (!record || !matches(record, filter)) continue;
      lines.push(JSON.stringify(deliveryOf(simulator, record)));
      left -= 1;
    }
    if (lines.length > 0 && !response.write(`${lines.join('\n')}\n`)) {
      await drained(response);
    } else await nextTurn();
  }
  response.end();
}

/** Until the caller has read on, or has gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

export function deliveriesOf(simulator: Simulator, filter: ParsedDeliveryFilter): Delivery[] {
  const found: Delivery[] = [];
  const { log } = simulator.oracle;
  for (let sequence = firstOf(simulator, filter); sequence < log.nextSequence; sequence += 1) {
    const record = log.at(sequence);
    if (!record || !matches(record, filter)) continue;
    found.push(deliveryOf(simulator, record));
    if (filter.limit !== undefined && found.length >= filter.limit) break;
  }
  return found;
}

function firstOf(simulator: Simulator, filter: ParsedDeliveryFilter): number {
  return Math.max(simulator.oracle.log.firstSequence, (filter.afterSequence ?? -1) + 1);
}

function matches(record: DeliveryRecord, filter: ParsedDeliveryFilter): boolean {
  return (
    (filter.phoneNumberId === undefined || record.phoneNumberId === filter.phoneNumberId) &&
    (filter.recipient === undefined || record.recipient === filter.recipient) &&
    (filter.token === undefined || record.token === filter.token) &&
    (filter.sinceMicros === undefined || record.wallMicros >= filter.sinceMicros)
  );
}

function deliveryOf(simulator: Simulator, record: DeliveryRecord): Delivery {
  return {
    sequence: record.sequence,
    at: instant(record.wallMicros),
    wallMicros: Math.floor(record.wallMicros),
    monotonicMicros: Math.floor(record.monotonicMicros),
    phoneNumberId: record.phoneNumberId,
    recipient: record.recipient,
    token: record.token === '' ? null : record.token,
    messageId: simulator.messageIdOf(record.recipient, record.sequence),
    content: record.content,
    answer: record.answer,
    acknowledged: record.acknowledged,
  };
}
