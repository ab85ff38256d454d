import * as z from 'zod';
import { recordOf } from '../../core/record-of.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import { rampStatus } from '../../delivery/ramp.ts';
import { WATCHED_RATES } from '../../reputation/changes.ts';
import { reputationCsv } from '../../reputation/csv.ts';
import { listLimits } from '../../reputation/monitor.ts';
import { presentReputation, presentSpamRate } from '../../reputation/present.ts';
import { RATE_NAMES } from '../../reputation/rates.ts';
import { domainIdsOf, MAX_REPUTATION_DAYS, reputationReport } from '../../reputation/report.ts';
import { RATE_SOURCES, type SpamRates } from '../../reputation/spam-rates.ts';
import type { Context } from '../../store/context.ts';
import { Reply, type Route, routesOf } from '../route.ts';
import { rejectedRow } from './contacts/background-imports.ts';
import { sendingLimit } from './reputation-limits.ts';

const route = routesOf({ tag: 'Reputation', scope: 'setup', permissions: ['read', 'develop'] });

const count = z.int();
const date = z.string().describe('A day, in UTC: `2026-01-31`.');
const counts = z
  .object({
    volume: count.describe(
      'Messages that were accepted for sending. With `sourceAddress` 0: the address is chosen later.',
    ),
    attempts: count.describe('Attempts that a server answered: the next five fields add up to it.'),
    delivered: count,
    deferred: count,
    hardBounced: count,
    softBounced: count,
    blocked: count.describe('Rejected or deferred because of the sender or the content.'),
    bounced: count.describe('`hardBounced` and `softBounced`.'),
    complained: count,
    unsubscribed: count,
    opened: count.describe('First opens by a person; `clicked` likewise.'),
    clicked: count,
  })
  .meta({ id: 'ReputationCounts' });
const share = z.number().nullable();
const ratesSchema = z
  .object(recordOf(RATE_NAMES, () => share))
  .describe(
    'From 0 to 1; `null`: of nothing. The first five are shares of the attempts, the others of the delivered messages.',
  )
  .meta({ id: 'ReputationRates' });
const counted = z.intersection(counts, z.object({ rates: ratesSchema })).meta({ id: 'ReputationSums' });
const day = z.intersection(z.object({ date }), counts).meta({ id: 'ReputationDay' });

const changeSchema = z
  .object({
    rate: z.enum(WATCHED_RATES),
    trend: z.enum(['worse', 'better']),
    provider: z.string(),
    domain: z.string(),
    since: date,
    share: z.number().describe('Since then, from 0 to 1.'),
    before: z.number().describe('In the week before.'),
    sentence: z.string(),
  })
  .meta({ id: 'ReputationChange' });

const spamRateFields = {
  provider: z.string(),
  domain: z.string().optional(),
  address: z.string().optional(),
  day: date,
  rate: z.number(),
};
const spamRate = z.object(spamRateFields).meta({ id: 'SpamRate' });

export const reputation = z
  .object({
    from: z.string(),
    to: z.string(),
    days: z.int(),
    total: z.intersection(z.object({ days: z.array(day) }), counted),
    providers: z
      .array(z.intersection(z.object({ provider: z.string(), days: z.array(day) }), counted))
      .describe('By attempts. Providers that Postrider does not know are added up in `other`.'),
    domains: z
      .array(z.intersection(z.object({ domainId: z.string(), domain: z.string().nullable() }), counted))
      .describe('By attempts, at most 100. `domain` is `null` after the domain was deleted.'),
    sourceAddresses: z
      .array(z.intersection(z.object({ name: z.string() }), counted))
      .describe('The entries of `delivery.egress` that sent, at most 100.'),
    dmarc: z
      .object({
        messages: count,
        passed: count,
        passRate: share,
        days: z.array(z.object({ date, messages: count, passed: count })),
      })
      .describe('What receivers reported about mail with your domains in From.'),
    changes: z
      .array(changeSchema)
      .describe('Significant changes in the last two weeks, worse ones first, at most 20.'),
    ramp: z
      .array(
        z.object({
          domain: z.string().nullable().describe('`null`: the account.'),
          day: count.describe('From 1 to `days`.'),
          days: count,
          limit: count.describe('Messages of today (UTC).'),
          used: count,
        }),
      )
      .describe(
        'Limits of today while the account or a domain is new (`reputation.ramp`). Marketing mail above the limit waits for the next day, transactional mail is slowed.',
      ),
    limits: z.array(sendingLimit).describe('Automatic limits in force, as `listSendingLimits` returns them.'),
    spamRates: z.array(spamRate).describe('Spam rates that providers stated, see `createSpamRate`.'),
  })
  .meta({ id: 'Reputation' });

const EXAMPLE_SUMS = {
  volume: 1200,
  attempts: 1260,
  delivered: 1180,
  deferred: 60,
  hardBounced: 12,
  softBounced: 5,
  blocked: 3,
  bounced: 17,
  complained: 1,
  unsubscribed: 4,
  opened: 510,
  clicked: 80,
  rates: {
    delivered: 0.9365,
    deferred: 0.0476,
    hardBounced: 0.0095,
    softBounced: 0.004,
    blocked: 0.0024,
    complained: 0.0008,
    unsubscribed: 0.0034,
    opened: 0.4322,
    clicked: 0.0678,
  },
};
const EXAMPLE_RATE = { provider: 'Google', domain: 'example.com', day: '2026-01-30', rate: 0.001 };

const EXAMPLE: z.output<typeof reputation> = {
  from: '2026-01-02T00:00:00.000Z',
  to: '2026-02-01T00:00:00.000Z',
  days: 30,
  total: { ...EXAMPLE_SUMS, days: [] },
  providers: [],
  domains: [{ domainId: 'domain_1769860800000_5k2n8v1c4x7z', domain: 'example.com', ...EXAMPLE_SUMS }],
  sourceAddresses: [],
  dmarc: {
    messages: 1204,
    passed: 1198,
    passRate: 0.995,
    days: [],
  },
  changes: [
    {
      rate: 'deferred',
      trend: 'worse',
      provider: 'Google',
      domain: 'example.com',
      since: '2026-01-24',
      share: 0.12,
      before: 0.01,
      sentence:
        "Google has deferred 12 % of example.com's mail since 24 January; it was 1 % in the week before.",
    },
  ],
  ramp: [{ domain: null, day: 3, days: 21, limit: 225, used: 37 }],
  limits: [],
  spamRates: [EXAMPLE_RATE],
};

const CSV_EXAMPLE = 'day,provider,volume,delivered,deferred,…\n2026-01-31,Google,1200,1180,60,…\n';

export const spamRateResult = z.object({
  spamRate,
  result: z.enum(['created', 'updated', 'unchanged']),
});

export const spamRateImport = z.object({
  message: z.string(),
  source: z.enum(RATE_SOURCES),
  rows: z.int(),
  created: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  rejected: z.int(),
  rejectedRows: z.array(rejectedRow).describe('The first 100.'),
});

interface ReputationServices {
  spamRates: SpamRates;
}

/** `/web-setup/reputation`: what mailbox providers do with the mail of an account. */
export function reputationRoutes(
  { clock, config, reader, tables }: Pick<Context, 'clock' | 'config' | 'reader' | 'tables'>,
  { spamRates }: ReputationServices,
): Route[] {
  return [
    route('GET /web-setup/reputation', {
      operationId: 'getReputation',
      summary: 'Get what mailbox providers do with the mail of the account',
      description:
        'Volume, results of attempts and reactions of recipients by provider and day (UTC), for all domains and source addresses or for one; the DMARC pass rate; and what changed and since when. Events count on the day on which they happen. The provider is that of the recipient’s domain: domains that a provider hosts for others count for `other`. Days without mail are omitted. With `format=csv`: a line for each provider and day.',
      query: z.object({
        days: z.coerce
          .number()
          .int()
          .min(1)
          .max(MAX_REPUTATION_DAYS)
          .default(30)
          .describe('Days up to today.'),
        domain: z.string().max(300).optional().describe('Id or name of a domain.'),
        sourceAddress: z.string().max(100).optional().describe('Name of an entry of `delivery.egress`.'),
        format: z.enum(['json', 'csv']).default('json'),
      }),
      response: {
        description: 'The reputation.',
        data: reputation,
        example: EXAMPLE,
        file: { type: 'text/csv', example: CSV_EXAMPLE },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      narrowBy: ['days'],
      hasLargeResponse: true,
      handle: async ({ caller: { accountId }, query: { days, domain, sourceAddress, format } }) => {
        const domainIds = domainIdsOf(tables, accountId, domain);
        if (isRefusal(domainIds)) return domainIds;
        const query = { accountId, now: clock.now(), days, domainIds, source: sourceAddress };
        const found = await reader.query(accountId, reputationReport, query);
        if (format === 'json')
          return {
            ...presentReputation(found, days, listLimits(tables, accountId)),
            ramp: rampStatus({ config, tables }, accountId, clock.now()),
          };
        return new Reply(
          { raw: reputationCsv(found) },
          {
            contentType: 'text/csv; charset=utf-8',
            headers: { 'Content-Disposition': 'attachment; filename="reputation.csv"' },
          },
        );
      },
    }),
    route('POST /web-setup/reputation/spam-rates', {
      operationId: 'createSpamRate',
      summary: 'Record spam rates that providers state',
      description:
        'A rate as JSON, or a CSV. The CSV is recognized by its first line: the exports of Microsoft SNDS, with or without a header, which state rates of addresses; rates of Google Postmaster Tools, with the columns `date` and `spam rate` (or `userReportedSpamRatio`), and `domain` in the file or in the query; or the columns `provider`, `domain` or `address`, `day` and `rate`. A rate is a share (`0.001`) or a percentage (`0.1%`). There is one rate for each provider, day and domain or address: a later one replaces it, and a file may be imported again.',
      query: z.object({
        domain: z.string().max(300).optional().describe('Of the rows of a CSV without a column `domain`.'),
      }),
      body: z
        .object({
          domain: z.string().max(300).optional().describe('Either `domain` or `address` is required.'),
          address: z.string().max(64).optional().describe('IP address of a server.'),
          provider: z
            .string()
            .max(100)
            .describe('Name of a mailbox provider, such as `Google` or `Microsoft`.'),
          day: z.string().max(30).describe('A date: `2026-01-31`.'),
          rate: z.number().min(0).max(1).describe('A share: 0.001 is 0.1 %.'),
        })
        .meta({ id: 'SpamRateInput' })
        .optional(),
      example: EXAMPLE_RATE,
      upload: { 'text/csv': 'provider,domain,day,rate\nGoogle,example.com,2026-01-30,0.1%\n' },
      responses: {
        200: {
          description: 'The rate was stored before, or the result of an import.',
          data: z.union([spamRateResult, spamRateImport]).meta({ id: 'SpamRatesResult' }),
          example: { spamRate: EXAMPLE_RATE, result: 'unchanged' },
        },
        201: {
          description: 'The stored rate.',
          data: spamRateResult.meta({ id: 'SpamRateResult' }),
          example: { spamRate: EXAMPLE_RATE, result: 'created' },
        },
      },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller: { accountId }, query, body, upload }) => {
        if (upload !== null) {
          const done = await spamRates.importCsv(accountId, upload.bytes, query.domain);
          if (isRefusal(done)) return done;
          return { message: `${done.rows - done.rejected} of ${done.rows} rows imported.`, ...done };
        }
        if (body === undefined)
          return invalid('body', 'is empty: a spam rate as JSON, or a CSV, is required');
        const added = await spamRates.add(accountId, body);
        if (isRefusal(added)) return added;
        return new Reply(
          { data: { spamRate: presentSpamRate(added.row), result: added.stored } },
          { status: added.stored === 'created' ? 201 : 200 },
        );
      },
    }),
  ];
}
