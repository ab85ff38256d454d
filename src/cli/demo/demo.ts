import { Command, InvalidArgumentError } from 'commander';

/** `postrider demo`: runs the whole product on one machine, without other programs. */
export function demoCommand(print: (text: string) => void): Command {
  return new Command('demo')
    .description(
      'Run the whole product on this machine, with a private DNS server and a receiving mail server',
    )
    .option('--port <port>', 'port of the API; another one if it is in use', parsePort, 8080)
    .option('--exit', 'exit after the last step instead of running on')
    .addHelpText(
      'after',
      '\nNothing leaves the machine. The data directory is temporary and removed at the end.',
    )
    .action(async (options: { port: number; exit?: boolean }) => {
      const { runDemo } = await import('./run-demo.ts');
      await runDemo(options, print);
    });
}

/** Throws InvalidArgumentError. */
function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidArgumentError('Must be a port number from 0 to 65535');
  return port;
}
