import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Temporal } from 'temporal-polyfill';
import { projectRoot } from '#local-stack/project-root';
import { stopOnSignals } from '#local-stack/stop-on-signals';
import { waitUntil } from '#runtime/wait-until';
import type { Audience, CancelReceipt, Run, Schedule, TimelineEntry } from './api-answers';
import type { Api } from './call-api';
import { checkCampaign, checkCancel } from './check-against-provider';
import { followRun, messagesOf, printResult } from './follow-campaign';
import { Screen } from './screen';
import { MAIN, RATE, SECOND, setUpTenant } from './set-up-tenant';
import { startEverything, type Everything } from './start-everything';

const ZONE = 'Europe/Berlin';
const CANCEL_AFTER = 400;

function template(headline: string): object {
  return {
    template: {
      name: 'summer_sale',
      language: 'en_US',
      header: { image: { link: 'https://cdn.example.com/summer-sale.jpg' } },
      body: ['{{firstName}}', `${headline} {{discount}}`],
      buttons: [
        { index: 0, quickReply: 'STOP_PROMO' },
        { index: 2, url: '{{code}}' },
      ],
    },
  };
}

async function runDemo(everything: Everything, screen: Screen, keep: boolean): Promise<boolean> {
  const { platform, simulator } = everything;
  screen.title('A tenant, an API key, two WhatsApp numbers with their webhooks');
  const { api, key } = await setUpTenant(everything);
  screen.line(`  key ${key.slice(0, 18)}…, numbers ${MAIN.name} and ${SECOND.name}, ${RATE} messages a second each`);

  screen.title('Uploading examples/summer-sale/recipients.csv');
  const csv = readFileSync(join(projectRoot(), 'examples', 'summer-sale', 'recipients.csv'));
  const audience = await api.uploadCsv<Audience>('/v1/audiences?name=summer-sale', csv);
  screen.line(`  ${audience.accepted} accepted, ${audience.duplicates} duplicates, ${audience.rejected} rejected:`);
  for (const { row, value, reason } of audience.rejectedSample) screen.line(`    row ${row}: ${JSON.stringify(value)} ${reason}`);

  const at = Temporal.Now.zonedDateTimeISO(ZONE).add({ seconds: 4 }).round({ smallestUnit: 'second' }).toPlainDateTime();
  const schedule = await api.post<Schedule>('/v1/schedules', {
    name: 'Summer sale',
    externalId: `summer-sale-${Date.now()}`,
    from: { number: MAIN.name },
    category: 'marketing',
    content: template('our summer sale:'),
    audienceId: audience.id,
    when: { at: at.toString(), timeZone: ZONE },
    validity: { for: 'PT2H' },
    retry: { delays: ['PT2S', 'PT4S', 'PT8S'] },
    labels: { campaign: 'summer-sale' },
  });
  const next = schedule.next[0]!;
  screen.title(`Scheduled for ${next.local} in ${next.timeZone}: ${next.recipients} messages`);
  screen.line(`  first at ${schedule.forecast.firstSendAt}, last expected at ${schedule.forecast.lastSendAt}`);

  const second = cancelInFlight(api, audience.id);
  second.catch(() => undefined);
  const run = await followRun(api, next.runId, screen);
  const messages = await messagesOf(api, next.runId);
  printResult(run, messages, screen);
  const sound = await checkCampaign(simulator.control, MAIN.phoneNumberId, messages, screen);

  screen.title('A second campaign, cancelled in mid-flight');
  const { runId, receipt } = await second;
  screen.line(`  ${JSON.stringify(receipt)}`);
  await waitUntil('the second campaign to settle', async () => (await api.get<Run>(`/v1/runs/${runId}`)).status !== 'running', {
    deadlineMs: 30_000,
  });
  const cancelSound = await checkCancel(simulator.control, SECOND.phoneNumberId, receipt, await messagesOf(api, runId), screen);

  const shown =
    messages.find((message) => message.attempts > 1 && message.status === 'read') ??
    messages.find((message) => message.status === 'read') ??
    messages[0]!;
  screen.title(`The timeline of ${shown.id} (${shown.ref ?? shown.to})`);
  const timeline = await api.get<{ data: TimelineEntry[] }>(`/v1/messages/${shown.id}/timeline`);
  for (const entry of timeline.data) screen.line(`  ${lineOf(entry)}`);
  screen.line(
    '  (in the order in which we saw it; what a provider says has its own time too, in whole seconds of its own clock)',
  );
  screen.title(
    sound && cancelSound
      ? 'Everything was checked against what the provider received, and is true.'
      : 'The check against the provider FAILED: the lines with "the provider received" say where they differ.',
  );
  if (keep) printNextSteps(platform.apiUrl, key, audience.id, shown.id, screen);
  else screen.line("`npm run demo -- --keep` leaves everything running, with the API's documentation and a key to try it with.");
  return sound && cancelSound;
}

function lineOf({ at, providerAt, what, by, detail }: TimelineEntry): string {
  const more = detail === null || detail === undefined ? '' : JSON.stringify(detail);
  return `${at}  ${what.padEnd(23)} ${by.padEnd(14)} ${providerAt === null ? '' : `at ${providerAt} by its clock `}${more}`;
}

/** The key is a test tenant's, on loopback: it reaches nobody but the simulator. */
function printNextSteps(apiUrl: string, key: string, audienceId: string, messageId: string, screen: Screen): void {
  const authorization = `-H 'Authorization: Bearer ${key}'`;
  const body = JSON.stringify({
    from: { number: MAIN.name },
    category: 'utility',
    content: { text: 'Hello {{firstName}}' },
    audienceId,
    when: { now: true },
    allowDuplicate: true,
  });
  screen.line(`The API's documentation: ${apiUrl}/docs`);
  screen.line('A schedule of your own, and the timeline of a message:');
  screen.line(`  curl -s ${apiUrl}/v1/schedules ${authorization} -H 'content-type: application/json' -d '${body}'`);
  screen.line(`  curl -s ${apiUrl}/v1/messages/${messageId}/timeline ${authorization}`);
}

/** The same people from another number, at once; cancelled when some of it is out. */
async function cancelInFlight(api: Api, audienceId: string): Promise<{ runId: string; receipt: CancelReceipt }> {
  const schedule = await api.post<Schedule>('/v1/schedules', {
    name: 'Sent by mistake',
    from: { number: SECOND.name },
    category: 'marketing',
    content: template('the wrong text:'),
    audienceId,
    when: { now: true },
    retry: { delays: ['PT2S', 'PT4S'] },
  });
  const { runId } = schedule.next[0]!;
  await waitUntil(
    'some of the second campaign to be out',
    async () => {
      const { counts, total } = await api.get<Run>(`/v1/runs/${runId}`);
      return total - (counts.scheduled ?? 0) - (counts.waiting ?? 0) >= CANCEL_AFTER;
    },
    { deadlineMs: 60_000, everyMs: 100 },
  );
  const receipt = await api.post<CancelReceipt>(`/v1/schedules/${schedule.id}/cancel`, { reason: 'wrong text' });
  return { runId, receipt };
}

async function main(): Promise<void> {
  const keep = process.argv.includes('--keep');
  const screen = new Screen(process.stdout);
  const stops: Array<() => Promise<void>> = [];
  const interrupted = new AbortController();
  const stopAll = async (): Promise<void> => {
    for (const stop of stops.splice(0).reverse()) await stop().catch((error: Error) => screen.line(`  ${error.message}`));
  };
  const untilInterrupted = new Promise<'interrupted'>((resolve) => {
    stopOnSignals(() => {
      interrupted.abort();
      resolve('interrupted');
    });
  });
  try {
    const work = startEverything(screen, stops, interrupted.signal).then((everything) => runDemo(everything, screen, keep));
    const ended = await Promise.race([work, untilInterrupted]);
    if (ended === 'interrupted') {
      screen.line('Stopping what was started …');
      process.exitCode = 130;
      await Promise.race([work.catch(() => undefined), waitUntil('', () => true)]);
    } else {
      process.exitCode = ended ? 0 : 1;
      if (keep) {
        screen.line('Everything keeps running; Ctrl-C stops it.');
        await untilInterrupted;
      }
    }
  } catch (error) {
    screen.line(`The demo stopped: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  } finally {
    await stopAll();
  }
  process.exit();
}

void main();
