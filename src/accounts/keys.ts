import { hash } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { normalizeDomain } from '../mail/address.ts';
import type { ApiKeyRow } from '../store/api-keys.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { parseNetwork } from './caller-addresses.ts';

/*
 * API keys with their scopes, allowed networks and From domains. The secret is returned once, when the key is created;
 * only its SHA-256 hash is stored (256 random bits need no slow hash).
 */

export const SCOPES = ['setup', 'marketing', 'transactional', 'operator'] as const;

export type ApiScope = (typeof SCOPES)[number];

/** Scopes of an account. `operator` concerns the whole installation; only the command line creates keys with it. */
export type AccountScope = Exclude<ApiScope, 'operator'>;

export interface ApiKey {
  keyId: string;
  accountId: string;
  name: string;
  scopes: ApiScope[];
  /** Addresses and networks it may be used from, empty: any. */
  allowIps: string[];
  /** From domains it may send for, lower-case A-labels, empty: any. */
  allowFrom: string[];
  /** May send essential mail, which ignores a transactional opt-out. */
  allowEssential: boolean;
  /** Mail submitted over SMTP without the compliance variables is refused; else the footer is appended to it. */
  strictCompliance: boolean;
  /** Epoch ms. */
  createdAt: number;
  revokedAt: number | null;
}

export interface ApiKeyInput {
  accountId: string;
  name: string;
  /** Known ones, at least one, without repeats. */
  scopes: string[];
  allowIps?: string[];
  allowFrom?: string[];
  /** Default: true. */
  allowEssential?: boolean;
  /** Default: false. */
  strictCompliance?: boolean;
}

export interface CreatedKey {
  key: ApiKey;
  /** Returned once. */
  secret: string;
}

export interface Keys {
  /** Refuses an unknown account (`ACCOUNT_NOT_FOUND`) and an invalid scope, network or domain. */
  create(input: ApiKeyInput): Promise<CreatedKey | Refusal>;
  /** All keys or one account's, revoked ones too, oldest first. */
  list(accountId: string | null): ApiKey[];
  /** Refuses an unknown key (`KEY_NOT_FOUND`) and a key that is already revoked (`INVALID_STATE`). */
  revoke(keyId: string): Promise<ApiKey | Refusal>;
}

export interface KeyDeps {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  ids: Ids;
}

const MAX_NAME = 100;
const MAX_ENTRIES = 100;

export function createKeys(deps: KeyDeps): Keys {
  const { tables, writer, clock } = deps;
  return {
    create: async (input) => {
      const checked = checkKey(input);
      if (isRefusal(checked)) return checked;
      const created = createKeyRow(deps, checked);
      return writer.run((tables): CreatedKey | Refusal => {
        if (tables.accounts.get(input.accountId) === null) {
          return refuse('ACCOUNT_NOT_FOUND', `There is no account ${input.accountId}`);
        }
        tables.apiKeys.insert(created.row);
        return created.created;
      });
    },
    list: (accountId) => tables.apiKeys.list(accountId).map(apiKeyOf),
    revoke: (keyId) =>
      writer.run((tables): ApiKey | Refusal => {
        const revokedAt = clock.now();
        const row = tables.apiKeys.get(keyId);
        if (row === null) return refuse('KEY_NOT_FOUND', `There is no key ${keyId}`);
        if (!tables.apiKeys.revoke(keyId, revokedAt)) {
          return refuse('INVALID_STATE', `Key ${keyId} is already revoked`);
        }
        return { ...apiKeyOf(row), revokedAt };
      }),
  };
}

/** The hash by which a secret is looked up. */
export function keyHash(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** A new key and its row, for the unit of work that inserts it. */
export function createKeyRow(
  deps: { ids: Ids; clock: Clock },
  input: Required<Omit<ApiKeyInput, 'scopes'>> & { scopes: ApiScope[] },
): { row: ApiKeyRow; created: CreatedKey } {
  const secret = deps.ids.apiKey();
  const key: ApiKey = { keyId: deps.ids.make('key'), createdAt: deps.clock.now(), revokedAt: null, ...input };
  const row: ApiKeyRow = {
    key_id: key.keyId,
    account_id: key.accountId,
    name: key.name,
    hash: keyHash(secret),
    scopes: JSON.stringify(key.scopes),
    allow_ips: JSON.stringify(key.allowIps),
    allow_from: JSON.stringify(key.allowFrom),
    allow_essential: key.allowEssential ? 1 : 0,
    strict_compliance: key.strictCompliance ? 1 : 0,
    created_at: key.createdAt,
    revoked_at: null,
  };
  return { row, created: { key, secret } };
}

function checkKey(
  input: ApiKeyInput,
): (Required<Omit<ApiKeyInput, 'scopes'>> & { scopes: ApiScope[] }) | Refusal {
  const name = input.name.trim();
  if (name.length > MAX_NAME || /\p{Cc}/u.test(name)) {
    return invalid('name', `must be one line of at most ${MAX_NAME} characters`);
  }
  const scopes = new Set<ApiScope>();
  for (const scope of input.scopes) {
    const known = SCOPES.find((one) => one === scope.trim());
    if (known === undefined) {
      return invalid('scope', `"${scope}" is not one of ${SCOPES.join(', ')}`);
    }
    scopes.add(known);
  }
  if (scopes.size === 0) return invalid('scope', `must name at least one of ${SCOPES.join(', ')}`);
  const allowIps = readEach(
    'allowIp',
    input.allowIps,
    'an address or network such as 192.0.2.0/24',
    (text) => parseNetwork(text)?.text ?? null,
  );
  if (isRefusal(allowIps)) return allowIps;
  const allowFrom = readEach('allowFrom', input.allowFrom, 'a domain such as example.com', normalizeDomain);
  if (isRefusal(allowFrom)) return allowFrom;
  const { accountId, allowEssential = true, strictCompliance = false } = input;
  return { accountId, name, scopes: [...scopes], allowIps, allowFrom, allowEssential, strictCompliance };
}

function readEach(
  field: string,
  texts: string[] | undefined,
  form: string,
  read: (text: string) => string | null,
): string[] | Refusal {
  const values = new Set<string>();
  for (const text of texts ?? []) {
    const value = read(text);
    if (value === null) return invalid(field, `"${text}" is not ${form}`);
    values.add(value);
  }
  return values.size > MAX_ENTRIES ? invalid(field, `must have at most ${MAX_ENTRIES} entries`) : [...values];
}

function apiKeyOf(row: ApiKeyRow): ApiKey {
  return {
    keyId: row.key_id,
    accountId: row.account_id,
    name: row.name,
    scopes: parseList<ApiScope>(row.scopes),
    allowIps: parseList(row.allow_ips),
    allowFrom: parseList(row.allow_from),
    allowEssential: row.allow_essential === 1,
    strictCompliance: row.strict_compliance === 1,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  };
}

/** Parses a JSON array of strings; most are empty, which needs no parsing. */
export function parseList<Item extends string = string>(json: string): Item[] {
  // Sound: only `createKeyRow` writes these columns.
  return json === '[]' ? [] : (JSON.parse(json) as Item[]);
}
