import { setMaxListeners } from 'node:events';

/** Waits, and returns early (without an error) when the signal fires. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    if (!signal) return;
    // Many may wait under one signal; each listener goes with its pause.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', done, { once: true });
  });
}
