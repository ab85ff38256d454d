import { Command } from 'commander';
import { DAY, HOUR, MINUTE, parseMoment } from '../../core/clock.ts';
import { isRefusal } from '../../core/refusal.ts';
import { type ControlOrders, createControlOrders } from '../../delivery/control/orders.ts';
import { normalizeDomain } from '../../mail/address.ts';
import {
  CONTROL_SCOPES,
  type ControlAction,
  type ControlScope,
} from '../../store/messages/queue-controls.ts';
import { type CliContext, tableOptions } from '../context.ts';
import { formatTable } from '../output/table.ts';

/** Stored as the creator of a control. */
const BY = 'command line';

/** `postrider queue pause|resume|pauses|bounce`. A running daemon applies changes within a second. */
export function controlCommands(context: CliContext): Command[] {
  const pause = withTargets(new Command('pause'))
    .description('Pause the delivery to a destination or site, of an account, or from an egress pool')
    .option('--reason <text>', 'reason, shown with the delayed messages', 'no reason given')
    .option('--until <time>', 'end of the pause: an ISO 8601 time, or 30m, 2h, 1d (default: none)')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Paused messages stay queued and do not expire. When they are resumed, each is tried once even if its lifetime has ended.
Sessions in progress end normally.

Examples:
  postrider queue pause --destination example.net --reason "maintenance at the receiver" --until 2h
  postrider queue pause --site '*.google.com' --reason "blocked, ticket 4711"
  postrider queue pause --pool marketing --reason "the address is listed"`,
    )
    .action((options: PauseOptions) => create(context, 'pause', options));
  const resume = withTargets(new Command('resume'))
    .description('End a pause, or accept mail for a rejected destination again')
    .option('--json', 'print JSON')
    .action((options: TargetOptions) => remove(context, options));
  const pauses = new Command('pauses')
    .description('List pauses and rejected destinations')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const controls = (await openOrders(context)).list();
      const json = options.json === true;
      if (json || controls.length === 0)
        return context.printRows(
          controls.map(({ until, ...control }) => ({ ...control, until })),
          { json, empty: 'Nothing is paused or rejected' },
        );
      const rows = controls.map(({ action, scope, target, reason, until, createdAt }) => ({
        action,
        scope,
        target,
        reason,
        until: until === null ? '' : minute(until),
        created: minute(createdAt),
      }));
      context.printStyled(formatTable(rows, { ...tableOptions(), shorten: false }));
    });
  const bounce = new Command('bounce')
    .description('Reject the mail to a destination, now and until "queue resume"')
    .requiredOption('--destination <domain>', 'recipient domain')
    .requiredOption('--reason <text>', 'reason, included in the bounces')
    .option('--until <time>', 'end of the rejection: an ISO 8601 time, or 30m, 2h, 1d (default: none)')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Queued and later messages to the destination bounce (550 5.7.1) when they are due. Their recipients are not suppressed.

Example:
  postrider queue bounce --destination example.net --reason "domain closed" --yes`,
    )
    .action(async (options: PauseOptions & { yes?: boolean }) => {
      const { tables } = await context.open();
      const { messages } = tables.queue.counts({
        destination: normalizeDomain(options.destination ?? '') ?? '',
      });
      const question = `Reject all mail to ${options.destination}, of which ${messages.toLocaleString('en')} ${messages === 1 ? 'message is' : 'messages are'} queued?`;
      if (options.yes === true || (await context.confirm(question))) await create(context, 'bounce', options);
    });
  return [pause, resume, pauses, bounce];
}

type TargetOptions = Partial<Record<ControlScope, string>> & { json?: boolean };
type PauseOptions = TargetOptions & { reason: string; until?: string };

function withTargets(command: Command): Command {
  return command
    .option('--destination <domain>', 'recipient domain')
    .option('--site <name>', 'site: MX hosts or shaping profile, with or without its pool')
    .option('--account <id>', 'account')
    .option('--pool <name>', 'egress pool');
}

async function openOrders(context: CliContext): Promise<ControlOrders> {
  return createControlOrders(await context.open());
}

async function create(context: CliContext, action: ControlAction, options: PauseOptions): Promise<void> {
  const named = targetOf(context, options);
  if (named === null) return;
  const until = options.until === undefined ? null : timeOf(options.until, Date.now());
  if (until !== null && Number.isNaN(until))
    return context.usage(`--until: ${options.until} is neither an ISO 8601 time nor a duration such as 2h`);
  const orders = await openOrders(context);
  const control = await orders.create({ action, ...named, reason: options.reason, until }, BY);
  if (isRefusal(control)) {
    const [detail] = control.extras.details ?? [];
    return detail === undefined
      ? context.refused(control)
      : context.usage(`--${detail.field === 'target' ? named.scope : detail.field}: ${detail.message}`);
  }
  if (options.json === true) context.printJson(control);
  else
    context.print(
      `${action === 'pause' ? 'Paused' : 'Rejected'}: ${control.scope} ${control.target}${control.until === null ? '' : ` until ${control.until}`}`,
    );
}

async function remove(context: CliContext, options: TargetOptions): Promise<void> {
  const named = targetOf(context, options);
  if (named === null) return;
  const orders = await openOrders(context);
  const control = await orders.remove(named.scope, named.target);
  if (isRefusal(control)) return context.refused(control);
  if (options.json === true) context.printJson(control);
  else context.print(`Resumed: ${control.scope} ${control.target}`);
}

/** The target, if the options specify exactly one; otherwise null, which has been reported. */
function targetOf(
  context: CliContext,
  options: TargetOptions,
): { scope: ControlScope; target: string } | null {
  const named = CONTROL_SCOPES.flatMap((scope) => {
    const target = options[scope];
    return target === undefined ? [] : [{ scope, target }];
  });
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;
  context.usage('Specify exactly one of --destination, --site, --account and --pool');
  return null;
}

/** `2026-11-27 09:31 UTC`, of an ISO 8601 time. */
function minute(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}

/** Epoch ms; NaN: the text is not a time. */
function timeOf(text: string, now: number): number {
  const [, amount, unit] = /^(\d{1,6})(m|h|d)$/.exec(text) ?? [];
  const ms = { m: MINUTE, h: HOUR, d: DAY };
  if (amount !== undefined && (unit === 'm' || unit === 'h' || unit === 'd'))
    return now + Number(amount) * ms[unit];
  return parseMoment(text) ?? Number.NaN;
}
