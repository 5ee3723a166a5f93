import { waitUntil } from '#runtime/wait-until';
import type { Message, Page, Run } from './api-answers';
import type { Api } from './call-api';
import { bar, percentile, type Screen } from './screen';

const OPEN = ['scheduled', 'waiting', 'sending', 'uncertain'] as const;
const STILL_MOVING = ['submitted', 'sent'] as const;

const sum = (counts: Record<string, number>, statuses: readonly string[]): number =>
  statuses.reduce((total, status) => total + (counts[status] ?? 0), 0);

/** Shows a run going out until nothing moves any more. */
export async function followRun(api: Api, runId: string, screen: Screen): Promise<Run> {
  let quietSince = performance.now();
  let before = '';
  const run = await waitUntil(
    'the campaign to end',
    async () => {
      const now = await api.get<Run>(`/v1/runs/${runId}`);
      const shown = JSON.stringify(now.counts);
      if (shown !== before) quietSince = performance.now();
      before = shown;
      screen.progress(progressLine(now));
      // A status that was promised by nobody may never come: seven quiet seconds are enough.
      const settled =
        sum(now.counts, OPEN) === 0 && (sum(now.counts, STILL_MOVING) === 0 || performance.now() - quietSince > 7_000);
      return settled ? now : null;
    },
    { deadlineMs: 180_000, everyMs: 250 },
  );
  screen.end();
  return run;
}

function progressLine(run: Run): string {
  const { counts, total } = run;
  const released = total - (counts.scheduled ?? 0);
  const done = total - sum(counts, OPEN);
  const achieved = run.ratePerSecond.achieved;
  const parts = [
    ...['waiting', 'sending', 'submitted', 'sent', 'delivered', 'read', 'uncertain', 'failed', 'refused'].flatMap((status) =>
      counts[status] ? [`${status} ${counts[status]}`] : [],
    ),
  ];
  const rate = `${achieved === null ? '-' : achieved.toFixed(1)} of ${run.ratePerSecond.allowed}/s`;
  // The first columns fit on a narrow terminal.
  return `  ${bar(done, total, 20)} ${done}/${total} ${rate}  scheduled ${counts.scheduled ?? 0}, released ${released}: ${parts.join(', ')}`;
}

export async function messagesOf(api: Api, runId: string, filter = ''): Promise<Message[]> {
  const all: Message[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Message> = await api.get(
      `/v1/runs/${runId}/messages?limit=500${filter}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    all.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return all;
}

export function printResult(run: Run, messages: Message[], screen: Screen): void {
  const counts = Object.entries(run.counts).filter(([, count]) => count > 0);
  screen.line(
    `  outcome: ${run.outcome ?? run.status}; ${counts.map(([status, count]) => `${status} ${count}`).join(', ')} = ${run.total}`,
  );
  for (const status of ['failed', 'refused', 'uncertain', 'unconfirmed', 'expired']) {
    const reasons = new Map<string, number>();
    for (const message of messages.filter((one) => one.status === status)) {
      const reason = message.error?.code ?? message.reason ?? 'without a reason';
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    for (const [reason, count] of reasons) screen.line(`  ${status}: ${count} x ${reason}`);
  }
  const retried = messages.filter((message) => message.attempts > 1).length;
  if (retried > 0) screen.line(`  sent after another attempt: ${retried}`);
  const delays = messages.flatMap((message) => (message.delay ? [message.delay] : []));
  const totals = delays.map((delay) => delay.totalMs);
  const waiting = new Set(['pace', 'admission', 'retry']);
  const ours = delays.map((delay) =>
    delay.waits.filter((wait) => !waiting.has(wait.reason)).reduce((ms, wait) => ms + wait.ms, 0),
  );
  const say = (values: number[]): string =>
    [0.5, 0.95, 0.99].map((p) => `p${p * 100} ${Math.round(percentile(values, p))} ms`).join(', ');
  screen.line(`  due to accepted by the provider: ${say(totals)} (the rate makes the last one wait)`);
  screen.line(`  of that not waiting for the rate or a retry: ${say(ours)}`);
  const { allowed, achieved } = run.ratePerSecond;
  screen.line(`  rate: ${achieved === null ? '-' : achieved.toFixed(1)} of ${allowed} a second allowed`);
}
