import type { ServiceName } from './service-process';

/**
 * How Node is started for a process that has to keep time. Without them V8 shrinks a heap that has been idle for some seconds, in one
 * stop of 40 to 160 ms, and then collects it every few milliseconds while it grows again: just when the first messages are due.
 * The api gets smaller ones: each thread that reads an upload has as much again.
 */
export function nodeFlags(program: ServiceName | 'provider-simulator'): string[] {
  const [min, max] = program === 'api' ? [4, 16] : [16, 32];
  return ['--no-memory-reducer', `--min-semi-space-size=${min}`, `--max-semi-space-size=${max}`];
}
