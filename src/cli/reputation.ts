import { type Command, InvalidArgumentError } from 'commander';
import { iso } from '../core/clock.ts';
import { changeSentence } from '../reputation/changes.ts';
import { reputationCsv } from '../reputation/csv.ts';
import { listLimits } from '../reputation/monitor.ts';
import { presentReputation } from '../reputation/present.ts';
import { attemptsOf, reputationRates } from '../reputation/rates.ts';
import { domainIdsOf, MAX_REPUTATION_DAYS, type Reputation, reputationReport } from '../reputation/report.ts';
import type { ReputationCounts } from '../store/reputation/reputation-counts.ts';
import { asJson, createCommand, option } from './command.ts';
import { type CliContext, USAGE } from './context.ts';
import { alignedTable } from './output/table.ts';

/** `postrider reputation`: what mailbox providers do with the mail of an account. */
export function reputationCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'reputation',
    description: 'Show what mailbox providers do with the mail of an account',
    options: [
      option('--account <id>', 'the account', { required: true }),
      option('--days <n>', `days up to today, at most ${MAX_REPUTATION_DAYS}`, {
        parse: parseDays,
        default: 30,
      }),
      option('--domain <name>', 'only of this domain, by name or id'),
      option('--source <name>', 'only of this source address, an entry of delivery.egress'),
      option('--csv', 'print a line for each provider and day'),
      asJson,
    ],
    help: `
Shares of "delivered", "deferred", "hard", "soft" (bounces) and "blocked" are those of the attempts, the others those of the
delivered messages. Events count on the day on which they happen, in UTC. Days are stored as long as events
(limits.eventDays).

Examples:
  postrider reputation --account acct_8f3k2m9x0q1z
  postrider reputation --account acct_8f3k2m9x0q1z --days 90 --csv > reputation.csv`,
    run: async ({ account: accountId, days, domain, source, csv }) => {
      const { tables, clock } = await context.open({ account: accountId });
      const domainIds = context.accepted(domainIdsOf(tables, accountId, domain), USAGE);
      const found = reputationReport.run(tables, { accountId, now: clock.now(), days, domainIds, source });
      if (csv === true) context.print(reputationCsv(found).trimEnd());
      else context.show(presentReputation(found, days, listLimits(tables, accountId)), () => toText(found));
    },
  });
}

function parseDays(text: string): number {
  const days = Number(text);
  if (!/^\d{1,2}$/.test(text) || days < 1 || days > MAX_REPUTATION_DAYS)
    throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_REPUTATION_DAYS}.`);
  return days;
}

const HEADS = [
  'accepted',
  'attempts',
  'delivered',
  'deferred',
  'hard',
  'soft',
  'blocked',
  'complaints',
  'opens',
];

function toText({ from, to, total, providers, domains, sources, dmarc, changes }: Reputation): string {
  const table = (name: string, rows: readonly (readonly [string, ReputationCounts])[]) =>
    alignedTable([[name, ...HEADS], ...rows.map(([of, counts]) => [of, ...cellsOf(counts)])]);
  const parts = [
    changes.map(changeSentence).join('\n'),
    table('provider', [
      ...providers.map(({ provider, counts }) => [provider, counts] as const),
      ['total', total] as const,
    ]),
    domains.length > 1
      ? table(
          'domain',
          domains.map(({ name, domainId, counts }) => [name ?? domainId, counts]),
        )
      : '',
    sources.length > 0
      ? table(
          'source address',
          sources.map(({ name, counts }) => [name, counts]),
        )
      : '',
    [
      `Period: ${iso(from)} to ${iso(to)}`,
      dmarc.messages === 0
        ? 'DMARC: no reports'
        : `DMARC: ${percent(dmarc.passed / dmarc.messages)} of ${dmarc.messages.toLocaleString('en')} reported messages passed`,
    ].join('\n'),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function cellsOf(counts: ReputationCounts): string[] {
  const rates = reputationRates(counts);
  return [
    counts.volume.toLocaleString('en'),
    attemptsOf(counts).toLocaleString('en'),
    ...(
      ['delivered', 'deferred', 'hardBounced', 'softBounced', 'blocked', 'complained', 'opened'] as const
    ).map((name) => percent(rates[name])),
  ];
}

function percent(rate: number | null): string {
  return rate === null ? '-' : `${Number((rate * 100).toPrecision(3))} %`;
}
