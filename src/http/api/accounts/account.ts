import * as z from 'zod';
import { accountPatchSchema } from '../../../accounts/account-form.ts';
import type { Account, Accounts } from '../../../accounts/accounts.ts';
import { iso } from '../../../core/clock.ts';
import { isRefusal, refuse } from '../../../core/refusal.ts';
import { type Route, route } from '../../route.ts';

/**
 * `/web-setup/account`: the profile of the account. The footer of every mail contains company name and postal address;
 * without them, mail that uses the footer is refused.
 */
export function accountRoutes(accounts: Accounts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/web-setup/account',
      operationId: 'getAccount',
      tag: 'Account',
      summary: 'Get the account',
      scope: 'setup',
      responses: { 200: { description: 'The account.', data: accountSchema, example: EXAMPLE_ACCOUNT } },
      refusals: [],
      handle: ({ caller }) => {
        const account = accounts.get(caller.accountId);
        return account === null
          ? refuse('NOT_FOUND', 'The account does not exist')
          : { status: 200, data: presentAccount(account) };
      },
    }),
    route({
      method: 'PUT',
      path: '/web-setup/account',
      operationId: 'updateAccount',
      tag: 'Account',
      summary: 'Update the account',
      description:
        'Replaces the fields that are given; `null` clears a field. An address is replaced as a whole.',
      scope: 'setup',
      body: accountPatchSchema.meta({ id: 'AccountPatch' }),
      example: {
        companyName: EXAMPLE_ACCOUNT.companyName,
        companyAddress: EXAMPLE_ACCOUNT.companyAddress,
        abuseEmail: EXAMPLE_ACCOUNT.abuseEmail,
      },
      responses: {
        200: { description: 'The updated account.', data: accountSchema, example: EXAMPLE_ACCOUNT },
      },
      refusals: [],
      handle: async ({ caller, body }) => {
        const account = await accounts.update(caller.accountId, body);
        return isRefusal(account) ? account : { status: 200, data: presentAccount(account) };
      },
    }),
  ];
}

const time = z.iso.datetime();

/** An account as the API returns it. */
export const accountSchema = z
  .object({
    accountId: z.string(),
    name: z.string(),
    companyName: z.string().nullable(),
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
    abuseEmail: z.string().nullable(),
    logoUrl: z.string().nullable(),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Account' });

/** The account as the API returns it. */
export function presentAccount(account: Account): z.output<typeof accountSchema> {
  const { accountId, name, companyName, companyAddress, abuseEmail, logoUrl } = account;
  return {
    accountId,
    name,
    companyName,
    companyAddress,
    abuseEmail,
    logoUrl,
    createdAt: iso(account.createdAt),
    updatedAt: iso(account.updatedAt),
  };
}

/** An account in the examples of the documentation. */
export const EXAMPLE_ACCOUNT = {
  accountId: 'acct_8f3k2m9x0q1z',
  name: 'Example Shop',
  companyName: 'Example Shop Ltd.',
  companyAddress: { line1: '1 Main Street', city: 'Springfield', postalCode: '62701', country: 'US' },
  abuseEmail: 'abuse@example.com',
  logoUrl: null,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
