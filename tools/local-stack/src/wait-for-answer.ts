import { createConnection } from 'node:net';
import { LocalStackError } from './local-stack-error';
import type { ServerProcess } from './server-process';

export interface Readiness {
  deadlineMs: number;
  signal?: AbortSignal;
}

/** Asks until the server answers, ends, or the deadline passes; in the last two cases the error carries the server's log. */
export async function waitForAnswer(server: ServerProcess, ask: () => Promise<unknown>, readiness: Readiness): Promise<void> {
  const deadline = Date.now() + readiness.deadlineMs;
  for (;;) {
    if (readiness.signal?.aborted === true) throw stoppedWhileStarting();
    if (!server.isRunning) throw server.exitError();
    try {
      await ask();
      return;
    } catch (error) {
      if (!server.isRunning) throw server.exitError();
      if (Date.now() > deadline) throw server.notReadyError(readiness.deadlineMs, error);
    }
    await new Promise((wake) => setTimeout(wake, 25));
  }
}

export function stoppedWhileStarting(): LocalStackError {
  return new LocalStackError(
    'stopped_while_starting',
    'The start was cancelled; everything that it had started is stopped again.',
  );
}

/** Cheaper than a driver's connect while nothing listens yet. */
export function assertListening(port: number, host = '127.0.0.1'): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host });
    socket.setTimeout(1_000, () => socket.destroy(new Error(`no answer from ${host}:${port} within 1 s`)));
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
  });
}
