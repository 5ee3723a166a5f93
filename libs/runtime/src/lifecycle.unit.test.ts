import { EventEmitter } from 'node:events';
import fc from 'fast-check';
import { Lifecycle, StartInterruptedError, type Part } from './lifecycle';
import { waitUntil } from './wait-until';

function recorded(names: string[], said: string[], change: Partial<Record<string, Partial<Part>>> = {}): Part[] {
  return names.map((name) => ({
    name,
    start: () => void said.push(`start ${name}`),
    drain: () => void said.push(`drain ${name}`),
    stop: () => void said.push(`stop ${name}`),
    ...change[name],
  }));
}

function lifecycleOf(parts: Part[], options: ConstructorParameters<typeof Lifecycle>[0] = {}): Lifecycle {
  const lifecycle = new Lifecycle(options);
  for (const part of parts) lifecycle.add(part);
  return lifecycle;
}

const never = () => new Promise<void>(() => undefined);

describe('Lifecycle', () => {
  it('starts in order, drains everything in reverse, then stops in reverse', async () => {
    const said: string[] = [];
    const lifecycle = lifecycleOf(recorded(['a', 'b'], said));
    await lifecycle.start();
    expect(lifecycle.notReady()).toEqual([]);
    await lifecycle.stop();
    expect(said).toEqual(['start a', 'start b', 'drain b', 'drain a', 'stop b', 'stop a']);
    expect(lifecycle.notReady()).toEqual(['stopped']);
  });

  it('says what it waits for while it starts, and which part is not ready or not alive later', async () => {
    let release: () => void = () => undefined;
    let reason: string | undefined = 'no partition yet';
    const lifecycle = lifecycleOf([
      { name: 'kafka', start: () => new Promise((resolve) => (release = resolve)) },
      { name: 'lanes', notReady: () => reason, notAlive: () => reason },
    ]);
    const started = lifecycle.start();
    expect(lifecycle.notReady()).toEqual(['starting: kafka']);
    expect(lifecycle.notAlive()).toEqual([]);
    release();
    await started;
    expect(lifecycle.notReady()).toEqual(['lanes: no partition yet']);
    expect(lifecycle.notAlive()).toEqual(['lanes: no partition yet']);
    reason = undefined;
    expect(lifecycle.notReady()).toEqual([]);
    await lifecycle.stop();
  });

  it('stops what was started, the failed part too, when a part can not start', async () => {
    const said: string[] = [];
    const lifecycle = lifecycleOf(recorded(['a', 'b', 'c'], said, { b: { start: () => Promise.reject(new Error('no')) } }));
    await expect(lifecycle.start()).rejects.toThrow('no');
    expect(said).toEqual(['start a', 'drain b', 'drain a', 'stop b', 'stop a']);
  });

  it('interrupts a start that waits', async () => {
    const said: string[] = [];
    const waiting: Part = {
      name: 'w',
      start: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    };
    const lifecycle = lifecycleOf([...recorded(['a'], said), waiting, ...recorded(['z'], said)]);
    const started = lifecycle.start();
    await Promise.resolve();
    await lifecycle.stop();
    await expect(started).rejects.toThrow(StartInterruptedError);
    expect(said).toEqual(['start a', 'drain a', 'stop a']);
  });

  it('goes on without a part that does not end in time or fails, and never takes longer than told', async () => {
    const said: string[] = [];
    const parts = recorded(['a', 'b', 'c'], said, {
      b: { drain: never, stop: never },
      c: { stop: () => Promise.reject(new Error('stuck')) },
    });
    const lifecycle = lifecycleOf(parts, { drainDeadlineMs: 200 });
    await lifecycle.start();
    const before = performance.now();
    await lifecycle.stop();
    expect(performance.now() - before).toBeLessThan(1_500);
    expect(said).toEqual(['start a', 'start b', 'start c', 'drain c', 'drain a', 'stop a']);
  });

  it('ends the process with 0 after a signal, and at once after a second one', async () => {
    const target = new EventEmitter();
    const codes: number[] = [];
    const stuck = lifecycleOf([{ name: 'stuck', drain: never }], { exit: (code) => codes.push(code) });
    stuck.endOnSignals(target as unknown as NodeJS.Process);
    await stuck.start();
    target.emit('SIGTERM', 'SIGTERM');
    expect(codes).toEqual([]);
    target.emit('SIGTERM', 'SIGTERM');
    expect(codes).toEqual([1]);

    const clean = lifecycleOf([], { exit: (code) => codes.push(code) });
    clean.endOnSignals(target as unknown as NodeJS.Process);
    await clean.start();
    target.emit('SIGINT', 'SIGINT');
    await waitUntil('the end', () => codes.includes(0));
  });

  it('stops in order and ends with 1 after a fault that nobody caught', async () => {
    const target = new EventEmitter();
    const said: string[] = [];
    let code: number | undefined;
    const lifecycle = lifecycleOf(recorded(['a'], said), { exit: (given) => (code = given) });
    lifecycle.endOnSignals(target as unknown as NodeJS.Process);
    await lifecycle.start();
    target.emit('uncaughtException', new Error('a bug'));
    await waitUntil('the end', () => code !== undefined);
    expect(code).toBe(1);
    expect(said).toEqual(['start a', 'drain a', 'stop a']);
  });

  it('whenever it is stopped: every part that was started is drained and stopped once, in reverse, after all drains', async () => {
    const behaviours = { fine: undefined, slow: 'slow', failing: 'failing' } as const;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ start: fc.constantFrom(...Object.keys(behaviours)), end: fc.constantFrom(...Object.keys(behaviours)) }),
          { maxLength: 5 },
        ),
        fc.nat(6),
        async (kinds, turns) => {
          const said: string[] = [];
          const behave = async (kind: string) => {
            if (kind !== 'fine') for (let turn = 0; turn < 3; turn++) await Promise.resolve();
            if (kind === 'failing') throw new Error('failing');
          };
          const lifecycle = lifecycleOf(
            kinds.map(({ start, end }, at) => ({
              name: String(at),
              start: () => (said.push(`start ${at}`), behave(start)),
              drain: () => (said.push(`drain ${at}`), behave(end)),
              stop: () => (said.push(`stop ${at}`), behave(end)),
            })),
          );
          const started = lifecycle.start().catch(() => undefined);
          for (let turn = 0; turn < turns; turn++) await Promise.resolve();
          await Promise.all([lifecycle.stop(), lifecycle.stop()]);
          await started;
          const count = said.filter((word) => word.startsWith('start')).length;
          const up = Array.from({ length: count }, (_, at) => at);
          const down = [...up].reverse();
          expect(said).toEqual([
            ...up.map((at) => `start ${at}`),
            ...down.map((at) => `drain ${at}`),
            ...down.map((at) => `stop ${at}`),
          ]);
          expect(lifecycle.phase).toBe('stopped');
        },
      ),
      { numRuns: 300 },
    );
  });
});
