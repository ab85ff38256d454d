import type { Command } from 'commander';
import { createRecorder } from '../../events/record.ts';
import { listLimits, resumeLimit } from '../../reputation/monitor.ts';
import { asJson, createCommand, createGroup, option } from '../command.ts';
import { type CliContext, FAILED } from '../context.ts';

/** `postrider sending-limits list|resume`: the automatic limits of all accounts. */
export function sendingLimitsCommand(context: CliContext): Command {
  return createGroup('sending-limits', 'Show and end automatic limits of sending', {
    help: `
Mail of an account, of a domain or to a mailbox provider is slowed or stopped while too much of it bounces, is complained
about or is blocked (section [reputation] of the configuration). A running daemon applies changes within seconds. Campaigns
that were stopped: "postrider campaign show", "postrider campaign resume --reason".

Examples:
  postrider sending-limits list
  postrider sending-limits resume limit_1769860800000_9z1x3c5v7b2n --reason "Old addresses were deleted"`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List the limits in force, newest first',
        options: [option('--account <id>', 'only of this account'), asJson],
        run: async ({ account }) => {
          const { tables } = await context.open(account === undefined ? {} : { account });
          context.printRows(listLimits(tables, account ?? null), 'No mail is limited', (limit) => ({
            limit: limit.limitId,
            account: limit.accountId,
            stream: limit.useCase,
            level: limit.level,
            domain: limit.domain ?? 'all',
            provider: limit.provider ?? 'all',
            reason: limit.reason,
            rate: `${limit.figures.rate} % of ${limit.figures.messages}`,
            since: limit.since,
          }));
        },
      }),
      createCommand(context, {
        usage: 'resume <limit>',
        description: 'End a limit; what happened until now does not limit the mail again',
        options: [option('--reason <text>', 'why it may continue', { required: true }), asJson],
        run: async (limitId, { reason }) => {
          const deps = await context.open();
          const resumed = context.accepted(
            await resumeLimit({ ...deps, recorder: createRecorder(deps) }, null, limitId, {
              reason,
              by: 'command line',
            }),
            FAILED,
          );
          context.show(resumed, () => `${limitId} has ended: ${resumed.text}`);
        },
      }),
    ],
  });
}
