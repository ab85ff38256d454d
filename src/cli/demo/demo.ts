import type { Command } from 'commander';
import { createCommand, option, wholeNumber } from '../command.ts';
import type { CliContext } from '../context.ts';

/** `postrider demo`: runs the whole product on one machine, without other programs. */
export function demoCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'demo',
    description:
      'Run the whole product on this machine, with a private DNS server and a receiving mail server',
    options: [
      option('--port <port>', 'port of the API; another one if it is in use', {
        parse: wholeNumber(0, 65_535, 'port number'),
        default: 8080,
      }),
      option('--exit', 'exit after the last step instead of running on'),
    ],
    help: '\nNothing leaves the machine. The data directory is temporary and removed at the end.',
    run: async ({ port, exit }) => {
      const { runDemo } = await import('./run-demo.ts');
      await runDemo({ port, exit: exit === true }, context.print);
    },
  });
}
