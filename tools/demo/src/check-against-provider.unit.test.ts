import { PassThrough } from 'node:stream';
import { startSimulator, type RunningSimulator } from '../../provider-simulator/src/start-simulator';
import { ManualClock } from '../../provider-simulator/src/timing/clock';
import { send, templateSend } from '../../provider-simulator/test-support/send-message';
import { checkCampaign, checkCancel } from './check-against-provider';
import { Screen } from './screen';

const [CALM, HASTY] = ['700600500400301', '700600500400302'] as const;
let simulator: RunningSimulator;
let out: PassThrough;
let screen: Screen;

beforeEach(async () => {
  simulator = await startSimulator({
    clock: new ManualClock(),
    configuration: {
      latency: { kind: 'fixed', ms: 0 },
      numbers: [CALM, HASTY].map((phoneNumberId) => ({ phoneNumberId, ratePerSecond: 2 })),
    },
  });
  out = new PassThrough();
  screen = new Screen(out as unknown as NodeJS.WriteStream);
});
afterEach(() => simulator.stop());

async function sendFrom(phoneNumberId: string, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent++) await send(simulator.url, templateSend(`+1202555014${sent}`), { phoneNumberId });
}

const nothing = { scheduleId: 'sch_x', outcome: 'nothing_prevented', prevented: 0, inFlight: 0, uncertain: 0, ended: 0 };

it('blames a number for what was refused of its own pace only, and tells the sum of all beside it', async () => {
  await sendFrom(CALM, 2);
  await sendFrom(HASTY, 5);
  expect(await checkCampaign(simulator.control, CALM, [], screen)).toBe(true);
  expect(String(out.read())).toContain('refused: 0 of this number, 3 of all numbers');
  expect(await checkCampaign(simulator.control, HASTY, [], screen)).toBe(false);
  expect(String(out.read())).toContain('refused: 3 of this number, 3 of all numbers');

  const receipt = { ...nothing, total: 2, submitted: 2 } as unknown as Parameters<typeof checkCancel>[2];
  expect(await checkCancel(simulator.control, CALM, receipt, [], screen)).toBe(true);
  expect(await checkCancel(simulator.control, HASTY, receipt, [], screen)).toBe(false);
});
