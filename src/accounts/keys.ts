import { hash } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { normalizeDomain } from '../mail/address.ts';
import type { ApiKeyRow } from '../store/api-keys.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { parseNetwork } from './caller-addresses.ts';

/**
 * API keys: what they may do, from where, and for which From domains. The secret is returned once, by the
 * function that makes it; only its SHA-256 is kept (256 random bits need no slow hash).
 */
export const SCOPES = ['setup', 'marketing', 'transactional'] as const;

export type Scope = (typeof SCOPES)[number];

export interface ApiKey {
  keyId: string;
  accountId: string;
  name: string;
  scopes: Scope[];
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

export interface NewKey {
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
  /** Shown once. */
  secret: string;
}

export interface Keys {
  /** Refuses an unknown account (`ACCOUNT_NOT_FOUND`) and a bad scope, network or domain. */
  create(wish: NewKey): Promise<CreatedKey | Refusal>;
  /** All keys or one account's, revoked ones too, oldest first. */
  list(accountId: string | null): ApiKey[];
  /** Refuses an unknown key (`KEY_NOT_FOUND`) and one that is revoked already (`INVALID_STATE`). */
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
    create: async (wish) => {
      const checked = checkKey(wish);
      if (isRefusal(checked)) return checked;
      const made = makeKey(deps, checked);
      return writer.run((tables): CreatedKey | Refusal => {
        if (tables.accounts.get(wish.accountId) === null) {
          return refuse('ACCOUNT_NOT_FOUND', `there is no account ${wish.accountId}`);
        }
        tables.apiKeys.insert(made.row);
        return made.created;
      });
    },
    list: (accountId) => tables.apiKeys.list(accountId).map(apiKeyOf),
    revoke: (keyId) =>
      writer.run((tables): ApiKey | Refusal => {
        const revokedAt = clock.now();
        const row = tables.apiKeys.get(keyId);
        if (row === null) return refuse('KEY_NOT_FOUND', `there is no key ${keyId}`);
        if (!tables.apiKeys.revoke(keyId, revokedAt)) {
          return refuse('INVALID_STATE', `key ${keyId} is revoked already`);
        }
        return { ...apiKeyOf(row), revokedAt };
      }),
  };
}

/** The look-up form of a secret. */
export function keyHash(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** A fresh key and its row, for the unit of work that stores it. */
export function makeKey(
  deps: { ids: Ids; clock: Clock },
  wish: Required<Omit<NewKey, 'scopes'>> & { scopes: Scope[] },
): { row: ApiKeyRow; created: CreatedKey } {
  const secret = deps.ids.apiKey();
  const key: ApiKey = { keyId: deps.ids.make('key'), createdAt: deps.clock.now(), revokedAt: null, ...wish };
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

function checkKey(wish: NewKey): (Required<Omit<NewKey, 'scopes'>> & { scopes: Scope[] }) | Refusal {
  const name = wish.name.trim();
  if (name.length > MAX_NAME || /\p{Cc}/u.test(name)) {
    return invalid('name', `must be at most ${MAX_NAME} characters on one line`);
  }
  const scopes = new Set<Scope>();
  for (const scope of wish.scopes) {
    const known = SCOPES.find((one) => one === scope.trim());
    if (known === undefined) {
      return invalid('scope', `"${scope}" is none of ${SCOPES.join(', ')}`);
    }
    scopes.add(known);
  }
  if (scopes.size === 0) return invalid('scope', `must name at least one of ${SCOPES.join(', ')}`);
  const allowIps = readEach(
    'allowIp',
    wish.allowIps,
    'an address or network such as 192.0.2.0/24',
    (text) => {
      return parseNetwork(text)?.text ?? null;
    },
  );
  if (isRefusal(allowIps)) return allowIps;
  const allowFrom = readEach('allowFrom', wish.allowFrom, 'a domain such as example.com', normalizeDomain);
  if (isRefusal(allowFrom)) return allowFrom;
  const { accountId, allowEssential = true, strictCompliance = false } = wish;
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
    scopes: parseList<Scope>(row.scopes),
    allowIps: parseList(row.allow_ips),
    allowFrom: parseList(row.allow_from),
    allowEssential: row.allow_essential === 1,
    strictCompliance: row.strict_compliance === 1,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  };
}

/** A JSON array of ours; most are empty, so that case costs nothing. */
export function parseList<Item extends string = string>(json: string): Item[] {
  // Sound: only `makeKey` writes these columns.
  return json === '[]' ? [] : (JSON.parse(json) as Item[]);
}
