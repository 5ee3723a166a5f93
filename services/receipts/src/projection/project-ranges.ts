import type { MessageStatus } from '#contracts/words';
import type { Queryable } from '#runtime/postgres/database';
import { shareOutRanges, shareWith, weightOf, type RangeShare, type RefusedRange } from '../status/refused-ranges';
import type { RunDelta } from './run-delta';
import { countAnswered, insertRanges, readRanges, type RunRow } from './run-rows';

interface TouchedRun {
  delta: RunDelta;
  row: RunRow;
  /** Of the row as it was read. */
  latestBefore: number;
}

interface Weighed {
  delta: RunDelta;
  share: RangeShare;
  /** What the share adds to the counters, with the positions that this batch answers and without. */
  sign: 1 | -1;
  answeredNow: number;
}

/**
 * Puts ranges of refused recipients into the counters, and takes out of them what turned out to have facts of its own. Runs
 * without a range, nearly all, cost nothing here. Counts are of positions that were marked before this batch; the batch's own
 * are added.
 */
export async function projectRanges(transaction: Queryable, runs: TouchedRun[]): Promise<void> {
  const touched = runs.filter(
    ({ delta, row, latestBefore }) =>
      delta.events.some(({ name }) => name === 'RecipientsRefused') ||
      (row.has_ranges && (delta.answered.length > 0 || row.latest_revision !== latestBefore)),
  );
  if (touched.length === 0) return;
  const stored = await readRanges(
    transaction,
    touched.map(({ delta }) => delta.runId),
  );
  const fresh: Array<{ runId: Buffer; range: RefusedRange }> = [];
  const weighed: Weighed[] = [];
  for (const { delta, row, latestBefore } of touched) {
    const before = stored.get(delta.runId.toString('hex'))!;
    const added = newRanges(delta, before);
    fresh.push(...added.map((range) => ({ runId: delta.runId, range })));
    const sharesBefore = shareOutRanges(before, latestBefore);
    const sharesAfter = shareOutRanges([...before, ...added], row.latest_revision);
    const isSame = (share: RangeShare, others: RangeShare[]) =>
      others.some((other) => JSON.stringify(other) === JSON.stringify(share));
    const answeredIn = (share: RangeShare) => delta.answered.filter((position) => shareWith([share], position)).length;
    const unchanged = added.length === 0 && row.latest_revision === latestBefore;
    for (const share of sharesBefore) {
      if (answeredIn(share) > 0 || (!unchanged && !isSame(share, sharesAfter)))
        weighed.push({ delta, share, sign: -1, answeredNow: 0 });
    }
    for (const share of sharesAfter) {
      const answeredNow = answeredIn(share);
      if (answeredNow > 0 || (!unchanged && !isSame(share, sharesBefore))) weighed.push({ delta, share, sign: 1, answeredNow });
    }
  }
  await insertRanges(transaction, fresh);
  await weigh(transaction, weighed);
}

function newRanges(delta: RunDelta, known: RefusedRange[]): RefusedRange[] {
  const name = ({ revision, from, until, status, reason }: RefusedRange) => `${revision}/${from}/${until}/${status}/${reason}`;
  const seen = new Set(known.map(name));
  return delta.events.flatMap(({ name: eventName, event }) => {
    if (eventName !== 'RecipientsRefused' || event.untilPosition <= event.fromPosition) return [];
    const { revision, count, status, reason, at } = event;
    const range: RefusedRange = { revision, from: event.fromPosition, until: event.untilPosition, count, status, reason, at };
    if (seen.has(name(range))) return [];
    seen.add(name(range));
    return [range];
  });
}

async function weigh(transaction: Queryable, weighed: Weighed[]): Promise<void> {
  const segments = weighed.flatMap(({ delta, share }) => share.segments.map((segment) => ({ runId: delta.runId, ...segment })));
  const answered = await countAnswered(transaction, segments);
  let place = 0;
  for (const { delta, share, sign, answeredNow } of weighed) {
    let marked = 0;
    for (let segment = 0; segment < share.segments.length; segment++) marked += answered[place++]!;
    delta.counts.add(share.range.status as MessageStatus, share.range.reason, sign * weightOf(share, marked + answeredNow));
  }
}
