import type { Command } from 'commander';
import { errorText } from '../core/errors.ts';
import { localUrl, requestDaemon } from '../doctor/daemon-client.ts';
import { asJson, createCommand } from './command.ts';
import type { CliContext } from './context.ts';

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
      const origin = localUrl('api.listen', context.config().api.listen);
      const url = `${origin}/healthz`;
      const fault = await requestDaemon({ origin }, '/healthz').then(
        ({ status }) => (status < 300 ? null : `it answered with the status ${status}`),
        errorText,
      );
      if (fault !== null) context.fail(`The daemon does not respond at ${url}: ${fault}`);
      context.show({ url, alive: true }, () => 'The daemon is alive');
    },
  });
}
