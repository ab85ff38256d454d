import type { Command } from 'commander';
import { TLS_MODES } from '../../config/setting-types.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import {
  type BulkChanges,
  type BulkResult,
  createBulkChanges,
  parseNextHop,
} from '../../delivery/control.ts';
import { createRecorder } from '../../events/record.ts';
import type { Reroute } from '../../store/messages/queue-controls.ts';
import type { QueueFilter } from '../../store/messages/queue-list.ts';
import { asJson, createCommand, type OptionValues, option, withoutAsking } from '../command.ts';
import type { CliContext } from '../context.ts';
import { counted } from '../output/table.ts';
import { filterOf, filterOptions } from './filter.ts';

const changeOptions = [
  ...filterOptions,
  option('--dry-run', 'only count the messages'),
  withoutAsking,
  asJson,
] as const;

/** `postrider queue purge|reroute`: changes all waiting messages that match a filter. */
export function changeCommands(context: CliContext): Command[] {
  return [
    createCommand(context, {
      usage: 'purge',
      description: 'Cancel all waiting messages that match a filter',
      options: [
        ...changeOptions,
        option('--reason <text>', 'reason, recorded in the events of the messages', { required: true }),
      ],
      help: `
The messages end with email_failed, reason "cancelled". Messages that are being sent are not stopped.

Examples:
  postrider queue purge --destination example.net --reason "wrong list" --dry-run
  postrider queue purge --campaign campaign_1769860800000_4kx0m2p9q8zt --reason "sent by mistake" --yes`,
      run: (options) =>
        change(context, options, {
          verb: 'Purge',
          done: 'purged',
          apply: (bulk, filter) => bulk.purge(filter, options.reason),
        }),
    }),
    createCommand(context, {
      usage: 'reroute',
      description: 'Send all waiting messages that match a filter through another next hop or egress pool',
      options: [
        ...changeOptions,
        option('--via <host:port>', 'next hop instead of the MX hosts; port 25 by default'),
        option('--tls <mode>', 'TLS with the next hop: none, opportunistic (default), required, verified'),
        option('--pool <name>', 'egress pool instead of that of the domain'),
        option('--reset', 'restore the normal route'),
      ],
      help: `
Later messages are not affected: use delivery.routes for those. Deferred messages keep their due time: follow with
"queue retry" and the same filter to try them now.

Examples:
  postrider queue reroute --destination example.net --via relay.example.com:25 --yes
  postrider queue reroute --account acct_8f3k2m9x0q1z --pool backup --dry-run
  postrider queue reroute --destination example.net --reset --yes`,
      run: async (options) => {
        const to = rerouteOf(context, options);
        await change(context, options, {
          verb: to === null ? 'Reset the route of' : 'Reroute',
          done: to === null ? 'routed normally again' : 'rerouted',
          apply: (bulk, filter) => bulk.reroute(filter, to),
        });
      },
    }),
  ];
}

interface Change {
  /** For the question. */
  verb: string;
  /** Printed after the number of messages. */
  done: string;
  apply(bulk: BulkChanges, filter: QueueFilter): Promise<BulkResult | Refusal>;
}

async function change(
  context: CliContext,
  options: OptionValues<typeof changeOptions>,
  { verb, done, apply }: Change,
): Promise<void> {
  const deps = await context.open();
  const { tables } = deps;
  const filter = filterOf(context, tables, options);
  const bulk = createBulkChanges(deps, {
    config: deps.config,
    recorder: createRecorder(deps),
    read: {
      waiting: async (where, page) => tables.queue.waiting(where, page),
      counts: async (where) => tables.queue.counts(where),
    },
  });
  const matched = await bulk.count(filter);
  if (isRefusal(matched))
    return context.usage('Specify a filter: --account, --destination, --campaign or --domain');
  const amount = counted(matched, 'waiting message');
  if (options.dryRun === true)
    return context.show({ matched, changed: 0, skipped: 0 }, () => `${amount} would be ${done}`);
  if (matched > 0 && options.yes !== true && !(await context.confirm(`${verb} ${amount}?`))) return;
  const { changed, skipped } = context.accepted(await apply(bulk, filter));
  context.show({ matched, changed, skipped }, () => `${counted(changed, 'message')} ${done}`);
  if (skipped > 0)
    context.partial(`${counted(skipped, 'message')} skipped: in delivery or changed in the meantime`);
}

/** Null: the normal route. */
function rerouteOf(
  context: CliContext,
  { via, tls, pool, reset }: Record<'via' | 'tls' | 'pool', string | undefined> & { reset: true | undefined },
): Reroute | null {
  if (reset === true)
    return via === undefined && pool === undefined
      ? null
      : context.usage('--reset excludes --via and --pool');
  if (tls !== undefined && !TLS_MODES.some((mode) => mode === tls))
    return context.usage(`--tls must be one of ${TLS_MODES.join(', ')}`);
  if (via === undefined)
    return {
      host: null,
      port: null,
      tls: null,
      pool: pool ?? context.usage('Specify --via, --pool or --reset'),
    };
  const hop = parseNextHop(via) ?? context.usage(`--via: ${via} is not host, host:port or [ip6]:port`);
  return { ...hop, tls: tls ?? null, pool: pool ?? null };
}
