import fc from 'fast-check';
import { GuardRing, guardWindow } from './guard-ring';
import { LearnedRate } from './learned-rate';
import { NumberPace } from './number-pace';

/** A sequence that looks random and is the same in every run. */
function noise(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

interface World {
  rate: number;
  seconds: number;
  seed: number;
  /** The event loop stands still for up to this long, some twenty times a second. */
  stallMs: number;
  /** An answer of Redis takes up to this long. */
  redisMs: number;
  /** Between taking the slot and the write. */
  connectMs: number;
  /** Every other second the way to the provider is jammed for about this long: what is written meanwhile is read at its end. */
  jamMs?: number;
  /** What the provider takes for an answer, after reading: evenly spread. */
  answerMs?: [number, number];
}

interface Traffic {
  /** When the socket was written, and when the provider read it. */
  writes: number[];
  reads: number[];
}

/** One number with endless work against a reservation that grants slots as the Lua script does. */
function simulate({ rate, seconds, seed, stallMs, redisMs, connectMs, jamMs = 0, answerMs = [15, 45] }: World): Traffic {
  const random = noise(seed);
  const pace = new NumberPace(rate, 500);
  const traffic: Traffic = { writes: [], reads: [] };
  const reservations: Array<{ at: number; offsetMs: number; count: number; step: number }> = [];
  const writing: number[] = [];
  let answers: Array<{ at: number; send: number }> = [];
  let busyUntil = 0;
  let jammedUntil = 0;
  let free = 0;
  for (let now = 0; now < seconds * 1_000; now += 0.25) {
    if (jamMs > 0 && random() < 1 / 8_000) jammedUntil = now + (0.5 + 0.5 * random()) * jamMs;
    if (now < busyUntil) continue;
    if (random() < 0.005) busyUntil = now + random() * stallMs;
    for (const { send } of answers.filter(({ at }) => at <= now)) pace.answered(send, now);
    answers = answers.filter(({ at }) => at > now);
    while (reservations.length > 0 && reservations[0]!.at <= now) {
      const { offsetMs, count, step } = reservations.shift()!;
      pace.granted(now, offsetMs, count, step);
    }
    const wanted = reservations.length > 0 ? 0 : pace.wanted(now, 10_000);
    if (wanted > 0) {
      const step = pace.stepMs(now);
      const redisNow = now + random() * redisMs;
      const first = Math.max(free, redisNow);
      const count = Math.max(0, Math.min(wanted, Math.floor((redisNow + 500 - first) / step) + 1));
      free = first + count * step;
      reservations.push({ at: redisNow + random() * redisMs, offsetMs: first - redisNow, count, step });
    }
    while (writing.length > 0 && writing[0]! <= now) {
      writing.shift();
      const send = pace.write(now);
      if (send === null) continue;
      const read = Math.max(now, jammedUntil);
      traffic.writes.push(now);
      traffic.reads.push(read);
      answers.push({ at: read + answerMs[0] + random() * (answerMs[1] - answerMs[0]), send });
    }
    while (pace.begin(now)) writing.push(Math.max(writing.at(-1) ?? 0, now + random() * connectMs));
  }
  return traffic;
}

function mostInASecond(times: number[], secondMs = 1_000): number {
  let most = 0;
  for (let from = 0, to = 0; to < times.length; to++) {
    while (times[to]! - times[from]! >= secondMs) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

describe('the pace of a number', () => {
  it.each([1, 10, 50, 80, 250, 1_000])('at %d/s reaches 0.98 of it and never more in any second', (rate) => {
    const { writes } = simulate({ rate, seconds: Math.max(20, 100 / rate), seed: 7, stallMs: 20, redisMs: 3, connectMs: 1 });
    expect(mostInASecond(writes)).toBeLessThanOrEqual(rate);
    expect((writes.length - 1) / ((writes.at(-1)! - writes[0]!) / 1_000)).toBeGreaterThanOrEqual(0.98 * rate);
  });

  it('never exceeds the rate, however late timers, answers and connections are', () => {
    fc.assert(
      fc.property(
        fc.record({
          rate: fc.integer({ min: 1, max: 300 }),
          seconds: fc.constant(6),
          seed: fc.nat(),
          stallMs: fc.integer({ min: 0, max: 400 }),
          redisMs: fc.integer({ min: 0, max: 80 }),
          connectMs: fc.integer({ min: 0, max: 90 }),
        }),
        (world) => {
          expect(mostInASecond(simulate(world).writes)).toBeLessThanOrEqual(world.rate);
        },
      ),
      { numRuns: 40 },
    );
  });

  it.each([80, 250])('at %d/s a provider that reads late and all at once still sees no more in a second', (rate) => {
    const jammed = { rate, seconds: 30, seed: 11, stallMs: 5, redisMs: 3, connectMs: 1, jamMs: 100 };
    const { writes, reads } = simulate(jammed);
    expect(mostInASecond(reads, 990)).toBeLessThanOrEqual(rate);
    expect((writes.length - 1) / ((writes.at(-1)! - writes[0]!) / 1_000)).toBeGreaterThanOrEqual(0.97 * rate);
  });

  it('does not mistake a provider that thinks long for a jam', () => {
    const { writes } = simulate({
      ...{ rate: 80, seconds: 20, seed: 3, stallMs: 5, redisMs: 3, connectMs: 1 },
      answerMs: [200, 900],
    });
    expect((writes.length - 1) / ((writes.at(-1)! - writes[0]!) / 1_000)).toBeGreaterThanOrEqual(0.98 * 80);
  });

  it('would exceed the rate by slots alone: the guard is what the test above sees', () => {
    const late = [0, 12.5, 25, 37.5].flatMap((at) => Array.from({ length: 80 }, (_, i) => at / 100 + i * 12.5));
    expect(mostInASecond(late.sort((a, b) => a - b))).toBeGreaterThan(80);
  });

  it('sends nothing before a wait is over and drops the slots that lie before it', () => {
    const pace = new NumberPace(10, 500);
    pace.granted(0, 0, 5, 101.2);
    pace.waitUntil(300);
    expect(pace.begin(250)).toBe(false);
    expect(pace.nextAt(250)).toBe(300);
    // The slots at 0 and 101 are more than 100 ms old when the wait is over, the one at 202 is not.
    expect(pace.spent).toBe(2);
    expect(pace.begin(299)).toBe(false);
    expect(pace.begin(300)).toBe(true);
  });

  it('asks for no more slots than there are messages, and again when half of the horizon is used', () => {
    const pace = new NumberPace(80, 500);
    expect(pace.wanted(0, 3)).toBe(3);
    pace.granted(0, 0, 3, pace.stepMs(0));
    expect(pace.wanted(0, 3)).toBe(0);
    expect(pace.wanted(0, 1_000)).toBe(Math.ceil(500 / pace.stepMs(0)));
    pace.granted(0, 3 * pace.stepMs(0), 37, pace.stepMs(0));
    expect(pace.wanted(200, 1_000)).toBe(0);
    expect(pace.wanted(260, 1_000)).toBeGreaterThan(0);
  });

  it('asks again only when a slot can be within the horizon, after it was told that none is', () => {
    const pace = new NumberPace(1, 500);
    pace.granted(0, 900, 0, 1_012);
    expect(pace.wanted(399, 1)).toBe(0);
    expect(pace.wanted(400, 1)).toBe(1);
  });

  it('keeps half of the rate by its own clock while Redis is away', () => {
    const pace = new NumberPace(80, 500);
    const sent: number[] = [];
    for (let now = 0; now < 10_000; now++) {
      const wanted = pace.wanted(now, 100);
      if (wanted > 0) pace.grantLocally(now, wanted);
      while (pace.begin(now)) if (pace.write(now)) sent.push(now);
    }
    expect(sent.length / 10).toBeGreaterThan(38);
    expect(sent.length / 10).toBeLessThanOrEqual(40);
  });

  it('passes a slot on that a message set out for and did not use', () => {
    const pace = new NumberPace(1, 500);
    pace.granted(0, 0, 1, 1_000);
    expect(pace.begin(0)).toBe(true);
    expect(pace.begin(1)).toBe(false);
    pace.giveUp();
    expect(pace.begin(5)).toBe(true);
    expect(pace.write(5)).not.toBeNull();
    expect(pace.begin(6)).toBe(false);
  });

  it('writes nothing for a slot that is more than 100 ms old, and takes one that came meanwhile', () => {
    const pace = new NumberPace(10, 500);
    pace.granted(0, 0, 1, 101.2);
    expect(pace.begin(0)).toBe(true);
    expect(pace.write(101)).toBeNull();
    pace.granted(200, 0, 2, 101.2);
    expect(pace.begin(200)).toBe(true);
    expect(pace.write(302)).not.toBeNull();
    expect(pace.held).toBe(0);
  });
});

describe('the guard', () => {
  it('counts sends that are on their way', () => {
    const guard = new GuardRing(3, 1_010);
    guard.sent(0);
    guard.sent(100);
    expect(guard.readyAt()).toBe(Number.NEGATIVE_INFINITY);
    expect(guard.readyAt(1)).toBe(1_010);
    expect(guard.readyAt(2)).toBe(1_110);
    expect(guard.readyAt(3)).toBe(Number.POSITIVE_INFINITY);
    guard.sent(200);
    expect(guard.readyAt()).toBe(1_010);
    expect(guard.readyAt(1)).toBe(1_110);
  });

  it('remembers the newest sends over a change of rate', () => {
    const guard = new GuardRing(4, 1_010);
    for (const at of [0, 10, 20, 30, 40]) guard.sent(at);
    guard.resize(2, 1_010);
    expect(guard.readyAt()).toBe(30 + 1_010);
    guard.resize(3, 1_010);
    expect(guard.readyAt()).toBe(Number.NEGATIVE_INFINITY);
    guard.sent(50);
    expect(guard.readyAt()).toBe(30 + 1_010);
  });

  it.each([
    [80, 80, 1_010],
    [1, 1, 1_010],
    [0.5, 1, 2_020],
    [2.5, 2, 808],
  ])('for %d/s allows %d sends in %d ms', (rate, limit, windowMs) => {
    expect(guardWindow(rate, 1_010)).toEqual({ limit, windowMs: expect.closeTo(windowMs) });
  });
});

describe('a throttled number', () => {
  it('is halved once for all calls that were out, and recovers by 5 % of its rate a second', () => {
    const rate = new LearnedRate(80);
    expect(rate.throttled(0)).toBe(true);
    expect(rate.throttled(30)).toBe(false);
    expect(rate.at(0)).toBe(40);
    expect(rate.at(5_000)).toBe(60);
    expect(rate.at(10_000)).toBe(80);
    expect(rate.at(60_000)).toBe(80);
  });

  it('is never slowed to nothing', () => {
    const rate = new LearnedRate(80);
    for (let now = 0; now < 40_000; now += 1_001) rate.throttled(now);
    expect(rate.at(40_000)).toBeGreaterThan(1);
  });

  it('follows a changed allowance, up at once when it was not slowed', () => {
    const rate = new LearnedRate(80);
    rate.allow(250, 0);
    expect(rate.at(0)).toBe(250);
    rate.throttled(10);
    rate.allow(100, 10);
    expect(rate.at(10)).toBe(100);
  });

  it('is spaced by the learned rate', () => {
    const pace = new NumberPace(80, 500);
    pace.rate.throttled(0);
    expect(pace.stepMs(0)).toBeCloseTo(1_012 / 40);
  });
});
