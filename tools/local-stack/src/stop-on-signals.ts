const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs `stop` once for the first of Ctrl-C, SIGTERM or a closed terminal. Further ones are ignored, because npm hands on a
 * Ctrl-C that the terminal has already sent to the whole group; every stop is bounded by itself. Returns the way to detach.
 */
export function stopOnSignals(stop: (signal: NodeJS.Signals) => void): () => void {
  let stopped = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopped) return;
    stopped = true;
    stop(signal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
}
