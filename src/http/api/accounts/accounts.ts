import * as z from 'zod';
import { accountInputSchema, accountPatchSchema } from '../../../accounts/account-form.ts';
import type { Account, Accounts } from '../../../accounts/accounts.ts';
import { type AccountLimitDefaults, readLimits } from '../../../accounts/limits.ts';
import type { Clock } from '../../../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../../../core/refusal.ts';
import { NO_ACCOUNT, type Reader } from '../../../store/readers/reads.ts';
import type { Tables } from '../../../store/tables.ts';
import { type Route, type RouteDescription, route } from '../../route.ts';
import { idPageKey, pageEndFields, paging, readIdPageKey, SHORT_PAGES, unknownKey } from '../paging.ts';
import { accountSchema, EXAMPLE_ACCOUNT, forEachLimit, presentAccount } from './account.ts';

export interface InstallationAccountDeps {
  accounts: Pick<Accounts, 'create' | 'get' | 'setStatus' | 'update'>;
  reader: Pick<Reader, 'table'>;
  tables: Tables;
  clock: Clock;
  /** The configured limits; a reload changes them. */
  defaults(): AccountLimitDefaults;
}

/** `/web-setup/accounts`: all accounts of the installation with their limits, for its operator. */
export function installationAccountRoutes(deps: InstallationAccountDeps): Route[] {
  return [...collectionRoutes(deps), ...memberRoutes(deps)];
}

const COMMON = { tag: 'Installation', scope: 'operator' } satisfies Partial<RouteDescription>;
const params = z.object({ accountId: z.string() });
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

function collectionRoutes({ accounts, reader }: InstallationAccountDeps): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/accounts',
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
      responses: {
        200: {
          description: 'A page of accounts.',
          data: z.object({ accounts: z.array(listedSchema), ...pageEndFields }),
          example: { accounts: [EXAMPLE], count: 1 },
        },
      },
      narrowBy: ['search', 'limit'],
      refusals: [],
      handle: async ({ query: { search = null, limit, lastKey } }) => {
        const afterId = readIdPageKey('accounts', lastKey);
        if (isRefusal(afterId)) return afterId;
        const page = await reader.table(NO_ACCOUNT, 'accounts', 'page', { search, afterId, limit });
        if (page === null) return unknownKey();
        const listed = page.rows.flatMap(({ account_id }) => {
          const account = accounts.get(account_id);
          return account === null ? [] : [presentListed(account)];
        });
        const next = page.nextId === null ? {} : { nextKey: idPageKey('accounts', page.nextId) };
        return { status: 200, data: { accounts: listed, count: listed.length, ...next } };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/accounts',
      operationId: 'createAccount',
      summary: 'Create an account',
      description: 'Returns a key for each scope, once.',
      body: accountInputSchema.extend({ limits: limitChanges }).meta({ id: 'AccountInput' }),
      example: { name: 'Example Shop', limits: { messagesPerDay: 10_000 } },
      responses: {
        201: {
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
      },
      refusals: ['INVALID_STATE'],
      handle: async ({ body: { limits, ...input } }) => {
        const created = await accounts.create(input, limits);
        if (isRefusal(created)) return created;
        return { status: 201, data: { account: presentListed(created.account), keys: created.keys } };
      },
    }),
  ];
}

function memberRoutes(deps: InstallationAccountDeps): Route[] {
  const { accounts } = deps;
  const detailOf = (account: Account) => ({ status: 200, data: presentDetail(deps, account) });
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/accounts/{accountId}',
      operationId: 'getInstallationAccount',
      summary: 'Get an account with its limits and their use',
      params,
      responses: { 200: { description: 'The account.', data: detailSchema, example: EXAMPLE_DETAIL } },
      refusals: ['ACCOUNT_NOT_FOUND'],
      handle: ({ params: { accountId } }) => {
        const account = accounts.get(accountId);
        return account === null ? noAccount(accountId) : detailOf(account);
      },
    }),
    route({
      ...COMMON,
      method: 'PATCH',
      path: '/web-setup/accounts/{accountId}',
      operationId: 'patchInstallationAccount',
      summary: 'Update an account and its limits',
      description: 'Fields and limits that are absent stay unchanged.',
      params,
      body: accountPatchSchema.extend({ limits: limitChanges }).meta({ id: 'InstallationAccountPatch' }),
      example: { limits: { messagesPerDay: 10_000, domains: 'default' } },
      responses: {
        200: { description: 'The updated account.', data: detailSchema, example: EXAMPLE_DETAIL },
      },
      refusals: ['ACCOUNT_NOT_FOUND'],
      handle: async ({ params: { accountId }, body: { limits, ...changes } }) => {
        const account = await accounts.update(accountId, changes, limits);
        return isRefusal(account) ? account : detailOf(account);
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/accounts/{accountId}/status',
      operationId: 'setAccountStatus',
      summary: 'Disable or enable an account',
      description:
        'A disabled account keeps its data; its requests are rejected, its queued messages and campaigns wait. The account of the calling key cannot be disabled.',
      params,
      body: z.object({ status: statusSchema }).meta({ id: 'AccountStatusInput' }),
      example: { status: 'disabled' },
      responses: {
        200: {
          description: 'The updated account.',
          data: listedSchema,
          example: { ...EXAMPLE, status: 'disabled' as const },
        },
      },
      refusals: ['ACCOUNT_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { accountId }, body: { status } }) => {
        if (status === 'disabled' && caller.accountId === accountId)
          return refuse(
            'INVALID_STATE',
            `The calling key belongs to account ${accountId}, which would be locked out: disable it with "postrider account disable ${accountId}"`,
          );
        const account = await accounts.setStatus(accountId, status);
        return isRefusal(account) ? account : { status: 200, data: presentListed(account) };
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

function presentDetail(
  { tables, clock, defaults }: InstallationAccountDeps,
  account: Account,
): z.output<typeof detailSchema> {
  const limits = forEachLimit<z.output<typeof readingSchema>>({ value: null, isDefault: true, used: null });
  for (const reading of readLimits(tables, defaults(), account.accountId, clock.now())) {
    const { limit, value, isDefault, used } = reading;
    limits[limit] = { value, isDefault, used };
  }
  return { ...presentListed(account), limits };
}
