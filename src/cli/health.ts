import type { Command } from 'commander';
import { SECOND } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import { asJson, createCommand } from './command.ts';
import type { CliContext } from './context.ts';
import { apiUrl } from './top/top.ts';

const TIMEOUT_MS = 10 * SECOND;

/** `postrider health`: for health checks of containers, where no HTTP client is installed. */
export function healthCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'health',
    description: 'Ask the running daemon whether it is alive; exit status 1 if it does not respond',
    options: [asJson],
    help: `
Requests /healthz of api.listen, for health checks of containers; it also responds during a migration. Whether the daemon can
do its work, such as whether its disk is full, is answered by /readyz and "postrider doctor".`,
    run: async () => {
      const url = `${apiUrl(context.config().api.listen)}/healthz`;
      const fault = await faultOf(url);
      if (fault !== null) context.fail(`The daemon does not respond at ${url}: ${fault}`);
      context.show({ url, alive: true }, () => 'The daemon is alive');
    },
  });
}

/** Null: the daemon is alive. */
async function faultOf(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' });
    await response.body?.cancel();
    return response.ok ? null : `it answered with the status ${response.status}`;
  } catch (error) {
    // The cause has the reason, such as ECONNREFUSED.
    return errorText(error instanceof Error && error.cause !== undefined ? error.cause : error);
  }
}
