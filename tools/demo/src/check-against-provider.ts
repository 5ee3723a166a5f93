import type { SimulatorControl } from '../../provider-simulator/src/control-client';
import type { CancelReceipt, Message } from './api-answers';
import type { Screen } from './screen';

/** Compares what the API says with what the provider really took on, recipient by recipient. */
export async function checkCampaign(
  control: SimulatorControl,
  phoneNumberId: string,
  messages: Message[],
  screen: Screen,
): Promise<boolean> {
  const received = await receivedBy(control, phoneNumberId);
  const twice = [...received.values()].filter((count) => count > 1).length;
  const arrived = new Set(['submitted', 'sent', 'delivered', 'read']);
  const missing = messages.filter((message) => arrived.has(message.status) && !received.has(digits(message.to))).length;
  const never = new Set(['refused', 'cancelled', 'expired', 'scheduled']);
  const wrong = messages.filter((message) => never.has(message.status) && received.has(digits(message.to))).length;
  screen.line(
    `  the provider received ${sumOf(received)} messages for ${received.size} recipients; twice: ${twice}; sent but not received: ${missing}; received though never sent: ${wrong}`,
  );
  const inPace = await checkPace(control, phoneNumberId, screen);
  return twice === 0 && missing === 0 && wrong === 0 && inPace;
}

/** What the provider refused of this number; what it refused of all numbers stands beside it, and is another number's fault. */
async function checkPace(control: SimulatorControl, phoneNumberId: string, screen: Screen): Promise<boolean> {
  const { numbers, rejectedByRate: ofAll } = await control.summary();
  const rejected = numbers[phoneNumberId]?.rejectedByRate ?? 0;
  screen.line(`  the provider received over the rate and refused: ${rejected} of this number, ${ofAll} of all numbers`);
  return rejected === 0;
}

/** What a cancel counted as prevented must not be at the provider. */
export async function checkCancel(
  control: SimulatorControl,
  phoneNumberId: string,
  receipt: CancelReceipt,
  messages: Message[],
  screen: Screen,
): Promise<boolean> {
  const { total, prevented, inFlight, submitted, uncertain, ended } = receipt;
  const received = await receivedBy(control, phoneNumberId);
  const cancelled = messages.filter((message) => message.status === 'cancelled');
  const broken = cancelled.filter((message) => received.has(digits(message.to))).length;
  const addsUp = prevented + inFlight + submitted + uncertain + ended === total;
  screen.line(
    `  ${prevented} + ${inFlight} + ${submitted} + ${uncertain} + ${ended} = ${total}: ${addsUp ? 'adds up' : 'DOES NOT ADD UP'}`,
  );
  screen.line(
    `  messages shown as cancelled: ${cancelled.length} (prevented: ${prevented}); of them at the provider: ${broken}; received by the provider: ${sumOf(received)}`,
  );
  const inPace = await checkPace(control, phoneNumberId, screen);
  return (
    addsUp &&
    inPace &&
    broken === 0 &&
    cancelled.length >= prevented &&
    cancelled.length <= prevented + inFlight &&
    received.size === total - cancelled.length
  );
}

async function receivedBy(control: SimulatorControl, phoneNumberId: string): Promise<Map<string, number>> {
  const received = new Map<string, number>();
  for await (const { recipient } of control.streamDeliveries({ phoneNumberId }))
    received.set(recipient, (received.get(recipient) ?? 0) + 1);
  return received;
}

const digits = (number: string): string => number.replace(/[^0-9]/g, '');
const sumOf = (received: Map<string, number>): number => [...received.values()].reduce((sum, count) => sum + count, 0);
