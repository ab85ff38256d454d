import type { Command } from 'commander';
import * as z from 'zod';
import { presentGroup } from '../../audience/present.ts';
import { line, lines } from '../../http/api/fields.ts';
import { parseInput } from '../../http/validation/parse.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import { type CliContext, USAGE } from '../context.ts';
import { openAudience } from './open-audience.ts';

const inputSchema = z.object({ name: line(200), description: lines(2000).optional() });

/** `postrider group create|list`: subscription groups. */
export function groupCommand(context: CliContext): Command {
  return createGroup('group', 'Manage subscription groups', {
    help: `
Examples:
  postrider group create --name Newsletter --account acct_8f3k2m9x0q1z
  postrider group list --account acct_8f3k2m9x0q1z`,
    commands: [
      createCommand(context, {
        usage: 'create',
        description: 'Create a subscription group',
        options: [
          ofAccount,
          option('--name <name>', 'name, as recipients see it in List-Id', { required: true }),
          option('--description <text>', 'for display'),
          asJson,
        ],
        run: async ({ account, ...given }) => {
          const { name, description = null } = context.accepted(
            parseInput(inputSchema, { name: given.name, description: given.description }, 'group'),
            USAGE,
          );
          const { groups } = await openAudience(context, account);
          const created = await groups.create(account, {
            name,
            description,
            isActive: true,
            tags: [],
            unsubscribeTemplateId: null,
            reportAbuseTemplateId: null,
            companyAddressTemplateId: null,
            signUp: null,
            isPublic: null,
            archive: false,
          });
          context.printRecord(presentGroup(context.accepted(created)));
        },
      }),
      createCommand(context, {
        usage: 'list',
        description: 'List the subscription groups of an account, newest first',
        options: [ofAccount, rowLimit, asJson],
        run: async ({ account, limit }) => {
          const { groups } = await openAudience(context, account);
          const page = await groups.list({ accountId: account, beforeSeq: null, limit });
          if (page.more) noteMore(context, limit);
          context.printRows(
            page.rows.map(presentGroup),
            'There are no subscription groups in this account',
            ({ subscriptionGroupId, name, isActive, activeSubscribers, totalSubscribers }) => ({
              group: subscriptionGroupId,
              name,
              active: isActive,
              activeSubscribers,
              totalSubscribers,
            }),
          );
        },
      }),
    ],
  });
}
