import { statement } from '#runtime/postgres/sql-file';
import { waitUntil } from '#runtime/wait-until';
import type { SenderProcess } from './sender-process';
import { mostInASecond } from './test-support/most-in-a-second';
import { SenderUnderTest, TEXT, type TestNumber } from './test-support/sender-under-test';

const PARKED = statement('parked', 'SELECT reason FROM sender.parked WHERE value = $1');
const HOLD = statement('hold', 'SELECT reason, until FROM sender.number_hold_public WHERE number_id = $1');

let under: SenderUnderTest;
let sender: SenderProcess;

beforeAll(async () => {
  under = await SenderUnderTest.open();
  sender = await under.startSender();
});
afterAll(() => under?.close());

const numberSummary = async (number: TestNumber) => (await under.simulator.control.summary()).numbers[number.providerNumberId]!;

/** Of the rate, on however busy a machine; what is reached on a quiet one is measured by the bench. A blocked lane reaches 0.01. */
const achieved = (called: number[]) => ((called.length - 1) * 1_000) / (Math.max(...called) - Math.min(...called));

describe('a sender', () => {
  it('sends what is due and says so, with where the time went', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, ['+12025550101', '+12025550102']);
    await under.release(run, { dueAt: Date.now() - 700 });
    const submitted = await under.waitForEvents(run, 'MessageSubmitted', 2);
    const [first] = submitted;
    expect(first).toMatchObject({
      attempt: 1,
      by: 'answer',
      providerStatus: 'accepted',
      providerMessageId: expect.stringMatching(/^wamid/),
    });
    const waits = Object.fromEntries(first!.waits.map(({ reason, ms }) => [reason, ms]));
    expect(waits.admission).toBeGreaterThanOrEqual(700);
    expect(waits.provider).toBeGreaterThan(0);
    expect((waits.admission ?? 0) + (waits.pace ?? 0)).toBeCloseTo(first!.calledAt - first!.dueAt, -1);
    const delivered = await under.simulator.control.deliveries({ phoneNumberId: number.providerNumberId });
    expect(delivered.map(({ recipient }) => recipient).sort()).toEqual(['12025550101', '12025550102']);
    expect(await under.counts(run)).toEqual({ accepted: 2 });
  });

  it('uses the rate, and never more of it in any second', async () => {
    const number = await under.addNumber(80, { enforced: false });
    const run = await under.addRun(number, 640);
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 640, 30_000);
    expect((await numberSummary(number)).deliveries).toBe(640);
    // Counted at our socket and not enforced: the simulator shares this process's event loop and would count our own jams.
    const called = under.eventsOf(run, 'MessageSubmitted').map(({ calledAt }) => calledAt);
    expect(mostInASecond(called)).toBeLessThanOrEqual(80);
    expect(achieved(called) / 80).toBeGreaterThan(0.3);
  });

  it('lets a slow number beside a fast one in the same partition cost the fast one nothing', async () => {
    const slow = await under.addNumber(1);
    const fast = await under.addNumber(80, { partition: slow.partition, enforced: false });
    const [slowRun, fastRun] = [await under.addRun(slow, 5), await under.addRun(fast, 240)];
    await under.release(slowRun);
    await under.release(fastRun);
    const called = (await under.waitForEvents(fastRun, 'MessageSubmitted', 240)).map(({ calledAt }) => calledAt);
    expect(achieved(called) / 80).toBeGreaterThan(0.3);
    await under.waitForEvents(slowRun, 'MessageSubmitted', 5);
  });

  it('sends the urgent before what came earlier', async () => {
    const number = await under.addNumber(20);
    const [campaign, urgent] = [await under.addRun(number, 60), await under.addRun(number, 1)];
    await under.release(campaign);
    await under.waitForEvents(campaign, 'MessageSubmitted', 5);
    await under.release(urgent, { priority: 1 });
    await under.waitForEvents(urgent, 'MessageSubmitted', 1);
    expect(under.eventsOf(campaign, 'MessageSubmitted').length).toBeLessThan(40);
    await under.waitForEvents(campaign, 'MessageSubmitted', 60);
  });

  it('sends the same record once, however often it comes', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, 10);
    await under.release(run);
    await under.release(run);
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 10);
    await waitUntil('the lane is empty', () => (sender.sender.parts.lanes.get(number.numberId)?.queued ?? 0) === 0);
    expect((await numberSummary(number)).deliveries).toBe(10);
  });

  it('tries again after the delays of the schedule, and fails with the last reason when they are used up', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, ['+12025550160', '+12025550161', '+12025550157']);
    await under.release(run);
    const [once] = await under.waitForEvents(run, 'MessageSubmitted', 1);
    expect(once).toMatchObject({ attempt: 2, position: 0 });
    expect(once!.waits.map(({ reason }) => reason)).toContain('retry');
    const failed = await under.waitForEvents(run, 'MessageFailed', 2);
    expect(failed).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ position: 1, attempt: 4, code: 'provider_unavailable', providerCode: '131000' }),
        expect.objectContaining({ position: 2, attempt: 1, code: 'recipient_unreachable', providerCode: '131026' }),
      ]),
    );
  });

  it('waits for a pair of number and recipient without using up a retry', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, ['+12025550165'], { details: { retryDelaysMs: [] } });
    await under.release(run);
    const [submitted] = await under.waitForEvents(run, 'MessageSubmitted', 1);
    expect(submitted).toMatchObject({ attempt: 2 });
    expect(submitted!.waits.find(({ reason }) => reason === 'pair_limit')!.ms).toBeGreaterThanOrEqual(900);
  });

  it('slows a throttled number down and sends everything', async () => {
    const number = await under.addNumber(80);
    await under.simulator.control.addRule({
      match: { phoneNumberId: number.providerNumberId },
      times: 3,
      action: { kind: 'graph_error', code: 130429 },
    });
    const run = await under.addRun(number, 60, { details: { retryDelaysMs: [] } });
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 60);
    expect(sender.sender.parts.lanes.get(number.numberId)!.pace.rate.at(performance.now())).toBeLessThan(80);
  });

  it('holds a number whose token is bad, fails nothing, and goes on when the provider says that it can', async () => {
    const number = await under.addNumber(80);
    const id = number.providerNumberId;
    await under.simulator.control.configure({ numbers: [{ phoneNumberId: id, ratePerSecond: 80, accessToken: 'another' }] });
    const run = await under.addRun(number, 20);
    await under.release(run);
    await waitUntil('the number is held', async () => (await under.admin.rows(HOLD, [number.numberId])).length === 1);
    await waitUntil('no credit is given', async () => (await under.creditOf(number)) === 0);
    const waiting = () => under.eventsOf(run, 'MessageHeld').length + under.eventsOf(run, 'SendRetryPlanned').length;
    await waitUntil('all messages wait', () => waiting() >= 20);
    expect(under.eventsOf(run, 'MessageFailed')).toEqual([]);
    await under.simulator.control.configure({ numbers: [{ phoneNumberId: id, ratePerSecond: 80, accessToken: 'test-token' }] });
    await under.waitForEvents(run, 'MessageSubmitted', 20);
    expect(await under.admin.rows(HOLD, [number.numberId])).toEqual([]);
  });

  it('holds all numbers of an account that is blocked', async () => {
    const [one, other] = [await under.addNumber(80, { wabaId: '900100' }), await under.addNumber(80, { wabaId: '900100' })];
    await under.simulator.control.addRule({
      match: { phoneNumberId: one.providerNumberId },
      times: 1,
      action: { kind: 'graph_error', code: 131031 },
    });
    await under.simulator.control.configure({
      numbers: [one, other].map(({ providerNumberId }) => ({
        phoneNumberId: providerNumberId,
        ratePerSecond: 80,
        health: 'BLOCKED' as const,
      })),
    });
    const run = await under.addRun(one, 1);
    await under.release(run);
    for (const { numberId } of [one, other])
      await waitUntil('it is held', async () => (await under.admin.rows(HOLD, [numberId])).length === 1);
    await under.simulator.control.configure({
      numbers: [one, other].map(({ providerNumberId }) => ({
        phoneNumberId: providerNumberId,
        ratePerSecond: 80,
        health: 'AVAILABLE' as const,
      })),
    });
    await under.waitForEvents(run, 'MessageSubmitted', 1);
  });

  it('is uncertain when the provider may have it, and never sends that again by itself', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, [
      '+12025550168',
      '+12025550169',
      '+12025550170',
      '+12025550172',
      '+12025550174',
      '+12025550176',
      '+12025550177',
    ]);
    await under.release(run);
    const uncertain = await under.waitForEvents(run, 'OutcomeUncertain', 7);
    expect(uncertain.every(({ attempt }) => attempt === 1)).toBe(true);
    await under.waitForEvents(run, 'OutcomeUnconfirmed', 7);
    expect((await numberSummary(number)).received).toBe(7);
  });

  it('settles an uncertain message by evidence', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, ['+12025550172']);
    await under.release(run);
    await under.waitForEvents(run, 'OutcomeUncertain', 1);
    const [id] = run.occurrenceIds;
    const receipt = under.codec.encode('ReceiptRecorded', {
      eventId: 'evt_1',
      at: Date.now(),
      occurrenceId: id!,
      attempt: 1,
      kind: 'sent',
      providerAt: Date.now(),
      providerMessageId: 'wamid.X',
      code: null,
      providerCode: null,
      text: null,
    });
    await under.produce('receipts', 0, id!, receipt);
    const [submitted] = await under.waitForEvents(run, 'MessageSubmitted', 1);
    expect(submitted).toMatchObject({ by: 'evidence', providerMessageId: 'wamid.X' });
  });

  it('refuses visibly what has no content or no recipient', async () => {
    const number = await under.addNumber(80);
    const withoutContent = await under.addRun(number, 2, { withoutContent: true });
    const run = await under.addRun(number, 2);
    const stranger = { ...run, occurrenceIds: [run.occurrenceIds[0]!, Buffer.concat([run.runId, Buffer.alloc(8, 7)])] };
    await under.release(withoutContent);
    await under.release(stranger);
    const refused = await under.waitForEvents(withoutContent, 'MessageRefused', 2);
    expect(refused[0]).toMatchObject({ status: 'refused', reason: 'content_missing' });
    const [wrong] = await under.waitForEvents(run, 'MessageRefused', 1);
    expect(wrong).toMatchObject({ reason: 'recipient_missing', position: 1 });
    await under.waitForEvents(run, 'MessageSubmitted', 1);
  });

  it('fails a message whose recipient lacks a value, without calling the provider', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, 1, { content: { text: 'Hi {{nickname}}' } });
    await under.release(run);
    const [failed] = await under.waitForEvents(run, 'MessageFailed', 1);
    expect(failed).toMatchObject({
      code: 'template_parameters',
      reachedProvider: false,
      text: expect.stringContaining('nickname'),
    });
  });

  it('parks what it can not read and goes on behind it', async () => {
    const number = await under.addNumber(80);
    const run = await under.addRun(number, 1);
    const poison = Buffer.from('not an event');
    await under.produce('executions', number.partition, Buffer.from('key'), poison);
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 1);
    await waitUntil('it is parked', async () => (await under.admin.rows(PARKED, [poison])).length === 1);
  });

  it('tells the scheduler what its lanes take', async () => {
    const number = await under.addNumber(80);
    await waitUntil('a whole window of credit', async () => (await under.creditOf(number)) === 160);
    const run = await under.addRun(number, 200, { content: TEXT });
    await under.release(run);
    await waitUntil('less credit while messages queue', async () => ((await under.creditOf(number)) ?? 160) < 100);
    await under.waitForEvents(run, 'MessageSubmitted', 200);
    await waitUntil('a whole window again', async () => (await under.creditOf(number)) === 160);
  });

  it('leaves nothing uncertain when it is told to stop in the middle, and another goes on', async () => {
    const number = await under.addNumber(80, { enforced: false });
    const run = await under.addRun(number, 400);
    await under.release(run);
    await under.waitForEvents(run, 'MessageSubmitted', 80);
    await sender.lifecycle.stop();
    expect((await under.counts(run)).sending ?? 0).toBe(0);
    sender = await under.startSender();
    await under.waitForEvents(run, 'MessageSubmitted', 400, 50_000);
    expect(under.eventsOf(run, 'OutcomeUncertain')).toEqual([]);
    expect((await numberSummary(number)).deliveries).toBe(400);
  });
});
