import { Command } from 'commander';
import { TLS_MODES } from '../../config/setting-types.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import {
  type BulkChanges,
  type BulkResult,
  createBulkChanges,
  parseNextHop,
} from '../../delivery/control/bulk.ts';
import { createRecorder } from '../../events/record.ts';
import type { Reroute } from '../../store/messages/queue-controls.ts';
import type { QueueFilter } from '../../store/messages/queue-list.ts';
import type { CliContext } from '../context.ts';
import { counted } from '../output/table.ts';
import { type FilterOptions, filterOf, withFilters } from './filter.ts';

interface ChangeOptions extends FilterOptions {
  dryRun?: boolean;
  yes?: boolean;
  json?: boolean;
}

type RerouteOptions = ChangeOptions & { via?: string; tls?: string; pool?: string; reset?: boolean };

/** `postrider queue purge|reroute`: changes all waiting messages that match a filter. */
export function changeCommands(context: CliContext): Command[] {
  const purge = withOptions(new Command('purge'))
    .description('Cancel all waiting messages that match a filter')
    .requiredOption('--reason <text>', 'reason, recorded in the events of the messages')
    .addHelpText(
      'after',
      `
The messages end with email_failed, reason "cancelled". Messages that are being sent are not stopped.

Examples:
  postrider queue purge --destination example.net --reason "wrong list" --dry-run
  postrider queue purge --campaign campaign_1769860800000_4kx0m2p9q8zt --reason "sent by mistake" --yes`,
    )
    .action((options: ChangeOptions & { reason: string }) =>
      change(context, options, {
        verb: 'Purge',
        done: 'purged',
        apply: (bulk, filter) => bulk.purge(filter, options.reason),
      }),
    );
  const reroute = withOptions(new Command('reroute'))
    .description('Send all waiting messages that match a filter through another next hop or egress pool')
    .option('--via <host:port>', 'next hop instead of the MX hosts; port 25 by default')
    .option('--tls <mode>', 'TLS with the next hop: none, opportunistic (default), required, verified')
    .option('--pool <name>', 'egress pool instead of that of the domain')
    .option('--reset', 'restore the normal route')
    .addHelpText(
      'after',
      `
Later messages are not affected: use delivery.routes for those. Deferred messages keep their due time: follow with
"queue retry" and the same filter to try them now.

Examples:
  postrider queue reroute --destination example.net --via relay.example.com:25 --yes
  postrider queue reroute --account acct_8f3k2m9x0q1z --pool backup --dry-run
  postrider queue reroute --destination example.net --reset --yes`,
    )
    .action(async (options: RerouteOptions) => {
      const to = rerouteOf(context, options);
      if (to === undefined) return;
      await change(context, options, {
        verb: to === null ? 'Reset the route of' : 'Reroute',
        done: to === null ? 'routed normally again' : 'rerouted',
        apply: (bulk, filter) => bulk.reroute(filter, to),
      });
    });
  return [purge, reroute];
}

function withOptions(command: Command): Command {
  return withFilters(command)
    .option('--dry-run', 'only count the messages')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print JSON');
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
  options: ChangeOptions,
  { verb, done, apply }: Change,
): Promise<void> {
  const deps = await context.open();
  const filter = filterOf(context, deps.tables, options);
  if (filter === null) return;
  const { tables } = deps;
  const bulk = createBulkChanges({
    ...deps,
    recorder: createRecorder(deps),
    read: {
      waiting: async (where, page) => tables.queue.waiting(where, page),
      counts: async (where) => tables.queue.counts(where),
    },
  });
  const matched = await bulk.count(filter);
  if (isRefusal(matched))
    return context.usage('Specify a filter: --account, --destination, --campaign or --domain');
  const json = options.json === true;
  const amount = counted(matched, 'waiting message');
  if (options.dryRun === true)
    return json
      ? context.printJson({ matched, changed: 0, skipped: 0 })
      : context.print(`${amount} would be ${done}`);
  if (matched > 0 && options.yes !== true && !(await context.confirm(`${verb} ${amount}?`))) return;
  const result = await apply(bulk, filter);
  if (isRefusal(result)) return context.refused(result);
  const { changed, skipped } = result;
  if (json) context.printJson({ matched, changed, skipped });
  else context.print(`${counted(changed, 'message')} ${done}`);
  if (skipped > 0)
    context.partial(`${counted(skipped, 'message')} skipped: in delivery or changed in the meantime`);
}

/** Null: the normal route. Undefined: the options are invalid, which has been reported. */
function rerouteOf(
  context: CliContext,
  { via, tls, pool, reset }: RerouteOptions,
): Reroute | null | undefined {
  const report = (message: string) => {
    context.usage(message);
    return undefined;
  };
  if (reset === true)
    return via === undefined && pool === undefined ? null : report('--reset excludes --via and --pool');
  if (tls !== undefined && !TLS_MODES.some((mode) => mode === tls))
    return report(`--tls must be one of ${TLS_MODES.join(', ')}`);
  if (via === undefined)
    return pool === undefined
      ? report('Specify --via, --pool or --reset')
      : { host: null, port: null, tls: null, pool };
  const hop = parseNextHop(via);
  return hop === null
    ? report(`--via: ${via} is not host, host:port or [ip6]:port`)
    : { ...hop, tls: tls ?? null, pool: pool ?? null };
}
