import * as z from 'zod';
import type { Accounts } from '../../../accounts/accounts.ts';
import { type ApiKey, type ApiKeyInput, type CreatedKey, type Keys, SCOPES } from '../../../accounts/keys.ts';
import { refuse } from '../../../core/refusal.ts';
import type { Seal } from '../../../core/seal.ts';
import type { ApiKeyFilter } from '../../../store/api-keys.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { endOf, pageOf, pagesById, paging, unknownKey } from '../paging.ts';
import { noAccount } from './accounts.ts';

const ofInstallation = routesOf({ tag: 'Installation', scope: 'operator' });
const ofAccount = routesOf({ tag: 'Account', scope: 'setup', permissions: ['keys', 'keys'] });

type AnyKeys = Pick<Keys, 'create' | 'get' | 'page' | 'revoke'>;

/** `/web-setup/accounts/{accountId}/keys`: the keys of each account, for the operator. */
export function accountKeyRoutes({
  accounts,
  keys,
  seal,
}: {
  accounts: Pick<Accounts, 'get'>;
  keys: AnyKeys;
  seal: Seal;
}): Route[] {
  return [
    ofInstallation('GET /web-setup/accounts/{accountId}/keys', {
      ...LIST,
      operationId: 'listAccountKeys',
      summary: 'List the API keys of an account',
      refusals: ['ACCOUNT_NOT_FOUND'],
      handle: ({ params: { accountId }, query: { limit }, after }) =>
        accounts.get(accountId) === null
          ? noAccount(accountId)
          : listed(keys, { accountId, withOperators: true, afterId: after, limit }),
    }),
    ofInstallation('POST /web-setup/accounts/{accountId}/keys', {
      ...CREATE,
      operationId: 'createAccountKey',
      summary: 'Create an API key of an account',
      description: 'Keys with the scope `operator` are created on the command line only.',
      handle: async ({ params: { accountId }, body }) =>
        mapResult(await keys.create(inputOf(accountId, body, seal)), presentCreated),
    }),
    ofInstallation('DELETE /web-setup/accounts/{accountId}/keys/{keyId}', {
      ...REVOKE,
      operationId: 'revokeAccountKey',
      summary: 'Revoke an API key',
      handle: ({ params: { accountId, keyId } }) => revoke(keys, accountId, keyId, true),
    }),
  ];
}

/** `/web-setup/keys`: the account's own keys. Keys with the scope `operator` belong to the installation, not to it. */
export function keyRoutes({ keys, seal }: { keys: AnyKeys; seal: Seal }): Route[] {
  return [
    ofAccount('GET /web-setup/keys', {
      ...LIST,
      operationId: 'listKeys',
      summary: 'List the API keys of the account',
      handle: ({ caller: { accountId }, query: { limit }, after }) =>
        listed(keys, { accountId, withOperators: false, afterId: after, limit }),
    }),
    ofAccount('POST /web-setup/keys', {
      ...CREATE,
      operationId: 'createKey',
      summary: 'Create an API key of the account',
      description:
        'The key cannot have more rights than the calling one: its scopes, networks and From domains are among those of that key.',
      handle: async ({ caller, body }) =>
        mapResult(await keys.create(inputOf(caller.accountId, body, seal), caller), presentCreated),
    }),
    ofAccount('DELETE /web-setup/keys/{keyId}', {
      ...REVOKE,
      operationId: 'revokeKey',
      summary: 'Revoke an API key of the account',
      handle: ({ caller: { accountId }, params: { keyId } }) => revoke(keys, accountId, keyId, false),
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
    livemode: z.boolean().describe('`false`: a test key, whose mail is simulated and never sent.'),
    sigv4: z
      .boolean()
      .describe('Whether it signs requests (AWS signature version 4), too; `false` for a revoked key.'),
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
  livemode: true,
  sigv4: false,
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
    livemode: z
      .boolean()
      .default(true)
      .describe(
        '`false` creates a test key: what it sends is checked, stored and reported with `livemode: false`, and never leaves.',
      ),
    sigv4: z
      .boolean()
      .default(false)
      .describe(
        'Whether requests can also be signed with it (AWS signature version 4), as SDKs of Amazon SES do: `keyId` is the access key id, `secret` the secret access key, which is then stored encrypted.',
      ),
  })
  .meta({ id: 'ApiKeyInput' });

/** What the operations on the keys of any account and of the own one have in common. */
const LIST = {
  description: 'Lists them with revoked ones, oldest first, without secrets.',
  query: z.object(paging),
  page: pagesById('keys'),
  response: pageOf('keys', keySchema, EXAMPLE_KEY, { id: 'ApiKeyPage' }),
};

const CREATE = {
  isConfirmed: true,
  body: inputSchema,
  example: { name: 'shop', scopes: ['transactional'], allowIps: ['192.0.2.0/24', '127.0.0.1'] },
  response: {
    status: 201,
    description: 'The key and its secret, which is returned once.',
    data: z.object({ key: keySchema, secret: z.string() }).meta({ id: 'CreatedApiKey' }),
    example: {
      key: { ...EXAMPLE_KEY, lastUsedAt: null },
      secret: 'pr_4kx0m2p9q8zt4kx0m2p9q8zt4kx0m2p9q8zt4kx0m2',
    },
  },
  refusals: ['ACCOUNT_NOT_FOUND', 'LIMIT_REACHED'],
} as const;

const REVOKE = {
  isConfirmed: true,
  description: 'Immediate and permanent.',
  response: {
    description: 'The revoked key.',
    data: keySchema,
    example: { ...EXAMPLE_KEY, revokedAt: '2026-02-01T12:00:00.000Z' },
  },
  refusals: ['KEY_NOT_FOUND', 'INVALID_STATE'],
} as const;

function inputOf(
  accountId: string,
  { sigv4, ...input }: z.output<typeof inputSchema>,
  seal: Seal,
): ApiKeyInput {
  return { ...input, accountId, seal: sigv4 ? seal : null };
}

function listed(keys: AnyKeys, filter: ApiKeyFilter) {
  const page = keys.page(filter);
  if (page === null) return unknownKey();
  const { rows, more } = page;
  return { keys: rows.map(presentKey), ...endOf(rows, more ? rows.at(-1)?.keyId : null) };
}

async function revoke(keys: AnyKeys, accountId: string, keyId: string, withOperators: boolean) {
  const found = keys.get(keyId);
  const isOwn = found?.accountId === accountId && (withOperators || !found.scopes.includes('operator'));
  if (!isOwn || found.revokedAt !== null)
    return refuse('KEY_NOT_FOUND', `Account ${accountId} has no valid key ${keyId}`);
  return mapResult(await keys.revoke(keyId), presentKey);
}

function presentCreated({ key, secret }: CreatedKey) {
  return { key: presentKey(key), secret };
}

function presentKey(key: ApiKey): z.output<typeof keySchema> {
  const { accountId: _, scopes, allowIps, allowFrom, ...fields } = key;
  return { ...fields, scopes: [...scopes], allowIps: [...allowIps], allowFrom: [...allowFrom] };
}
