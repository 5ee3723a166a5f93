/**
 * How Node is started for a process that has to keep time. Without them V8 shrinks a heap that has been idle for some seconds, in one
 * stop of 40 to 160 ms, and then collects it every few milliseconds while it grows again: just when the first messages are due.
 */
export const NODE_FLAGS: readonly string[] = ['--no-memory-reducer', '--min-semi-space-size=16', '--max-semi-space-size=32'];
