import type { Command } from 'commander';
import { DAY, iso } from '../core/clock.ts';
import {
  type MessageStats,
  type OutcomeCounts,
  ratesOf,
  readMessageStats,
  STATS_GROUPS,
  type StatsGroup,
} from '../events/message-stats.ts';
import type { CountedOutcome } from '../store/messages/hourly-counts.ts';
import type { Tables } from '../store/tables.ts';
import { asJson, createCommand, momentOf, noteMore, option, parseRowLimit, ROWS } from './command.ts';
import type { CliContext } from './context.ts';
import { alignedTable } from './output/table.ts';

/** `postrider stats`: volume and outcomes of messages. */
export function statsCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'stats',
    description: 'Show volume and outcomes of messages',
    options: [
      option('--by <group>', 'group by', { choices: STATS_GROUPS, default: 'hour' }),
      option('--from <time>', 'start of the period (default: 24 hours ago; with --by day, 30 days ago)'),
      option('--to <time>', 'end of the period (default: now)'),
      option('--account <id>', 'only of this account'),
      option('--limit <n>', 'maximum number of providers, domains or accounts', {
        parse: parseRowLimit,
        default: ROWS,
      }),
      asJson,
    ],
    help: `
Outcomes are counted in the hour in which they occur: a message that is accepted at 9:59 and delivered at 10:01 counts in
both hours, and one that is delivered and bounces afterwards counts as both. "deferred" counts attempts; "opens" and
"clicks" count the first by a person. Simulated mail is not counted. Hours and days are in UTC; --from and --to are
rounded to whole hours. Counts are stored as long as events (limits.eventDays).

Examples:
  postrider stats
  postrider stats --by provider --from 2026-02-01
  postrider stats --by day --account acct_8f3k2m9x0q1z --json`,
    run: async ({ by, account: accountId, limit, ...period }) => {
      const { tables, clock } = await context.open({ account: accountId });
      const before = by === 'day' ? 30 * DAY : DAY;
      const from =
        period.from === undefined ? clock.now() - before : momentOf(context, '--from', period.from);
      const to = period.to === undefined ? clock.now() : momentOf(context, '--to', period.to);
      if (from >= to) context.usage('--from must be before --to');
      const all = readMessageStats(tables, { by, from, to, accountId });
      const accounts =
        accountId === undefined ? tables.accounts.list().map((row) => row.account_id) : [accountId];
      const deferredNow = new Map(accounts.map((id) => [id, tables.hourlyCounts.deferredNow(id)]));
      const rows = by === 'hour' || by === 'day' ? all.rows : all.rows.slice(0, limit);
      const stats = { ...all, rows };
      const view = { by, tables, deferredNow };
      context.show(toJson(stats, view), () => toText(stats, view));
      if (rows.length < all.rows.length) noteMore(context, limit);
    },
  });
}

interface View {
  by: StatsGroup;
  tables: Tables;
  /** Messages that are deferred now, by account. */
  deferredNow: ReadonlyMap<string, number>;
}

function toJson(stats: MessageStats, { by, tables, deferredNow }: View) {
  return {
    from: iso(stats.from),
    to: iso(stats.to),
    by,
    rows: stats.rows.map(({ name, counts }) => ({
      [by]: by === 'hour' || by === 'day' ? iso(Number(name)) : name,
      ...(by === 'domain' ? { domainName: domainName(tables, name) } : {}),
      ...(by === 'account'
        ? { accountName: accountName(tables, name), deferredNow: deferredNow.get(name) ?? 0 }
        : {}),
      ...presentCounts(counts),
    })),
    total: { ...presentCounts(stats.total), deferredNow: sumOf(deferredNow) },
  };
}

function presentCounts(counts: OutcomeCounts) {
  const { bounced, deferred, failed } = counts.classes;
  return {
    ...counts.outcomes,
    bouncedByClass: bounced,
    deferredByClass: deferred,
    failedByReason: failed,
    rates: ratesOf(counts),
  };
}

const COLUMNS: readonly [heading: string, outcome: CountedOutcome][] = [
  ['accepted', 'accepted'],
  ['delivered', 'delivered'],
  ['deferred', 'deferred'],
  ['bounced', 'bounced'],
  ['failed', 'failed'],
  ['complaints', 'complained'],
  ['opens', 'opened'],
  ['clicks', 'clicked'],
];

function toText(stats: MessageStats, { by, tables, deferredNow }: View): string {
  const cells = (name: string, counts: OutcomeCounts) => [
    name,
    ...COLUMNS.map(([, outcome]) => counts.outcomes[outcome].toLocaleString('en')),
    percent(ratesOf(counts).delivered),
    percent(ratesOf(counts).bounced),
  ];
  const heading = by === 'hour' || by === 'day' ? `${by} (UTC)` : by;
  const table = alignedTable([
    [heading, ...COLUMNS.map(([name]) => name), 'delivered %', 'bounced %'],
    ...stats.rows.map(({ name, counts }) => cells(label(tables, by, name), counts)),
    cells('total', stats.total),
  ]);
  const lines = [
    table,
    '',
    `Period: ${iso(stats.from)} to ${iso(stats.to)}`,
    `Deferred now: ${sumOf(deferredNow).toLocaleString('en')}`,
  ];
  const { bounced, deferred, failed } = stats.total.classes;
  for (const [title, classes] of [
    ['Bounced', bounced],
    ['Deferred', deferred],
    ['Failed', failed],
  ] as const) {
    const listed = Object.entries(classes).toSorted((a, b) => b[1] - a[1]);
    if (listed.length > 0)
      lines.push(
        `${title} by class: ${listed.map(([name, count]) => `${name} ${count.toLocaleString('en')}`).join(', ')}`,
      );
  }
  return lines.join('\n');
}

/** `2026-02-01 12:00`, `2026-02-01`, or a name. */
function label(tables: Tables, by: StatsGroup, name: string): string {
  if (by === 'hour') return iso(Number(name)).slice(0, 16).replace('T', ' ');
  if (by === 'day') return iso(Number(name)).slice(0, 10);
  if (by === 'domain') return domainName(tables, name) ?? name;
  return name;
}

/** Null when the domain was deleted. */
function domainName(tables: Tables, domainId: string): string | null {
  return tables.domains.byId(domainId)?.name ?? null;
}

function accountName(tables: Tables, accountId: string): string | null {
  return tables.accounts.get(accountId)?.name ?? null;
}

function percent(rate: number | null): string {
  return rate === null ? '-' : (rate * 100).toFixed(1);
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}
