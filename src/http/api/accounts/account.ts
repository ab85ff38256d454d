import * as z from 'zod';
import { type Account, type Accounts, accountPatchSchema } from '../../../accounts/accounts.ts';
import type { LimitName, LimitReading } from '../../../accounts/limits.ts';
import { refuse } from '../../../core/refusal.ts';
import { withoutNulls } from '../../../core/without-nulls.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';

const route = routesOf({ tag: 'Account', scope: 'setup', permissions: ['read', 'account'] });

/**
 * `/web-setup/account`: the profile of the account. The footer of every mail contains company name and postal address;
 * without them, mail that uses the footer is refused.
 */
export function accountRoutes({
  accounts,
  limitsOf,
}: {
  accounts: Accounts;
  /** The limits of an account with their use. */
  limitsOf(accountId: string): LimitReading[];
}): Route[] {
  return [
    route('GET /web-setup/account', {
      operationId: 'getAccount',
      summary: 'Get the account',
      description: 'The profile, the limits of the account, and what of them is used.',
      response: { description: 'The account.', data: accountWithUsageSchema, example: EXAMPLE_WITH_USAGE },
      handle: ({ caller }) => {
        const account = accounts.get(caller.accountId);
        return account === null
          ? refuse('NOT_FOUND', 'The account does not exist')
          : {
              ...presentAccount(account),
              ...presentUsage(limitsOf(caller.accountId)),
            };
      },
    }),
    route('PUT /web-setup/account', {
      operationId: 'updateAccount',
      summary: 'Update the account',
      description:
        'Replaces the fields that are given; `null` clears a field. An address is replaced as a whole.',
      body: accountPatchSchema.meta({ id: 'AccountPatch' }),
      readOnly: ['limits', 'usage'],
      example: {
        companyName: EXAMPLE_ACCOUNT.companyName,
        companyAddress: EXAMPLE_ACCOUNT.companyAddress,
        abuseEmail: EXAMPLE_ACCOUNT.abuseEmail,
      },
      response: { description: 'The updated account.', data: accountSchema, example: EXAMPLE_ACCOUNT },
      handle: async ({ caller, body }) =>
        mapResult(await accounts.update(caller.accountId, body), presentAccount),
    }),
  ];
}

const time = z.iso.datetime();

/** An account as the API returns it. */
export const accountSchema = z
  .object({
    accountId: z.string(),
    name: z.string(),
    companyName: z.string().optional(),
    companyAddress: z
      .object({
        line1: z.string(),
        line2: z.string().optional(),
        city: z.string(),
        region: z.string().optional(),
        postalCode: z.string(),
        country: z.string(),
      })
      .meta({ id: 'PostalAddress' })
      .nullable(),
    abuseEmail: z.string().optional(),
    logoUrl: z.string().optional(),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Account' });

/** One field for each limit. */
export function forEachLimit<Value>(value: Value) {
  return {
    domains: value,
    webhooks: value,
    templates: value,
    contacts: value,
    messagesPerHour: value,
    messagesPerDay: value,
    concurrentRequests: value,
    storedBytes: value,
    campaigns: value,
    subscriptionGroups: value,
    suppressions: value,
  } satisfies Record<LimitName, Value>;
}

const { concurrentRequests: _notCounted, ...countedLimits } = forEachLimit(z.int());
export const accountWithUsageSchema = accountSchema
  .extend({
    limits: z
      .object(forEachLimit(z.int().nullable()))
      .describe('`null`: unlimited.')
      .meta({ id: 'AccountLimits' }),
    usage: z
      .object(countedLimits)
      .describe('What counts toward each limit now; `storedBytes` includes the contents of messages.')
      .meta({ id: 'AccountUsage' }),
  })
  .meta({ id: 'AccountWithUsage' });

function presentUsage(
  readings: readonly LimitReading[],
): Pick<z.output<typeof accountWithUsageSchema>, 'limits' | 'usage'> {
  const limits = forEachLimit<number | null>(null);
  const used = forEachLimit(0);
  for (const reading of readings) {
    limits[reading.limit] = reading.value;
    used[reading.limit] = reading.used ?? 0;
  }
  const { concurrentRequests: _unknown, ...usage } = used;
  return { limits, usage };
}

/** The account as the API returns it. */
export function presentAccount(account: Account): z.output<typeof accountSchema> {
  const { accountId, name, companyName, companyAddress, abuseEmail, logoUrl, createdAt, updatedAt } = account;
  return {
    accountId,
    name,
    ...withoutNulls({ companyName, abuseEmail, logoUrl }),
    companyAddress,
    createdAt,
    updatedAt,
  };
}

/** An account in the examples of the documentation. */
export const EXAMPLE_ACCOUNT = {
  accountId: 'acct_8f3k2m9x0q1z',
  name: 'Example Shop',
  companyName: 'Example Shop Ltd.',
  companyAddress: { line1: '1 Main Street', city: 'Springfield', postalCode: '62701', country: 'US' },
  abuseEmail: 'abuse@example.com',
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};

const EXAMPLE_WITH_USAGE: z.output<typeof accountWithUsageSchema> = {
  ...EXAMPLE_ACCOUNT,
  limits: {
    ...forEachLimit(null),
    domains: 100,
    webhooks: 50,
    templates: 10_000,
    concurrentRequests: 64,
    storedBytes: 5_368_709_120,
    campaigns: 10_000,
    subscriptionGroups: 1000,
  },
  usage: {
    domains: 2,
    webhooks: 1,
    templates: 12,
    contacts: 4200,
    messagesPerHour: 130,
    messagesPerDay: 1800,
    storedBytes: 7_340_032,
    campaigns: 4,
    subscriptionGroups: 3,
    suppressions: 57,
  },
};
