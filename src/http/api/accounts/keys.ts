import * as z from 'zod';
import type { Accounts } from '../../../accounts/accounts.ts';
import { type ApiKey, type CreatedKey, type Keys, SCOPES } from '../../../accounts/keys.ts';
import { iso } from '../../../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../../../core/refusal.ts';
import type { ApiKeyFilter } from '../../../store/api-keys.ts';
import { type ApiResponse, type Route, type RouteDescription, route } from '../../route.ts';
import { idPageEnd, pageEndFields, paging, readIdPageKey, unknownKey } from '../paging.ts';
import { noAccount } from './accounts.ts';

export interface KeyRouteDeps {
  accounts: Pick<Accounts, 'get'>;
  keys: Pick<Keys, 'create' | 'get' | 'page' | 'revoke'>;
}

/** `/web-setup/accounts/{accountId}/keys`: the keys of each account, for the operator. */
export function accountKeyRoutes({ accounts, keys }: KeyRouteDeps): Route[] {
  const common = { tag: 'Installation', scope: 'operator' } satisfies Partial<RouteDescription>;
  const account = z.object({ accountId: z.string() });
  return [
    route({
      ...common,
      ...LIST,
      path: '/web-setup/accounts/{accountId}/keys',
      operationId: 'listAccountKeys',
      summary: 'List the API keys of an account',
      params: account,
      refusals: ['ACCOUNT_NOT_FOUND'],
      handle: ({ params: { accountId }, query }) =>
        accounts.get(accountId) === null
          ? noAccount(accountId)
          : listed(keys, { accountId, withOperators: true }, query),
    }),
    route({
      ...common,
      ...CREATE,
      path: '/web-setup/accounts/{accountId}/keys',
      operationId: 'createAccountKey',
      summary: 'Create an API key of an account',
      description: 'Keys with the scope `operator` are created on the command line only.',
      params: account,
      refusals: ['ACCOUNT_NOT_FOUND', 'LIMIT_REACHED'],
      handle: async ({ params: { accountId }, body }) => created(await keys.create({ ...body, accountId })),
    }),
    route({
      ...common,
      ...REVOKE,
      path: '/web-setup/accounts/{accountId}/keys/{keyId}',
      operationId: 'revokeAccountKey',
      summary: 'Revoke an API key',
      params: account.extend({ keyId: z.string() }),
      handle: ({ params: { accountId, keyId } }) => revoked(keys, accountId, keyId, true),
    }),
  ];
}

/** `/web-setup/keys`: the account's own keys. Keys with the scope `operator` belong to the installation, not to it. */
export function keyRoutes({ keys }: Pick<KeyRouteDeps, 'keys'>): Route[] {
  const common = { tag: 'Account', scope: 'setup' } satisfies Partial<RouteDescription>;
  return [
    route({
      ...common,
      ...LIST,
      path: '/web-setup/keys',
      operationId: 'listKeys',
      summary: 'List the API keys of the account',
      refusals: [],
      handle: ({ caller: { accountId }, query }) => listed(keys, { accountId, withOperators: false }, query),
    }),
    route({
      ...common,
      ...CREATE,
      path: '/web-setup/keys',
      operationId: 'createKey',
      summary: 'Create an API key of the account',
      description:
        'The key cannot have more rights than the calling one: its scopes, networks and From domains are among those of that key.',
      refusals: ['ACCOUNT_NOT_FOUND', 'LIMIT_REACHED'],
      handle: async ({ caller, body }) =>
        created(await keys.create({ ...body, accountId: caller.accountId }, caller)),
    }),
    route({
      ...common,
      ...REVOKE,
      path: '/web-setup/keys/{keyId}',
      operationId: 'revokeKey',
      summary: 'Revoke an API key of the account',
      params: z.object({ keyId: z.string() }),
      handle: ({ caller: { accountId }, params: { keyId } }) => revoked(keys, accountId, keyId, false),
    }),
  ];
}

const ACCOUNT_SCOPES = ['setup', 'marketing', 'transactional'] as const;

/** An API key as the API returns it. */
export const keySchema = z
  .object({
    keyId: z.string(),
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    allowIps: z.array(z.string()).describe('Networks that may use the key; empty: any.'),
    allowFrom: z.array(z.string()).describe('From domains that it may send for; empty: any.'),
    allowEssential: z.boolean(),
    strictCompliance: z.boolean(),
    createdAt: z.iso.datetime(),
    lastUsedAt: z.iso.datetime().nullable().describe('At most a minute too old; `null`: not used yet.'),
    revokedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'ApiKey' });

const EXAMPLE_KEY: z.output<typeof keySchema> = {
  keyId: 'key_1769860800000_4kx0m2p9q8zt',
  name: 'shop',
  scopes: ['transactional'],
  allowIps: ['192.0.2.0/24'],
  allowFrom: [],
  allowEssential: true,
  strictCompliance: false,
  createdAt: '2026-01-31T12:00:00.000Z',
  lastUsedAt: '2026-02-01T12:00:00.000Z',
  revokedAt: null,
};

const restriction = z.array(z.string().max(255)).max(100).default([]);

const inputSchema = z
  .object({
    name: z.string().trim().max(100).default('').describe('Shown in lists.'),
    scopes: z.array(z.enum(ACCOUNT_SCOPES)).min(1).max(ACCOUNT_SCOPES.length),
    allowIps: restriction.describe('Addresses and networks that may use the key; empty: any.'),
    allowFrom: restriction.describe('From domains that it may send for; empty: all of the account.'),
    allowEssential: z
      .boolean()
      .default(true)
      .describe('Whether it may send essential mail, which ignores a transactional opt-out.'),
    strictCompliance: z
      .boolean()
      .default(false)
      .describe(
        'Whether mail over SMTP without compliance variables is rejected instead of getting the footer.',
      ),
  })
  .meta({ id: 'ApiKeyInput' });

/** What the operations on the keys of any account and of the own one have in common. */
const LIST = {
  method: 'GET',
  description: 'Lists them with revoked ones, oldest first, without secrets.',
  query: z.object(paging),
  responses: {
    200: {
      description: 'A page of keys.',
      data: z.object({ keys: z.array(keySchema), ...pageEndFields }).meta({ id: 'ApiKeyPage' }),
      example: { keys: [EXAMPLE_KEY], count: 1 },
    },
  },
} as const;

const CREATE = {
  method: 'POST',
  body: inputSchema,
  example: { name: 'shop', scopes: ['transactional'], allowIps: ['192.0.2.0/24', '127.0.0.1'] },
  responses: {
    201: {
      description: 'The key and its secret, which is returned once.',
      data: z.object({ key: keySchema, secret: z.string() }).meta({ id: 'CreatedApiKey' }),
      example: {
        key: { ...EXAMPLE_KEY, lastUsedAt: null },
        secret: 'pr_4kx0m2p9q8zt4kx0m2p9q8zt4kx0m2p9q8zt4kx0m2',
      },
    },
  },
} as const;

const REVOKE = {
  method: 'DELETE',
  description: 'Immediate and permanent.',
  responses: {
    200: {
      description: 'The revoked key.',
      data: keySchema,
      example: { ...EXAMPLE_KEY, revokedAt: '2026-02-01T12:00:00.000Z' },
    },
  },
  refusals: ['KEY_NOT_FOUND', 'INVALID_STATE'] as ['KEY_NOT_FOUND', 'INVALID_STATE'],
} as const;

function listed(
  keys: Pick<Keys, 'page'>,
  filter: Pick<ApiKeyFilter, 'accountId' | 'withOperators'>,
  { limit, lastKey }: { limit: number; lastKey?: string | undefined },
): ApiResponse | Refusal {
  const afterId = readIdPageKey('keys', lastKey);
  if (isRefusal(afterId)) return afterId;
  const page = keys.page({ ...filter, afterId, limit });
  if (page === null) return unknownKey();
  const end = idPageEnd('keys', page, ({ keyId }) => keyId);
  return { status: 200, data: { keys: page.rows.map(presentKey), ...end } };
}

function created(result: CreatedKey | Refusal): ApiResponse | Refusal {
  return isRefusal(result)
    ? result
    : { status: 201, data: { key: presentKey(result.key), secret: result.secret } };
}

async function revoked(
  keys: Pick<Keys, 'get' | 'revoke'>,
  accountId: string,
  keyId: string,
  withOperators: boolean,
): Promise<ApiResponse | Refusal> {
  const found = keys.get(keyId);
  const isOwn = found?.accountId === accountId && (withOperators || !found.scopes.includes('operator'));
  if (!isOwn || found.revokedAt !== null)
    return refuse('KEY_NOT_FOUND', `Account ${accountId} has no valid key ${keyId}`);
  const key = await keys.revoke(keyId);
  return isRefusal(key) ? key : { status: 200, data: presentKey(key) };
}

function presentKey(key: ApiKey): z.output<typeof keySchema> {
  const { accountId: _, scopes, allowIps, allowFrom, createdAt, lastUsedAt, revokedAt, ...fields } = key;
  return {
    ...fields,
    scopes: [...scopes],
    allowIps: [...allowIps],
    allowFrom: [...allowFrom],
    createdAt: iso(createdAt),
    lastUsedAt: lastUsedAt === null ? null : iso(lastUsedAt),
    revokedAt: revokedAt === null ? null : iso(revokedAt),
  };
}
