import type { Command } from 'commander';
import { createCommand, option, wholeNumber } from '../command.ts';
import type { CliContext } from '../context.ts';

const MAX_INTEGRITY_SECONDS = 86_400;

/** `postrider doctor` */
export function doctorCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'doctor',
    description: 'Check the whole installation: machine, DNS, network, domains, database and work',
    options: [
      option('--domain <name>', 'examine this sending domain (default: those with the most severe problems)'),
      option('--all', 'list every finding, including those without a problem'),
      option('--integrity-timeout <seconds>', 'time for the check of the database file', {
        parse: wholeNumber(1, MAX_INTEGRITY_SECONDS, 'number of seconds'),
        default: 60,
      }),
      option('--json', 'print the findings as a JSON array'),
    ],
    help: `
Changes nothing and sends no mail. Findings are ok, warning, failure or unknown; each problem has a reason and the
command, setting or DNS record that repairs it. docs/reference/checks.md describes every check. While the daemon
is stopped, the checks that need it are skipped, and what its start needs is examined, as by "postrider serve --check".
Exits 0 without failures (warnings are possible), 3 with failures.

Examples:
  postrider doctor
  postrider doctor --domain example.com
  postrider doctor --json | jq '.[] | select(.status == "failure")'`,
    run: async (options) => {
      const { examine } = await import('./examine.ts');
      await examine(context, options);
    },
  });
}
