const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Resolves to the first signal that ends the process: SIGTERM or SIGINT. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of STOP_SIGNALS) process.once(signal, () => resolve(signal));
  });
}

/**
 * Runs `work` with a signal that SIGTERM and SIGINT abort. Rejects with `reason` when `work` ends because of it. The same
 * signal again ends the process.
 */
export async function withStopSignal<Result>(
  reason: Error,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const onSignal = () => stop.abort(reason);
  for (const name of STOP_SIGNALS) process.once(name, onSignal);
  try {
    return await work(stop.signal);
  } catch (error) {
    const isAbort = error === reason || (error instanceof Error && error.name === 'AbortError');
    throw stop.signal.aborted && isAbort ? reason : error;
  } finally {
    for (const name of STOP_SIGNALS) process.off(name, onSignal);
  }
}

/**
 * Ignores signals that must neither end nor change the process. SIGUSR1 would open Node's inspector, through which any
 * local user could run code in the daemon. SIGUSR2 ends the process by default, and so does SIGHUP, which monitoring and
 * log rotation send: `serve` reloads the configuration on it, and can receive one before it is ready for that. For other
 * commands SIGHUP means that their terminal was closed.
 */
export function ignoreSignals(args: readonly string[]): void {
  const ignored: NodeJS.Signals[] = args.includes('serve')
    ? ['SIGUSR1', 'SIGUSR2', 'SIGHUP']
    : ['SIGUSR1', 'SIGUSR2'];
  for (const signal of ignored) process.on(signal, () => {});
}
