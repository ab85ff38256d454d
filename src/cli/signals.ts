/**
 * Signals that must neither end the process nor change it. SIGUSR1 would open Node's inspector, through which any
 * local user could run code in the daemon; SIGUSR2 ends the process by default. Monitoring and log rotation send
 * SIGHUP, which ends the process by default, too: `serve` re-reads the configuration on it, and may be sent one
 * before it has got that far. For other commands SIGHUP means that their terminal is gone.
 */
export function ignoreSignals(args: readonly string[]): void {
  const ignored: NodeJS.Signals[] = args.includes('serve')
    ? ['SIGUSR1', 'SIGUSR2', 'SIGHUP']
    : ['SIGUSR1', 'SIGUSR2'];
  for (const signal of ignored) process.on(signal, () => {});
}
