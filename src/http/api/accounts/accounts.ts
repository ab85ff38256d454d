import * as z from 'zod';
import {
  type Account,
  type Accounts,
  accountInputSchema,
  accountPatchSchema,
} from '../../../accounts/accounts.ts';
import { readLimits } from '../../../accounts/limits.ts';
import { isRefusal, type Refusal, refuse } from '../../../core/refusal.ts';
import type { Context } from '../../../store/context.ts';
import { NO_ACCOUNT } from '../../../store/readers/reads.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { endOf, pageOf, pagesById, paging, SHORT_PAGES, unknownKey } from '../paging.ts';
import { accountSchema, EXAMPLE_ACCOUNT, forEachLimit, presentAccount } from './account.ts';

const route = routesOf({ tag: 'Installation', scope: 'operator' });
const statusSchema = z.enum(['active', 'disabled']);
/** An account in a list of the installation. */
export const listedSchema = accountSchema
  .extend({ status: statusSchema })
  .meta({ id: 'InstallationAccount' });
const EXAMPLE = { ...EXAMPLE_ACCOUNT, status: 'active' as const };

const readingSchema = z
  .object({
    value: z.int().nullable().describe('`null`: unlimited.'),
    isDefault: z.boolean().describe('Whether it is the configured default.'),
    used: z.int().nullable().describe('`null`: not counted.'),
  })
  .meta({ id: 'AccountLimit' });

const changeSchema = z
  .union([z.int().min(0).max(999_999_999_999_999), z.literal('default'), z.null()])
  .meta({ id: 'AccountLimitChange', description: '`null`: unlimited; `default`: as configured.' })
  .optional();

const limitChanges = z
  .object(forEachLimit(changeSchema))
  .refine(({ concurrentRequests }) => concurrentRequests !== 0, {
    path: ['concurrentRequests'],
    error: 'must be at least 1',
  })
  .meta({ id: 'AccountLimitChanges' })
  .optional();

/** An account of the installation with its limits. */
export const detailSchema = listedSchema
  .extend({ limits: z.object(forEachLimit(readingSchema)) })
  .meta({ id: 'InstallationAccountDetail' });
const EXAMPLE_DETAIL = {
  ...EXAMPLE,
  limits: {
    ...forEachLimit({ value: null, isDefault: true, used: 2 }),
    messagesPerDay: { value: 10_000, isDefault: false, used: 1200 },
    concurrentRequests: { value: 64, isDefault: true, used: null },
  },
};

/** `/web-setup/accounts`: all accounts of the installation with their limits, for its operator. */
export function installationAccountRoutes(
  { config, clock, tables, reader }: Pick<Context, 'config' | 'clock' | 'tables' | 'reader'>,
  { accounts }: { accounts: Accounts },
): Route[] {
  function presentDetail(account: Account): z.output<typeof detailSchema> {
    const limits = forEachLimit<z.output<typeof readingSchema>>({ value: null, isDefault: true, used: null });
    for (const reading of readLimits(tables, config.limits.account, account.accountId, clock.now())) {
      const { limit, value, isDefault, used } = reading;
      limits[limit] = { value, isDefault, used };
    }
    return { ...presentListed(account), limits };
  }

  return [
    route('GET /web-setup/accounts', {
      operationId: 'listAccounts',
      summary: 'List accounts',
      description: `Lists the accounts of the installation, oldest first. ${SHORT_PAGES}`,
      query: z.object({
        search: z
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe('Part of the name or id; ASCII case is ignored.'),
        ...paging,
      }),
      page: pagesById('accounts'),
      response: pageOf('accounts', listedSchema, EXAMPLE),
      narrowBy: ['search', 'limit'],
      handle: async ({ query: { search = null, limit }, after }) => {
        const page = await reader.table(NO_ACCOUNT, 'accounts', 'page', { search, afterId: after, limit });
        if (page === null) return unknownKey();
        const listed = page.rows.flatMap(({ account_id }) => {
          const account = accounts.get(account_id);
          return account === null ? [] : [presentListed(account)];
        });
        return { accounts: listed, ...endOf(listed, page.nextId) };
      },
    }),
    route('POST /web-setup/accounts', {
      operationId: 'createAccount',
      isConfirmed: true,
      summary: 'Create an account',
      description: 'Returns a key for each scope, once.',
      body: accountInputSchema.extend({ limits: limitChanges }).meta({ id: 'AccountInput' }),
      example: { name: 'Example Shop', limits: { messagesPerDay: 10_000 } },
      response: {
        status: 201,
        description: 'The account and its keys.',
        data: z.object({
          account: listedSchema,
          keys: z.object({ setup: z.string(), marketing: z.string(), transactional: z.string() }),
        }),
        example: {
          account: EXAMPLE,
          keys: { setup: 'pr_4kx…', marketing: 'pr_0m2…', transactional: 'pr_9q8…' },
        },
      },
      refusals: ['INVALID_STATE'],
      handle: async ({ body: { limits, ...input } }) => {
        const created = await accounts.create(input, limits);
        if (isRefusal(created)) return created;
        return { account: presentListed(created.account), keys: created.keys };
      },
    }),
    route('GET /web-setup/accounts/{accountId}', {
      operationId: 'getInstallationAccount',
      summary: 'Get an account with its limits and their use',
      response: { description: 'The account.', data: detailSchema, example: EXAMPLE_DETAIL },
      refusals: ['ACCOUNT_NOT_FOUND'],
      handle: ({ params: { accountId } }) => {
        const account = accounts.get(accountId);
        return account === null ? noAccount(accountId) : presentDetail(account);
      },
    }),
    route('PATCH /web-setup/accounts/{accountId}', {
      operationId: 'patchInstallationAccount',
      summary: 'Update an account and its limits',
      description: 'Fields and limits that are absent stay unchanged.',
      body: accountPatchSchema.extend({ limits: limitChanges }).meta({ id: 'InstallationAccountPatch' }),
      example: { limits: { messagesPerDay: 10_000, domains: 'default' } },
      response: { description: 'The updated account.', data: detailSchema, example: EXAMPLE_DETAIL },
      refusals: ['ACCOUNT_NOT_FOUND'],
      handle: async ({ params: { accountId }, body: { limits, ...changes } }) => {
        return mapResult(await accounts.update(accountId, changes, limits), presentDetail);
      },
    }),
    route('PUT /web-setup/accounts/{accountId}/status', {
      operationId: 'setAccountStatus',
      isConfirmed: true,
      summary: 'Disable or enable an account',
      description:
        'A disabled account keeps its data; its requests are rejected, its queued messages and campaigns wait. The account of the calling key cannot be disabled.',
      body: z.object({ status: statusSchema }).meta({ id: 'AccountStatusInput' }),
      example: { status: 'disabled' },
      response: {
        description: 'The updated account.',
        data: listedSchema,
        example: { ...EXAMPLE, status: 'disabled' as const },
      },
      refusals: ['ACCOUNT_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { accountId }, body: { status } }) => {
        if (status === 'disabled' && caller.accountId === accountId)
          return refuse(
            'INVALID_STATE',
            `The calling key belongs to account ${accountId}, which would be locked out: disable it with "postrider account disable ${accountId}"`,
          );
        return mapResult(await accounts.setStatus(accountId, status), presentListed);
      },
    }),
  ];
}

/** The refusal of an unknown account. */
export function noAccount(accountId: string): Refusal {
  return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
}

function presentListed(account: Account): z.output<typeof listedSchema> {
  return { ...presentAccount(account), status: account.status };
}
