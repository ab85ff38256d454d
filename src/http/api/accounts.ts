import * as z from 'zod';
import type { Accounts } from '../../accounts/accounts.ts';
import { type ApiKey, type Keys, SCOPES } from '../../accounts/keys.ts';
import { iso } from '../../core/clock.ts';
import { isRefusal, refuse } from '../../core/refusal.ts';
import { type Route, route } from '../route.ts';
import { accountSchema, EXAMPLE_ACCOUNT, presentAccount } from './account.ts';
import { pageEndFields, pageOfAll, paging } from './paging.ts';

/** `/web-setup/accounts`: all accounts of the installation and their keys, for its operator. */
export function installationAccountRoutes({
  accounts,
  keys,
}: {
  accounts: Pick<Accounts, 'get' | 'list' | 'setStatus'>;
  keys: Pick<Keys, 'list' | 'revoke'>;
}): Route[] {
  return [
    route({
      method: 'GET',
      path: '/web-setup/accounts',
      operationId: 'listAccounts',
      tag: 'Installation',
      summary: 'List accounts',
      description: 'Lists the accounts of the installation, oldest first.',
      scope: 'operator',
      query: z.object({
        search: z.string().min(1).max(200).optional().describe('Part of the name or id, in any case.'),
        ...paging,
      }),
      responses: {
        200: {
          description: 'A page of accounts.',
          data: z.object({ accounts: z.array(listedSchema), ...pageEndFields }),
          example: { accounts: [{ ...EXAMPLE_ACCOUNT, status: 'active' as const }], count: 1 },
        },
      },
      refusals: [],
      handle: ({ query }) => {
        const part = query.search?.toLowerCase();
        const all = accounts
          .list()
          .filter(
            ({ accountId, name }) =>
              part === undefined ||
              name.toLowerCase().includes(part) ||
              accountId.toLowerCase().includes(part),
          );
        const page = pageOfAll('accounts', all, query, ({ accountId }) => accountId);
        if (isRefusal(page)) return page;
        const rows = page.rows.map((account) => ({ ...presentAccount(account), status: account.status }));
        return { status: 200, data: { accounts: rows, ...page.end } };
      },
    }),
    route({
      method: 'PUT',
      path: '/web-setup/accounts/{accountId}/status',
      operationId: 'setAccountStatus',
      tag: 'Installation',
      summary: 'Disable or enable an account',
      description:
        'A disabled account keeps its data; its requests are rejected, its queued messages and campaigns wait.',
      scope: 'operator',
      params: z.object({ accountId: z.string() }),
      body: z.object({ status: statusSchema }).meta({ id: 'AccountStatusInput' }),
      example: { status: 'disabled' },
      responses: {
        200: {
          description: 'The updated account.',
          data: listedSchema,
          example: { ...EXAMPLE_ACCOUNT, status: 'disabled' as const },
        },
      },
      refusals: ['ACCOUNT_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ params, body }) => {
        const account = await accounts.setStatus(params.accountId, body.status);
        if (isRefusal(account)) return account;
        return { status: 200, data: { ...presentAccount(account), status: account.status } };
      },
    }),
    route({
      method: 'GET',
      path: '/web-setup/accounts/{accountId}/keys',
      operationId: 'listAccountKeys',
      tag: 'Installation',
      summary: 'List the API keys of an account',
      description: 'Lists them with revoked ones, oldest first, without secrets.',
      scope: 'operator',
      params: z.object({ accountId: z.string() }),
      query: z.object(paging),
      responses: {
        200: {
          description: 'A page of keys.',
          data: z.object({ keys: z.array(keySchema), ...pageEndFields }),
          example: { keys: [EXAMPLE_KEY], count: 1 },
        },
      },
      refusals: ['ACCOUNT_NOT_FOUND'],
      handle: ({ params: { accountId }, query }) => {
        if (accounts.get(accountId) === null)
          return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
        const page = pageOfAll('keys', keys.list(accountId), query, ({ keyId }) => keyId);
        if (isRefusal(page)) return page;
        return { status: 200, data: { keys: page.rows.map(presentKey), ...page.end } };
      },
    }),
    route({
      method: 'DELETE',
      path: '/web-setup/accounts/{accountId}/keys/{keyId}',
      operationId: 'revokeAccountKey',
      tag: 'Installation',
      summary: 'Revoke an API key',
      description: 'Immediate and permanent.',
      scope: 'operator',
      params: z.object({ accountId: z.string(), keyId: z.string() }),
      responses: {
        200: {
          description: 'The revoked key.',
          data: keySchema,
          example: { ...EXAMPLE_KEY, revokedAt: '2026-02-01T12:00:00.000Z' },
        },
      },
      refusals: ['KEY_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ params: { accountId, keyId } }) => {
        if (!keys.list(accountId).some((key) => key.keyId === keyId && key.revokedAt === null))
          return refuse('KEY_NOT_FOUND', `Account ${accountId} has no valid key ${keyId}`);
        const key = await keys.revoke(keyId);
        return isRefusal(key) ? key : { status: 200, data: presentKey(key) };
      },
    }),
  ];
}

const statusSchema = z.enum(['active', 'disabled']);

const listedSchema = accountSchema.extend({ status: statusSchema }).meta({ id: 'InstallationAccount' });

const keySchema = z
  .object({
    keyId: z.string(),
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    allowIps: z.array(z.string()).describe('Networks that may use the key; empty: any.'),
    allowFrom: z.array(z.string()).describe('From domains that it may send for; empty: any.'),
    allowEssential: z.boolean(),
    strictCompliance: z.boolean(),
    createdAt: z.iso.datetime(),
    revokedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'ApiKey' });

function presentKey(key: ApiKey): z.output<typeof keySchema> {
  const { keyId, name, scopes, allowIps, allowFrom, allowEssential, strictCompliance, revokedAt } = key;
  return {
    keyId,
    name,
    scopes,
    allowIps,
    allowFrom,
    allowEssential,
    strictCompliance,
    createdAt: iso(key.createdAt),
    revokedAt: revokedAt === null ? null : iso(revokedAt),
  };
}

const EXAMPLE_KEY: z.output<typeof keySchema> = {
  keyId: 'key_1769860800000_4kx0m2p9q8zt',
  name: 'shop',
  scopes: ['transactional'],
  allowIps: ['192.0.2.0/24'],
  allowFrom: [],
  allowEssential: true,
  strictCompliance: false,
  createdAt: '2026-01-31T12:00:00.000Z',
  revokedAt: null,
};
