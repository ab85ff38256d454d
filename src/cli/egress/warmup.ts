import { Command, InvalidArgumentError } from 'commander';
import { iso } from '../../core/clock.ts';
import { egressOverview, OTHER_PROVIDERS } from '../../delivery/egress-overview.ts';
import { createEgressPools, type WarmupSetting } from '../../delivery/egress-pools.ts';
import { calendarDay } from '../../delivery/warmup.ts';
import type { CliContext, CliDeps } from '../context.ts';

/** `postrider warmup show|reset|skip`: the warm-up of source addresses. */
export function warmupCommand(context: CliContext): Command {
  const command = new Command('warmup')
    .description('Show and control the warm-up of source addresses')
    .addHelpText(
      'after',
      `
Each mailbox provider receives a limited number of messages a day (UTC) from an address with warmup in delivery.egress.
The row "${OTHER_PROVIDERS}" applies to each provider without a separate row. "reason" states why the day differs from that of the
calendar. A running daemon applies changes within seconds.

Examples:
  postrider warmup show
  postrider warmup reset out-2 --provider Microsoft
  postrider warmup skip out-1 --to-day 10
  postrider warmup skip out-1`,
    );
  command
    .command('show [entry]')
    .description('Show day, limit and use by address and provider')
    .option('--provider <name>', 'only this provider')
    .option('--json', 'print JSON')
    .action((entry: string | undefined, options: ShowOptions) => show(context, entry, options));
  command
    .command('reset <entry>')
    .description('Restart the warm-up with day 1 today, at all providers or at one')
    .option('--provider <name>', 'only at this provider')
    .action((entry: string, options: { provider?: string }) =>
      change(context, entry, { provider: options.provider ?? '', toDay: 1, reason: 'reset' }),
    );
  command
    .command('skip <entry>')
    .description('End the warm-up, or continue with a later day, at all providers or at one')
    .option('--provider <name>', 'only at this provider')
    .option('--to-day <n>', 'continue with this day today', parseDay)
    .action((entry: string, { provider = '', toDay }: { provider?: string; toDay?: number }) =>
      change(context, entry, {
        provider,
        toDay: toDay ?? null,
        reason: toDay === undefined ? 'skipped' : `skipped to day ${toDay}`,
      }),
    );
  return command;
}

interface ShowOptions {
  provider?: string;
  json?: boolean;
}

interface Change {
  /** '': all providers. */
  provider: string;
  /** Null: the warm-up ends. */
  toDay: number | null;
  reason: string;
}

function parseDay(text: string): number {
  const day = Number(text);
  if (!Number.isInteger(day) || day < 1 || day > 365)
    throw new InvalidArgumentError('Must be a number from 1 to 365');
  return day;
}

async function show(context: CliContext, entry: string | undefined, options: ShowOptions): Promise<void> {
  const { config, tables, clock } = await context.open();
  if (entry !== undefined && settingOf({ config }, entry) === null)
    return noSuchEntry(context, { config }, entry);
  const { provider } = options;
  const rows = egressOverview({ config, tables, now: clock.now() }).warmup.filter(
    (row) =>
      (entry === undefined || row.entry === entry) && (provider === undefined || row.provider === provider),
  );
  const json = options.json === true;
  const shown: Record<string, unknown>[] = json
    ? rows.map((row) => ({ ...row }))
    : rows.map(({ entry: name, address, provider: at, day, cap, used, throttled, refused, reason }) => ({
        entry: name,
        address,
        provider: at,
        day,
        limit: cap ?? 'unlimited',
        used,
        throttled,
        refused,
        reason: reason ?? '',
      }));
  context.printRows(shown, { json, empty: 'No source address has a warm-up' });
}

async function change(
  context: CliContext,
  entry: string,
  { provider, toDay, reason }: Change,
): Promise<void> {
  const deps = await context.open();
  const { clock, writer, config, tables } = deps;
  const setting = settingOf(deps, entry);
  if (setting === null) return noSuchEntry(context, deps, entry);
  const now = clock.now();
  const calendar = calendarDay(setting, now);
  if (calendar < 1)
    return context.fail(
      `The warm-up of ${entry} begins on ${setting.started}: change warmup.started of the entry to begin earlier`,
    );
  await writer.run((all) => {
    // The shift of a provider is added to that of all providers.
    const forAll = all.egressWarmup
      .all()
      .find((row) => row.entry === entry && row.provider === '' && row.started === setting.started);
    const before = provider === '' ? 0 : (forAll?.shift ?? 0);
    if (provider === '') all.egressWarmup.removeAll(entry);
    all.egressWarmup.put({
      entry,
      provider,
      started: setting.started,
      shift: toDay === null ? 0 : calendar - toDay - before,
      finished: toDay === null ? 1 : 0,
      changed_at: now,
      reason: `${reason} by the operator on ${iso(now).slice(0, 10)}`,
    });
  });
  const { warmup } = egressOverview({ config, tables, now });
  const row = warmup.find(
    (each) => each.entry === entry && each.provider === (provider === '' ? OTHER_PROVIDERS : provider),
  );
  const where = provider === '' ? 'all providers' : provider;
  const limit = row?.cap ?? null;
  context.print(
    `${entry} at ${where}: day ${row?.day ?? calendar}, ${limit === null ? 'unlimited' : `${limit.toLocaleString('en')} messages a day`}`,
  );
}

/** Null: the entry does not exist or has no warm-up. */
function settingOf({ config }: Pick<CliDeps, 'config'>, entry: string): WarmupSetting | null {
  const found = createEgressPools(config)
    .all()
    .find(({ name }) => name === entry);
  return found?.warmup ?? null;
}

function noSuchEntry(context: CliContext, { config }: Pick<CliDeps, 'config'>, entry: string): void {
  const names = config.delivery.egress.flatMap(({ name, warmup }) => (warmup === undefined ? [] : [name]));
  context.fail(
    `There is no entry "${entry}" with a warm-up in delivery.egress${names.length === 0 ? '' : `: it has ${names.join(', ')}`}`,
  );
}
