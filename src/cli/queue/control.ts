import type { Command } from 'commander';
import { DAY, HOUR, MINUTE, parseMoment } from '../../core/clock.ts';
import { isRefusal } from '../../core/refusal.ts';
import { createControlOrders } from '../../delivery/control.ts';
import { normalizeDomain } from '../../mail/address.ts';
import {
  CONTROL_SCOPES,
  type ControlAction,
  type ControlScope,
} from '../../store/messages/queue-controls.ts';
import { asJson, createCommand, option, withoutAsking } from '../command.ts';
import { type CliContext, tableOptions } from '../context.ts';
import { formatTable } from '../output/table.ts';

/** Stored as the creator of a control. */
const BY = 'command line';

const targetOptions = [
  option('--destination <domain>', 'recipient domain'),
  option('--site <name>', 'site: MX hosts or shaping profile, with or without its pool'),
  option('--account <id>', 'account'),
  option('--pool <name>', 'egress pool'),
] as const;

/** `postrider queue pause|resume|pauses|bounce`. A running daemon applies changes within a second. */
export function controlCommands(context: CliContext): Command[] {
  return [
    createCommand(context, {
      usage: 'pause',
      description: 'Pause the delivery to a destination or site, of an account, or from an egress pool',
      options: [
        ...targetOptions,
        option('--reason <text>', 'reason, shown with the delayed messages', { default: 'no reason given' }),
        option('--until <time>', 'end of the pause: an ISO 8601 time, or 30m, 2h, 1d (default: none)'),
        asJson,
      ],
      help: `
Paused messages stay queued and do not expire. When they are resumed, each is tried once even if its lifetime has ended.
Sessions in progress end normally.

Examples:
  postrider queue pause --destination example.net --reason "maintenance at the receiver" --until 2h
  postrider queue pause --site '*.google.com' --reason "blocked, ticket 4711"
  postrider queue pause --pool marketing --reason "the address is listed"`,
      run: (options) => create(context, 'pause', targetOf(context, options), options),
    }),
    createCommand(context, {
      usage: 'resume',
      description: 'End a pause, or accept mail for a rejected destination again',
      options: [...targetOptions, asJson],
      run: async (options) => {
        const { scope, target } = targetOf(context, options);
        const control = context.accepted(
          await createControlOrders(await context.open()).remove(scope, target),
        );
        context.show(control, () => `Resumed: ${control.scope} ${control.target}`);
      },
    }),
    createCommand(context, {
      usage: 'pauses',
      description: 'List pauses and rejected destinations',
      options: [asJson],
      run: async () => {
        const controls = createControlOrders(await context.open()).list();
        if (context.json || controls.length === 0)
          return context.printRows(
            controls.map(({ until, ...control }) => ({ ...control, until })),
            'Nothing is paused or rejected',
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
      },
    }),
    createCommand(context, {
      usage: 'bounce',
      description: 'Reject the mail to a destination, now and until "queue resume"',
      options: [
        option('--destination <domain>', 'recipient domain', { required: true }),
        option('--reason <text>', 'reason, included in the bounces', { required: true }),
        option('--until <time>', 'end of the rejection: an ISO 8601 time, or 30m, 2h, 1d (default: none)'),
        withoutAsking,
        asJson,
      ],
      help: `
Queued and later messages to the destination bounce (550 5.7.1) when they are due. Their recipients are not suppressed.

Example:
  postrider queue bounce --destination example.net --reason "domain closed" --yes`,
      run: async (options) => {
        const { destination: target } = options;
        const { tables } = await context.open();
        const { messages } = tables.queue.counts({ destination: normalizeDomain(target) ?? '' });
        const question = `Reject all mail to ${target}, of which ${messages.toLocaleString('en')} ${messages === 1 ? 'message is' : 'messages are'} queued?`;
        if (options.yes === true || (await context.confirm(question)))
          await create(context, 'bounce', { scope: 'destination', target }, options);
      },
    }),
  ];
}

interface Target {
  scope: ControlScope;
  target: string;
}

async function create(
  context: CliContext,
  action: ControlAction,
  named: Target,
  { reason, until: end }: { reason: string; until: string | undefined },
): Promise<void> {
  const until = end === undefined ? null : timeOf(end, Date.now());
  if (until !== null && Number.isNaN(until))
    context.usage(`--until: ${end} is neither an ISO 8601 time nor a duration such as 2h`);
  const orders = createControlOrders(await context.open());
  const created = await orders.create({ action, ...named, reason, until }, BY);
  const [detail] = isRefusal(created) ? (created.extras.details ?? []) : [];
  if (detail !== undefined)
    context.usage(`--${detail.field === 'target' ? named.scope : detail.field}: ${detail.message}`);
  const control = context.accepted(created);
  context.show(
    control,
    () =>
      `${action === 'pause' ? 'Paused' : 'Rejected'}: ${control.scope} ${control.target}${control.until === null ? '' : ` until ${control.until}`}`,
  );
}

/** The target, of which the options must specify exactly one. */
function targetOf(context: CliContext, options: Record<ControlScope, string | undefined>): Target {
  const [only, ...others] = CONTROL_SCOPES.flatMap((scope) => {
    const target = options[scope];
    return target === undefined ? [] : [{ scope, target }];
  });
  if (only !== undefined && others.length === 0) return only;
  return context.usage('Specify exactly one of --destination, --site, --account and --pool');
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
