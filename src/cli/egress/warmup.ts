import type { Command } from 'commander';
import type { Config } from '../../config/schema.ts';
import { iso } from '../../core/clock.ts';
import { egressOverview, OTHER_PROVIDERS } from '../../delivery/egress-overview.ts';
import { createEgressPools, type WarmupSetting } from '../../delivery/egress-pools.ts';
import { BY_OPERATOR, calendarDay } from '../../delivery/warmup.ts';
import { asJson, createCommand, createGroup, option, wholeNumber } from '../command.ts';
import type { CliContext } from '../context.ts';

/** `postrider warmup show|reset|skip`: the warm-up of source addresses. */
export function warmupCommand(context: CliContext): Command {
  return createGroup('warmup', 'Show and control the warm-up of source addresses', {
    help: `
Each mailbox provider receives a limited number of messages a day (UTC) from an address with warmup in delivery.egress.
The row "${OTHER_PROVIDERS}" applies to each provider without a separate row. "reason" states why the day differs from that of the
calendar. A running daemon applies changes within seconds.

Examples:
  postrider warmup show
  postrider warmup reset out-2 --provider Microsoft
  postrider warmup skip out-1 --to-day 10
  postrider warmup skip out-1`,
    commands: [
      createCommand(context, {
        usage: 'show [entry]',
        description: 'Show day, limit and use by address and provider',
        options: [option('--provider <name>', 'only this provider'), asJson],
        run: async (entry, { provider }) => {
          const { config, tables, clock } = await context.open();
          if (entry !== undefined) settingOf(context, config, entry);
          const rows = egressOverview({ config, tables }, clock.now()).warmup.filter(
            (row) =>
              (entry === undefined || row.entry === entry) &&
              (provider === undefined || row.provider === provider),
          );
          context.printRows(rows, 'No source address has a warm-up', (row) => ({
            entry: row.entry,
            address: row.address,
            provider: row.provider,
            day: row.day,
            limit: row.cap ?? 'unlimited',
            used: row.used,
            throttled: row.throttled,
            refused: row.refused,
            reason: row.reason ?? '',
          }));
        },
      }),
      createCommand(context, {
        usage: 'reset <entry>',
        description: 'Restart the warm-up with day 1 today, at all providers or at one',
        options: [option('--provider <name>', 'only at this provider')],
        run: (entry, { provider = '' }) => change(context, entry, { provider, toDay: 1 }, 'reset'),
      }),
      createCommand(context, {
        usage: 'skip <entry>',
        description: 'End the warm-up, or continue with a later day, at all providers or at one',
        options: [
          option('--provider <name>', 'only at this provider'),
          option('--to-day <n>', 'continue with this day today', { parse: wholeNumber(1, 365) }),
        ],
        run: (entry, { provider = '', toDay = null }) =>
          change(context, entry, { provider, toDay }, toDay === null ? 'skipped' : `skipped to day ${toDay}`),
      }),
    ],
  });
}

/** `provider`: '' for all. `toDay`: null ends the warm-up. */
async function change(
  context: CliContext,
  entry: string,
  { provider, toDay }: { provider: string; toDay: number | null },
  reason: string,
): Promise<void> {
  const { clock, writer, config, tables } = await context.open();
  const setting = settingOf(context, config, entry);
  const now = clock.now();
  const calendar = calendarDay(setting, now);
  if (calendar < 1)
    return context.fail(
      `The warm-up of ${entry} begins on ${setting.started}: change warmup.started of the entry to begin earlier`,
    );
  await writer.run((tx) => {
    // The shift of a provider is added to that of all providers.
    const forAll = tx.egressWarmup
      .all()
      .find((row) => row.entry === entry && row.provider === '' && row.started === setting.started);
    const before = provider === '' ? 0 : (forAll?.shift ?? 0);
    if (provider === '') tx.egressWarmup.removeAll(entry);
    tx.egressWarmup.put({
      entry,
      provider,
      started: setting.started,
      shift: toDay === null ? 0 : calendar - toDay - before,
      finished: toDay === null ? 1 : 0,
      changed_at: now,
      reason: `${reason} ${BY_OPERATOR} on ${iso(now).slice(0, 10)}`,
    });
  });
  const { warmup } = egressOverview({ config, tables }, now);
  const row = warmup.find(
    (each) => each.entry === entry && each.provider === (provider === '' ? OTHER_PROVIDERS : provider),
  );
  const where = provider === '' ? 'all providers' : provider;
  const limit = row?.cap ?? null;
  context.print(
    `${entry} at ${where}: day ${row?.day ?? calendar}, ${limit === null ? 'unlimited' : `${limit.toLocaleString('en')} messages a day`}`,
  );
}

/** Fails when the entry does not exist or has no warm-up. */
function settingOf(context: CliContext, config: Config, entry: string): WarmupSetting {
  const found = createEgressPools(config)
    .all()
    .find(({ name }) => name === entry)?.warmup;
  if (found !== undefined && found !== null) return found;
  const names = config.delivery.egress.flatMap(({ name, warmup }) => (warmup === undefined ? [] : [name]));
  return context.fail(
    `There is no entry "${entry}" with a warm-up in delivery.egress${names.length === 0 ? '' : `: it has ${names.join(', ')}`}`,
  );
}
