import type { Command } from 'commander';
import type { Refusal } from '../../core/refusal.ts';
import { definedFields } from '../../http/api/fields.ts';
import { inboundRouteInput, inboundRoutePatch, presentInboundRoute } from '../../http/api/inbound-routes.ts';
import { parseInput } from '../../http/validation/parse.ts';
import { createInboundRoutes } from '../../inbound/routes.ts';
import { type InboundRouteRow, ROUTE_ACTIONS, SPAM_POLICIES } from '../../store/inbound/inbound-routes.ts';
import {
  asJson,
  createCommand,
  createGroup,
  noteMore,
  type OptionValues,
  ofAccount,
  option,
  rowLimit,
} from '../command.ts';
import { type CliContext, USAGE } from '../context.ts';

const routeOptions = [
  ofAccount,
  option('--name <name>', 'for display'),
  option('--match <address>', 'an address, or "*@" and a host for every address there'),
  option('--domain <id>', 'the domain that the address is at or below'),
  option('--action <action>', '"webhook": also report the mail to --webhook', { choices: ROUTE_ACTIONS }),
  option('--webhook <id>', 'that of the action "webhook"'),
  option('--spam-policy <policy>', 'what happens to forged mail', { choices: SPAM_POLICIES }),
  asJson,
] as const;
const switches = [
  option('--active', 'receive the mail again'),
  option('--inactive', 'refuse the mail'),
] as const;

/** `postrider inbound-routes list|create|update|delete`. */
export function inboundRoutesCommand(context: CliContext): Command {
  return createGroup('inbound-routes', 'Manage inbound routes: addresses whose mail an account receives', {
    help: `
Examples:
  postrider inbound-routes create --account acct_8f3k2m9x0q1z --name Support --match support@in.example.com --domain domain_1769860800000_4g6h8j1k3l5z
  postrider inbound-routes update route_1769860800000_7q9w2e4r6t8y --account acct_8f3k2m9x0q1z --inactive`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List the inbound routes of an account, newest first',
        options: [ofAccount, rowLimit, asJson],
        run: async ({ account, limit }) => {
          const routes = await openRoutes(context, account);
          const { rows, more } = await routes.list({ accountId: account, beforeSeq: null, limit });
          if (more) noteMore(context, limit);
          context.printRows(
            rows.map(presentInboundRoute),
            'There are no inbound routes in this account',
            ({ routeId, name, match, action, isActive }) => ({
              route: routeId,
              name,
              match,
              action,
              active: isActive,
            }),
          );
        },
      }),
      createCommand(context, {
        usage: 'create',
        description: 'Create an inbound route; --name, --match and --domain are required',
        options: routeOptions,
        run: async ({ account, ...given }) => {
          const input = context.accepted(parseInput(inboundRouteInput, fieldsOf(given), 'route'), USAGE);
          print(context, await (await openRoutes(context, account)).create(account, input));
        },
      }),
      createCommand(context, {
        usage: 'update <id>',
        description: 'Update the given fields of an inbound route',
        options: [...routeOptions, ...switches],
        run: async (id, { account, active, inactive, ...given }) => {
          if (active === true && inactive === true)
            context.usage('--active and --inactive exclude each other');
          const isActive = active === true ? true : inactive === true ? false : undefined;
          const fields = { ...fieldsOf(given), ...definedFields({ isActive }) };
          if (Object.keys(fields).length === 0)
            context.usage('Nothing to change: specify at least one option');
          const input = context.accepted(parseInput(inboundRoutePatch, fields, 'route'), USAGE);
          const routes = await openRoutes(context, account);
          print(context, await routes.update(account, id, definedFields(input)));
        },
      }),
      createCommand(context, {
        usage: 'delete <id>',
        description: 'Delete an inbound route; mail that was received stays',
        options: [ofAccount, asJson],
        run: async (id, { account }) => {
          const row = context.accepted(await (await openRoutes(context, account)).remove(account, id));
          const { routeId, match } = presentInboundRoute(row);
          context.show({ routeId, match }, () => `The inbound route ${match} has been deleted`);
        },
      }),
    ],
  });
}

/** The fields of the API that the options state. */
function fieldsOf({
  name,
  match,
  domain,
  action,
  webhook,
  spamPolicy,
}: Partial<OptionValues<typeof routeOptions>>): Record<string, unknown> {
  return definedFields({ name, match, domainId: domain, action, webhookId: webhook, spamPolicy });
}

async function openRoutes(context: CliContext, account: string) {
  return createInboundRoutes(await context.open({ account }));
}

function print(context: CliContext, result: InboundRouteRow | Refusal): void {
  context.printRecord(presentInboundRoute(context.accepted(result)));
}
