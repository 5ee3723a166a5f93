import { PunctualError } from './errors';
import { silentLog, type Log } from './log';
import { pause } from './pause';

/** A part of a service. Parts start in the order in which they were added and stop in the reverse one. */
export interface Part {
  name: string;
  /** May wait as long as it likes (for a broker, a database); readiness shows its name meanwhile. Should end early when the signal fires. */
  start?(signal: AbortSignal): Promise<void> | void;
  /** Take nothing new, finish or hand back what was taken. Called for all parts, newest first, before any is stopped. */
  drain?(): Promise<void> | void;
  stop?(): Promise<void> | void;
  /** Why the service should get no work right now, in a few words; undefined when all is well. */
  notReady?(): string | undefined;
  /** Why the process should be restarted; undefined when all is well. */
  notAlive?(): string | undefined;
}

export interface LifecycleOptions {
  log?: Log;
  /** For drain and stop together; 10 s if absent. What is not done by then is left undone, with a log line that names it. */
  drainDeadlineMs?: number;
  /** Ends the process; tests pass their own. */
  exit?: (code: number) => void;
}

export type Phase = 'new' | 'starting' | 'running' | 'draining' | 'stopped';

export class StartInterruptedError extends PunctualError {
  constructor(cause?: unknown) {
    super('start_interrupted', 'The service was told to stop before it had started; what was started is stopped again.', {
      cause,
    });
  }
}

/** Starts the parts of a process, tells whether it is ready and alive, and ends it in order. */
export class Lifecycle {
  phase: Phase = 'new';
  private readonly parts: Part[] = [];
  private readonly started: Part[] = [];
  private readonly interrupt = new AbortController();
  private readonly log: Log;
  private readonly deadlineMs: number;
  private waitingFor: string | undefined;
  private starting: Promise<void> | undefined;
  private stopping: Promise<void> | undefined;
  private removeSignals: () => void = () => undefined;

  constructor(private readonly options: LifecycleOptions = {}) {
    this.log = options.log ?? silentLog;
    this.deadlineMs = options.drainDeadlineMs ?? 10_000;
  }

  add(part: Part): this {
    if (this.phase !== 'new') throw new Error(`${part.name} was added after the start`);
    this.parts.push(part);
    return this;
  }

  /** Fires when the service is told to stop. */
  get signal(): AbortSignal {
    return this.interrupt.signal;
  }

  start(): Promise<void> {
    return (this.starting ??= this.startParts());
  }

  stop(): Promise<void> {
    return (this.stopping ??= this.stopParts());
  }

  /** All of a main.ts: starts, ends on signals and faults, and ends with 1 if a part can't start. */
  run(): void {
    this.endOnSignals();
    this.start().catch((error: unknown) => {
      // Whoever interrupted the start also ends the process.
      if (!(error instanceof StartInterruptedError)) void this.stop().then(() => this.exit(1));
    });
  }

  /** Reasons why the service should get no work; empty means ready. */
  notReady(): string[] {
    if (this.phase === 'starting') return [`starting: ${this.waitingFor ?? 'nothing yet'}`];
    if (this.phase !== 'running') return [this.phase];
    return this.parts.flatMap((part) => {
      const reason = part.notReady?.();
      return reason === undefined ? [] : [`${part.name}: ${reason}`];
    });
  }

  /** Reasons to restart the process; empty means alive. */
  notAlive(): string[] {
    if (this.phase !== 'running') return [];
    return this.parts.flatMap((part) => {
      const reason = part.notAlive?.();
      return reason === undefined ? [] : [`${part.name}: ${reason}`];
    });
  }

  /**
   * SIGTERM and SIGINT stop in order and end with 0; a second one ends at once. A fault that nobody caught stops in order too and
   * ends with 1.
   */
  endOnSignals(target: NodeJS.Process = process): this {
    let asked = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (asked) return this.exit(1);
      asked = true;
      this.log.info('told to stop', { signal });
      void this.stop().then(() => this.exit(0));
    };
    const onFault = (error: unknown) => this.fail(error);
    target.on('SIGTERM', onSignal).on('SIGINT', onSignal).on('uncaughtException', onFault).on('unhandledRejection', onFault);
    this.removeSignals = () => {
      target
        .off('SIGTERM', onSignal)
        .off('SIGINT', onSignal)
        .off('uncaughtException', onFault)
        .off('unhandledRejection', onFault);
    };
    return this;
  }

  /** The process can't go on: stops what is left in order and ends with 1, so that it is started anew. */
  fail(error: unknown): void {
    this.log.error('the process can not go on; it stops, to be started anew', { error });
    void this.stop().then(() => this.exit(1));
  }

  private async startParts(): Promise<void> {
    if (this.phase !== 'new') throw new StartInterruptedError();
    this.phase = 'starting';
    try {
      for (const part of this.parts) {
        this.waitingFor = part.name;
        // A part that fails half-way has things open too.
        this.started.push(part);
        await part.start?.(this.interrupt.signal);
        if (this.interrupt.signal.aborted) throw new StartInterruptedError();
      }
      this.waitingFor = undefined;
      this.phase = 'running';
      this.log.info('ready');
    } catch (error) {
      if (this.interrupt.signal.aborted) throw error instanceof StartInterruptedError ? error : new StartInterruptedError(error);
      this.log.error('starting failed', { waitingFor: this.waitingFor, error });
      // No longer starting: the stop must not wait for the start that waits for it here.
      this.phase = 'draining';
      await this.stop();
      throw error;
    }
  }

  private async stopParts(): Promise<void> {
    const end = performance.now() + this.deadlineMs;
    const midStart = this.phase === 'starting';
    this.interrupt.abort();
    this.phase = 'draining';
    // A start that hears the signal ends soon; one that does not must not keep us.
    if (midStart)
      await within(
        this.starting!.catch(() => undefined),
        Math.max(100, (end - performance.now()) / 4),
      );
    const newestFirst = [...this.started].reverse();
    for (const part of newestFirst) await this.step('drain', part, end);
    for (const part of newestFirst) await this.step('stop', part, end);
    this.phase = 'stopped';
    this.removeSignals();
    this.log.info('stopped');
  }

  private async step(what: 'drain' | 'stop', part: Part, end: number): Promise<void> {
    if (!part[what]) return;
    try {
      // Even past the deadline everybody is asked, and gets a moment: closing a socket is worth more than leaving it.
      const done = await within(Promise.resolve(part[what]()), Math.max(100, end - performance.now()));
      if (!done) this.log.warn(`${what} did not end in time; going on without it`, { part: part.name });
    } catch (error) {
      this.log.warn(`${what} failed; going on with the others`, { part: part.name, error });
    }
  }

  private exit(code: number): void {
    (this.options.exit ?? ((status) => process.exit(status)))(code);
  }
}

async function within(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(milliseconds, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}
