import type { Log } from '#runtime/log';
import { pause } from '#runtime/pause';
import { isRetriable } from '#runtime/retriable';

export interface Repetition {
  name: string;
  everyMs: number;
  step(): Promise<unknown>;
  log: Log;
  signal: AbortSignal;
}

/** Runs a step again and again, and waits between two of them. A step that fails is logged and simply comes again. */
export async function repeat({ name, everyMs, step, log, signal }: Repetition): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await step();
      failures = 0;
    } catch (error) {
      failures++;
      if (!isRetriable(error)) log.error(`${name} failed; it comes again`, { error });
      else if (failures === 1 || failures % 60 === 0) log.warn(`${name} has to wait for a server; it comes again`, { error });
    }
    await pause(failures === 0 ? everyMs : Math.max(everyMs, Math.min(1_000, 100 * failures)), signal);
  }
}
