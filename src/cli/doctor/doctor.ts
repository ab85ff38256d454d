import { Command, InvalidArgumentError } from 'commander';
import type { CliContext } from '../context.ts';
import type { DoctorCommandOptions } from './examine.ts';

/** `postrider doctor` */
export function doctorCommand(context: CliContext): Command {
  return new Command('doctor')
    .description('Check the whole installation: machine, DNS, network, domains, database and work')
    .option('--domain <name>', 'examine this sending domain (default: those with the most severe problems)')
    .option('--all', 'list every finding, including those without a problem')
    .option('--integrity-timeout <seconds>', 'time for the check of the database file', seconds, 60)
    .option('--json', 'print the findings as a JSON array')
    .addHelpText(
      'after',
      `
Changes nothing and sends no mail. Findings are ok, warning, failure or unknown; each problem has a reason and the
command, setting or DNS record that repairs it. docs/troubleshooting.md describes every check. While the daemon
is stopped, the checks that need it are skipped, and what its start needs is examined, as by "postrider serve --check".
Exits 0 without failures (warnings are possible), 3 with failures.

Examples:
  postrider doctor
  postrider doctor --domain example.com
  postrider doctor --json | jq '.[] | select(.status == "failure")'`,
    )
    .action(async (options: DoctorCommandOptions) => {
      const { examine } = await import('./examine.ts');
      await examine(context, options);
    });
}

const MAX_INTEGRITY_SECONDS = 86_400;

function seconds(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > MAX_INTEGRITY_SECONDS)
    throw new InvalidArgumentError(`Must be a number of seconds from 1 to ${MAX_INTEGRITY_SECONDS}`);
  return value;
}
