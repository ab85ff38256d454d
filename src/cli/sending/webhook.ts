import type { Command } from 'commander';
import { programVersion } from '../../config/version.ts';
import { iso } from '../../core/clock.ts';
import type { Refusal } from '../../core/refusal.ts';
import { isEventKind } from '../../events/event-types.ts';
import { FILTERED_STREAMS } from '../../events/webhook-filter.ts';
import { WEBHOOK_FORMATS } from '../../webhooks/formats.ts';
import type { WebhookPatch } from '../../webhooks/input.ts';
import { mayCallPrivateNetworks, ownPorts } from '../../webhooks/private-networks.ts';
import { DELIVERY_STATUSES, type WebhookDelivery, type WebhookDetail } from '../../webhooks/resource.ts';
import { createWebhookSecrets } from '../../webhooks/secrets.ts';
import {
  createWebhooks,
  type DeliveryPage,
  type ReplayResult,
  type Webhooks,
} from '../../webhooks/service.ts';
import {
  asJson,
  createCommand,
  createGroup,
  momentOf,
  noteMore,
  type OptionValues,
  ofAccount,
  option,
  rowLimit,
} from '../command.ts';
import type { CliContext } from '../context.ts';
import { readTextFile } from '../input-files.ts';
import { counted, fieldLines } from '../output/table.ts';

const options = [ofAccount, asJson] as const;
const fieldOptions = [
  option('--format <format>', 'whose webhooks the calls have the form of', { choices: WEBHOOK_FORMATS }),
  option('--name <name>', 'for display (default: the host)'),
  option('--description <text>', 'for display'),
  option('--stream <stream>', 'only events about this mail', { choices: FILTERED_STREAMS }),
  option('--domain <names...>', 'only events about these domains'),
  option('--tag <tags...>', 'only events about messages with one of these tags'),
  option('--headers-file <file>', 'file with headers for the calls, a line "Name: value" for each'),
] as const;
const deliveryOptions = [
  ...options,
  option('--status <status>', 'only with this status', { choices: DELIVERY_STATUSES }),
  rowLimit,
] as const;

/** `postrider webhook …`. */
export function webhookCommand(context: CliContext): Command {
  return createGroup('webhook', 'Manage webhooks', {
    help: `
Examples:
  postrider webhook create https://shop.example/hooks --account acct_8f3k2m9x0q1z --event email_bounced email_complained
  postrider webhook update webhook_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --domain shop.example --tag order
  postrider webhook test webhook_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z
  postrider webhook deliveries webhook_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --status failed
  postrider webhook replay webhook_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --from 2026-02-01T00:00:00Z`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List the webhooks of an account',
        options,
        run: async ({ account }) => {
          const webhooks = (await openWebhooks(context, account)).list(account, { includeInactive: true });
          context.printRows(
            webhooks.map(({ createdAt, ...webhook }) => ({ ...webhook, createdAt })),
            'There are no webhooks in this account',
            (webhook) => ({ ...webhook, createdAt: iso(webhook.createdAt) }),
          );
        },
      }),
      createCommand(context, {
        usage: 'create <url>',
        description: 'Create a webhook; prints its secret',
        options: [
          ...options,
          ...fieldOptions,
          option('--event <kinds...>', 'event types', { default: ['*'] }),
        ],
        run: async (url, { account, event, ...given }) => {
          const fields = fieldsIn(given);
          const webhooks = await openWebhooks(context, account);
          print(context, await webhooks.create(account, { ...fields, url, events: kindsIn(event) }));
        },
      }),
      createCommand(context, {
        usage: 'update <id>',
        description: 'Update a webhook; a filter or a file of headers replaces all that was set',
        options: [
          ...options,
          ...fieldOptions,
          option('--url <url>', 'the receiving endpoint'),
          option('--event <kinds...>', 'event types'),
          option('--no-filter', 'remove the filter'),
          option('--no-headers', 'remove the headers'),
        ],
        run: async (id, { account, url, event, filter, headers, ...given }) => {
          const fields = fieldsIn(given);
          const patch = {
            ...fields,
            url,
            events: event === undefined ? undefined : kindsIn(event),
            ...(filter ? {} : { filter: null }),
            ...(headers ? {} : { headers: null }),
          };
          print(context, await (await openWebhooks(context, account)).update(account, id, patch));
        },
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a webhook with its secret',
        options,
        run: async (id, { account }) =>
          print(context, (await openWebhooks(context, account)).get(account, id)),
      }),
      createCommand(context, {
        usage: 'delete <id>',
        description: 'Delete a webhook with its pending deliveries',
        options,
        run: async (id, { account }) => {
          const webhooks = await openWebhooks(context, account);
          const removed = context.accepted(await webhooks.remove(account, id));
          context.show(removed, () => `Webhook ${id} has been deleted`);
        },
      }),
      ...SWITCHES.map(({ verb, isActive, description }) =>
        createCommand(context, {
          usage: `${verb} <id>`,
          description,
          options,
          run: async (id, { account }) =>
            print(context, await (await openWebhooks(context, account)).update(account, id, { isActive })),
        }),
      ),
      createCommand(context, {
        usage: 'rotate <id>',
        description: 'Rotate the secret of a webhook; the old secret also signs for 24 hours',
        options,
        run: async (id, { account }) =>
          print(context, await (await openWebhooks(context, account)).rotateSecret(account, id)),
      }),
      createCommand(context, {
        usage: 'test <id>',
        description: 'Send a sample event to a webhook now',
        options: [...options, option('--event <kind>', 'event type (default: the first of the webhook)')],
        run: async (id, { account, event }) => {
          if (event !== undefined && !isEventKind(event)) context.usage(`There is no event type ${event}`);
          const webhooks = await openWebhooks(context, account);
          const { signal } = new AbortController();
          const result = context.accepted(await webhooks.test(account, id, event, signal));
          const { payload, ...shown } = result;
          context.show(result, () => [...fieldLines(shown), JSON.stringify(payload, null, 2)]);
          if (!result.delivered) context.fail(result.error ?? 'The event was not delivered');
        },
      }),
      createCommand(context, {
        usage: 'deliveries <id>',
        description: 'List the deliveries of a webhook, newest event first',
        options: deliveryOptions,
        run: (id, given) => deliveries(context, id, given),
      }),
      createCommand(context, {
        usage: 'retry <id> <deliveryId>',
        description: 'Retry a delivery; the daemon does so within a second',
        options,
        run: async (id, deliveryId, { account }) => {
          const webhooks = await openWebhooks(context, account);
          const delivery = context.accepted(await webhooks.retry(account, id, deliveryId));
          context.show(delivery, () => `${deliveryId} will be retried now`);
        },
      }),
      createCommand(context, {
        usage: 'replay <id>',
        description: 'Repeat undelivered events; the daemon does so within a second',
        options: [
          ...options,
          option('--from <time>', 'events at or after this date or ISO 8601 time', { required: true }),
          option('--to <time>', 'events before this time (default: now)'),
          option('--all', 'also repeat delivered events'),
        ],
        run: async (id, { account, from, to: end, all }) => {
          const { clock } = await context.open();
          let next: number | null = momentOf(context, '--from', from);
          const to = end === undefined ? clock.now() : momentOf(context, '--to', end);
          const webhooks = await openWebhooks(context, account);
          const which = all === true ? 'all' : 'undelivered';
          let replayed = 0;
          while (next !== null) {
            const result: ReplayResult = context.accepted(
              await webhooks.replay(account, id, { from: next, to, which }),
            );
            replayed += result.replayed;
            next = result.nextFrom;
          }
          context.show({ webhookId: id, replayed }, () => `${counted(replayed, 'event')} will be sent now`);
        },
      }),
    ],
  });
}

const SWITCHES = [
  { verb: 'enable', isActive: true, description: 'Send events to a webhook again' },
  { verb: 'disable', isActive: false, description: 'Stop sending events to a webhook' },
] as const;

/** Kinds of events, also separated by commas. */
function kindsIn(given: readonly string[]): string[] {
  return given.flatMap((kinds) => kinds.split(','));
}

/** What the options set. Values of headers come from a file: others could read those of a command line. */
function fieldsIn({
  format,
  name,
  description,
  stream,
  domain: domains,
  tag: tags,
  headersFile,
}: OptionValues<typeof fieldOptions>): Pick<
  WebhookPatch,
  'format' | 'name' | 'description' | 'filter' | 'headers'
> {
  const hasFilter = stream !== undefined || domains !== undefined || tags !== undefined;
  return {
    format,
    name,
    description,
    ...(hasFilter ? { filter: { streams: stream === undefined ? [] : [stream], domains, tags } } : {}),
    ...(headersFile === undefined ? {} : { headers: headersIn(readTextFile('--headers-file', headersFile)) }),
  };
}

/** A line without a colon is a name without a value, which is refused. */
function headersIn(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...value] = line.split(':');
      return [name.trim(), value.join(':').trim()];
    }),
  );
}

/** The webhooks module of the command's database; the daemon notices changes. */
export async function openWebhooks(context: CliContext, account: string): Promise<Webhooks> {
  const deps = await context.open({ account });
  const { config, limits, random, tables } = deps;
  const secrets = createWebhookSecrets({ seal: await deps.openSeal(), random });
  const allowPrivateNetworks = () => mayCallPrivateNetworks(config, tables);
  const { createWebhookCaller } = await import('../../webhooks/call.ts');
  const caller = createWebhookCaller({
    resolver: deps.createResolver(),
    allowPrivateNetworks,
    ownPorts: () => ownPorts(config),
    userAgent: `Postrider/${programVersion()}`,
  });
  context.onClose(caller.close);
  const { webhooks: mayAdd } = limits.mayAdd;
  return createWebhooks(deps, { secrets, caller, allowPrivateNetworks, mayAdd });
}

function print(context: CliContext, result: WebhookDetail | Refusal): void {
  const webhook = context.accepted(result);
  const { createdAt, updatedAt, events, headerNames, ...rest } = webhook;
  context.show(webhook, () =>
    fieldLines({
      ...rest,
      events: events.join(', '),
      ...(headerNames === undefined ? {} : { headers: headerNames.join(', ') }),
      createdAt: iso(createdAt),
      updatedAt: iso(updatedAt),
    }),
  );
}

async function deliveries(
  context: CliContext,
  id: string,
  { account, status, limit }: OptionValues<typeof deliveryOptions>,
): Promise<void> {
  const webhooks = await openWebhooks(context, account);
  const rows: WebhookDelivery[] = [];
  let beforeSeq: number | null = null;
  // Pages of a list with a filter may be short.
  do {
    const page: DeliveryPage = context.accepted(
      await webhooks.deliveries(account, id, { status, beforeSeq, limit: limit - rows.length }),
    );
    rows.push(...page.deliveries);
    beforeSeq = page.nextSeq;
  } while (beforeSeq !== null && rows.length < limit);
  context.printRows(rows, 'No delivery matches', (delivery) => ({
    delivery: delivery.deliveryId,
    event: delivery.event,
    status: delivery.status,
    attempts: delivery.attempts,
    'last attempt': delivery.lastAttemptAt,
    result: delivery.error ?? delivery.responseCode,
    next: delivery.nextProbeAt ?? delivery.nextAttemptAt,
  }));
  if (beforeSeq !== null) noteMore(context, limit);
}
