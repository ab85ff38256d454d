import { Command, Option } from 'commander';
import { programVersion } from '../../config/version.ts';
import { iso, parseMoment } from '../../core/clock.ts';
import { createLog } from '../../core/log.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { isEventKind } from '../../events/event-types.ts';
import type { DeliveryPage, ReplayResult } from '../../webhooks/deliveries.ts';
import { mayCallPrivateNetworks, ownPorts } from '../../webhooks/private-networks.ts';
import { DELIVERY_STATUSES, type WebhookDelivery, type WebhookDetail } from '../../webhooks/resource.ts';
import { createWebhookSecrets } from '../../webhooks/secrets.ts';
import { createWebhooks, type Webhooks } from '../../webhooks/service.ts';
import type { CliContext } from '../context.ts';
import { withResolver } from '../domains/with-domains.ts';
import { noteMore, ROWS, rowLimit } from '../output/row-limit.ts';
import { counted, fieldLines } from '../output/table.ts';

/** `postrider webhook …`. */
export function webhookCommand(context: CliContext): Command {
  const command = new Command('webhook').description('Manage webhooks').addHelpText(
    'after',
    `
Examples:
  postrider webhook create https://shop.example/hooks --account acct_8f3k2m9x0q1z --event email_bounced email_complained
  postrider webhook test webhook_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z
  postrider webhook deliveries webhook_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --status failed
  postrider webhook replay webhook_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --from 2026-02-01T00:00:00Z`,
  );
  /** Adds a command with the options that all of them have. */
  const add = (usage: string, description: string) =>
    command
      .command(usage)
      .description(description)
      .requiredOption('--account <id>', 'the account')
      .option('--json', 'print JSON');

  add('list', 'List the webhooks of an account').action((options: Options) => list(context, options));
  add('create <url>', 'Create a webhook; prints its secret')
    .option('--event <kinds...>', 'event types', ['*'])
    .option('--name <name>', 'for display (default: the host)')
    .option('--description <text>', 'for display')
    .action((url: string, options: CreateOptions) => create(context, url, options));
  add('show <id>', 'Show a webhook with its secret').action((id: string, options: Options) =>
    one(context, options, (webhooks) => webhooks.get(options.account, id)),
  );
  add('delete <id>', 'Delete a webhook with its pending deliveries').action((id: string, options: Options) =>
    remove(context, id, options),
  );
  for (const [verb, isActive, description] of [
    ['enable', true, 'Send events to a webhook again'],
    ['disable', false, 'Stop sending events to a webhook'],
  ] as const) {
    add(`${verb} <id>`, description).action((id: string, options: Options) =>
      one(context, options, (webhooks) => webhooks.update(options.account, id, { isActive })),
    );
  }
  add('rotate <id>', 'Rotate the secret of a webhook; the old secret also signs for 24 hours').action(
    (id: string, options: Options) =>
      one(context, options, (webhooks) => webhooks.rotateSecret(options.account, id)),
  );
  add('test <id>', 'Send a sample event to a webhook now')
    .option('--event <kind>', 'event type (default: the first of the webhook)')
    .action((id: string, options: TestOptions) => test(context, id, options));
  add('deliveries <id>', 'List the deliveries of a webhook, newest event first')
    .addOption(new Option('--status <status>', 'only with this status').choices(DELIVERY_STATUSES))
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .action((id: string, options: DeliveryOptions) => deliveries(context, id, options));
  add('retry <id> <deliveryId>', 'Retry a delivery; the daemon does so within a second').action(
    (id: string, deliveryId: string, options: Options) => retry(context, id, deliveryId, options),
  );
  add('replay <id>', 'Repeat undelivered events; the daemon does so within a second')
    .requiredOption('--from <time>', 'events at or after this date or ISO 8601 time')
    .option('--to <time>', 'events before this time (default: now)')
    .option('--all', 'also repeat delivered events')
    .action((id: string, options: ReplayOptions) => replay(context, id, options));
  return command;
}

interface Options {
  account: string;
  json?: boolean;
}

interface CreateOptions extends Options {
  event: string[];
  name?: string;
  description?: string;
}

interface TestOptions extends Options {
  event?: string;
}

interface DeliveryOptions extends Options {
  status?: (typeof DELIVERY_STATUSES)[number];
  limit: number;
}

interface ReplayOptions extends Options {
  from: string;
  to?: string;
  all?: boolean;
}

/** Runs `work` with the webhooks module of the command's database; the daemon notices changes. */
async function withWebhooks(
  context: CliContext,
  { account }: Options,
  work: (webhooks: Webhooks) => Promise<void>,
): Promise<void> {
  const deps = await context.open();
  if (deps.tables.accounts.get(account) === null) return context.fail(`There is no account ${account}`);
  const seal = await deps.seal();
  const allowPrivateNetworks = () => mayCallPrivateNetworks(deps.config, deps.tables);
  const { createWebhookCaller } = await import('../../webhooks/call.ts');
  await withResolver(deps, async (resolver) => {
    const caller = createWebhookCaller({
      resolver,
      allowPrivateNetworks,
      ownPorts: () => ownPorts(deps.config),
      userAgent: `Postrider/${programVersion()}`,
    });
    try {
      const log = createLog({ level: 'silent', hashAddresses: true });
      const secrets = createWebhookSecrets({ seal, random: deps.random });
      const { webhooks: mayAdd } = deps.limits.mayAdd;
      await work(createWebhooks({ ...deps, log, secrets, caller, allowPrivateNetworks, mayAdd }));
    } finally {
      await caller.close();
    }
  });
}

async function list(context: CliContext, options: Options): Promise<void> {
  await withWebhooks(context, options, async (webhooks) => {
    context.printRows(
      webhooks.list(options.account, { includeInactive: true }).map(({ createdAt, ...webhook }) => ({
        ...webhook,
        createdAt: options.json === true ? createdAt : iso(createdAt),
      })),
      { json: options.json === true, empty: 'There are no webhooks in this account' },
    );
  });
}

async function create(
  context: CliContext,
  url: string,
  { event, name, description, ...options }: CreateOptions,
): Promise<void> {
  const events = event.flatMap((kinds) => kinds.split(','));
  await one(context, options, (webhooks) =>
    webhooks.create(options.account, { url, events, name, description }),
  );
}

/** Runs `work` and prints the webhook that it returns. */
async function one(
  context: CliContext,
  options: Options,
  work: (webhooks: Webhooks) => Promise<WebhookDetail | Refusal> | WebhookDetail | Refusal,
): Promise<void> {
  await withWebhooks(context, options, async (webhooks) => {
    const webhook = await work(webhooks);
    if (isRefusal(webhook)) return context.refused(webhook);
    if (options.json === true) return context.printJson(webhook);
    const { createdAt, updatedAt, events, ...rest } = webhook;
    const shown = {
      ...rest,
      events: events.join(', '),
      createdAt: iso(createdAt),
      updatedAt: iso(updatedAt),
    };
    context.print(fieldLines(shown).join('\n'));
  });
}

async function remove(context: CliContext, id: string, options: Options): Promise<void> {
  await withWebhooks(context, options, async (webhooks) => {
    const removed = await webhooks.remove(options.account, id);
    if (isRefusal(removed)) return context.refused(removed);
    if (options.json === true) context.printJson(removed);
    else context.print(`Webhook ${id} has been deleted`);
  });
}

async function test(context: CliContext, id: string, options: TestOptions): Promise<void> {
  const { event } = options;
  if (event !== undefined && !isEventKind(event)) return context.usage(`There is no event type ${event}`);
  await withWebhooks(context, options, async (webhooks) => {
    const result = await webhooks.test(options.account, id, event, new AbortController().signal);
    if (isRefusal(result)) return context.refused(result);
    const { payload, ...shown } = result;
    if (options.json === true) context.printJson(result);
    else context.print(fieldLines({ ...shown, event: payload.type }).join('\n'));
    if (!result.delivered) context.fail(result.error ?? 'The event was not delivered');
  });
}

async function deliveries(context: CliContext, id: string, options: DeliveryOptions): Promise<void> {
  await withWebhooks(context, options, async (webhooks) => {
    const rows: WebhookDelivery[] = [];
    let beforeSeq: number | null = null;
    // Pages of a list with a filter may be short.
    do {
      const page: DeliveryPage | Refusal = await webhooks.deliveries(options.account, id, {
        status: options.status,
        beforeSeq,
        limit: options.limit - rows.length,
      });
      if (isRefusal(page)) return context.refused(page);
      rows.push(...page.deliveries);
      beforeSeq = page.nextSeq;
    } while (beforeSeq !== null && rows.length < options.limit);
    const json = options.json === true;
    context.printRows(
      json
        ? rows.map((delivery) => ({ ...delivery }))
        : rows.map((delivery) => ({
            delivery: delivery.deliveryId,
            event: delivery.event,
            status: delivery.status,
            attempts: delivery.attempts,
            'last attempt': delivery.lastAttemptAt,
            result: delivery.error ?? delivery.responseCode,
            next: delivery.nextProbeAt ?? delivery.nextAttemptAt,
          })),
      { json, empty: 'No delivery matches' },
    );
    if (beforeSeq !== null) noteMore(context, options.limit);
  });
}

async function retry(context: CliContext, id: string, deliveryId: string, options: Options): Promise<void> {
  await withWebhooks(context, options, async (webhooks) => {
    const delivery = await webhooks.retry(options.account, id, deliveryId);
    if (isRefusal(delivery)) return context.refused(delivery);
    if (options.json === true) context.printJson(delivery);
    else context.print(`${deliveryId} will be retried now`);
  });
}

async function replay(context: CliContext, id: string, options: ReplayOptions): Promise<void> {
  const { clock } = await context.open();
  const from = parseMoment(options.from);
  const to = options.to === undefined ? clock.now() : parseMoment(options.to);
  if (from === null || to === null)
    return context.usage(
      `--${from === null ? 'from' : 'to'} must be a date such as 2026-02-01 or a time with zone such as 2026-02-01T12:00:00Z`,
    );
  await withWebhooks(context, options, async (webhooks) => {
    const which = options.all === true ? 'all' : 'undelivered';
    let replayed = 0;
    for (let next: number | null = from; next !== null; ) {
      const result: ReplayResult | Refusal = await webhooks.replay(options.account, id, {
        from: next,
        to,
        which,
      });
      if (isRefusal(result)) return context.refused(result);
      replayed += result.replayed;
      next = result.nextFrom;
    }
    if (options.json === true) context.printJson({ webhookId: id, replayed });
    else context.print(`${counted(replayed, 'event')} will be sent now`);
  });
}
