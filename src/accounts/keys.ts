import { hash } from 'node:crypto';
import { type Clock, iso, isoOrNull } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Log } from '../core/log.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Seal } from '../core/seal.ts';
import { normalizeDomain } from '../mail/address.ts';
import type { ApiKeyFilter, ApiKeyRow, ListedApiKeyRow } from '../store/api-keys.ts';
import type { Context } from '../store/context.ts';
import type { Writer } from '../store/database/writer.ts';
import type { Page } from '../store/rows/page.ts';
import { parseNetwork } from './caller-addresses.ts';

/*
 * API keys with their scopes, allowed networks and From domains. The secret is returned once, when the key is created;
 * only its SHA-256 hash is stored (256 random bits need no slow hash), and for keys that sign requests the sealed secret.
 */

export const SCOPES = ['setup', 'marketing', 'transactional', 'operator'] as const;

export type ApiScope = (typeof SCOPES)[number];

/** Scopes of an account. `operator` concerns the whole installation; only the command line creates keys with it. */
export type AccountScope = Exclude<ApiScope, 'operator'>;

/** What a key may do. */
export interface KeyRights {
  readonly scopes: readonly ApiScope[];
  /** Addresses and networks it may be used from, empty: any. */
  readonly allowIps: readonly string[];
  /** From domains it may send for, lower-case A-labels, empty: any. */
  readonly allowFrom: readonly string[];
  /** May send essential mail, which ignores a transactional opt-out. */
  readonly allowEssential: boolean;
  /** Mail submitted over SMTP without the compliance variables is refused; else the footer is appended to it. */
  readonly strictCompliance: boolean;
  /** False: a test key. What it sends is checked, stored and reported like other mail, and simulated: it never leaves. */
  readonly livemode: boolean;
}

export type ApiKey = ReturnType<typeof apiKeyOf>;

export interface ApiKeyInput {
  accountId: string;
  name: string;
  /** Known ones, at least one, without repeats. */
  scopes: readonly string[];
  allowIps?: readonly string[];
  allowFrom?: readonly string[];
  /** Default: true. */
  allowEssential?: boolean;
  /** Default: false. */
  strictCompliance?: boolean;
  /** Default: true. */
  livemode?: boolean;
  /** Seals the secret of a key that signs requests (signature version 4). Null, the default: the key does not sign. */
  seal?: Pick<Seal, 'seal'> | null;
}

export interface CreatedKey {
  key: ApiKey;
  /** Returned once. */
  secret: string;
}

const MAX_NAME = 100;
const MAX_ENTRIES = 100;
/** Keys of one account, without revoked ones. */
const MAX_VALID_KEYS = 500;
/** Of one account, with revoked ones, which the retention of events deletes (events/retention). */
const MAX_STORED_KEYS = 1000;

/**
 * Stateless: reads come from `tables`, and the limits on the number of keys are checked in the unit of work that
 * inserts one. Without `creator` (the command line) a key may have any rights.
 */
export function createKeys({
  tables,
  writer,
  clock,
  ids,
}: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids'>) {
  return {
    /**
     * Refuses an unknown account (`ACCOUNT_NOT_FOUND`), an invalid scope, network or domain, more rights than `creator`
     * has (`INSUFFICIENT_SCOPE`), and too many keys (`LIMIT_REACHED`).
     */
    create: async (input: ApiKeyInput, creator?: KeyRights): Promise<CreatedKey | Refusal> => {
      const checked = checkKey(input);
      if (isRefusal(checked)) return checked;
      const excess = creator === undefined ? null : excessOf(checked, creator);
      if (excess !== null) return excess;
      const created = createKeyRow({ ids, clock }, checked);
      return writer.run((tables): CreatedKey | Refusal => {
        if (tables.accounts.get(input.accountId) === null) {
          return refuse('ACCOUNT_NOT_FOUND', `There is no account ${input.accountId}`);
        }
        if (tables.apiKeys.countValid(input.accountId) >= MAX_VALID_KEYS) {
          return refuse(
            'LIMIT_REACHED',
            `Account ${input.accountId} has ${MAX_VALID_KEYS} valid keys: revoke one that is not used`,
          );
        }
        if (tables.apiKeys.count(input.accountId) >= MAX_STORED_KEYS) {
          return refuse(
            'LIMIT_REACHED',
            `Account ${input.accountId} has ${MAX_STORED_KEYS} keys, with revoked ones: wait until revoked keys are deleted, after as many days as events (limits.eventDays)`,
          );
        }
        tables.apiKeys.insert(created.row);
        return created.created;
      }, input.accountId);
    },
    /** Null: there is no such key. */
    get: (keyId: string): ApiKey | null => {
      const row = tables.apiKeys.get(keyId);
      return row === null ? null : apiKeyOf(row);
    },
    /** A page of the keys of an account, oldest first; null: it has no key `afterId`. */
    page: (filter: ApiKeyFilter): Page<ApiKey> | null => {
      const page = tables.apiKeys.page(filter);
      return page === null ? null : { rows: page.rows.map(apiKeyOf), more: page.more };
    },
    /** All keys or one account's, recently revoked ones too, oldest first. */
    list: (accountId: string | null): ApiKey[] => tables.apiKeys.list(accountId).map(apiKeyOf),
    /** Refuses an unknown key (`KEY_NOT_FOUND`) and a key that is already revoked (`INVALID_STATE`). */
    revoke: (keyId: string): Promise<ApiKey | Refusal> =>
      writer.run((tables): ApiKey | Refusal => {
        const revokedAt = clock.now();
        const row = tables.apiKeys.get(keyId);
        if (row === null) return refuse('KEY_NOT_FOUND', `There is no key ${keyId}`);
        if (!tables.apiKeys.revoke(keyId, revokedAt)) {
          return refuse('INVALID_STATE', `Key ${keyId} is already revoked`);
        }
        return apiKeyOf({ ...row, revoked_at: revokedAt, signing_secret: null });
      }),
  };
}

export type Keys = ReturnType<typeof createKeys>;

/** The hash by which a secret is looked up. */
export function keyHash(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** The context with which the secret of a key is sealed. */
export function signingSecretSealContext(keyId: string): string {
  return `signing-secret:${keyId}`;
}

/** A new key and its row, for the unit of work that inserts it. */
export function createKeyRow(
  { ids, clock }: Pick<Context, 'ids' | 'clock'>,
  input: Required<Omit<ApiKeyInput, 'scopes'>> & { scopes: ApiScope[] },
): { row: ApiKeyRow; created: CreatedKey } {
  const secret = ids.apiKey();
  const keyId = ids.make('key');
  const row: ApiKeyRow = {
    key_id: keyId,
    account_id: input.accountId,
    name: input.name,
    hash: keyHash(secret),
    scopes: JSON.stringify(input.scopes),
    allow_ips: JSON.stringify(input.allowIps),
    allow_from: JSON.stringify(input.allowFrom),
    allow_essential: input.allowEssential ? 1 : 0,
    strict_compliance: input.strictCompliance ? 1 : 0,
    simulates: input.livemode ? 0 : 1,
    signing_secret: input.seal?.seal(Buffer.from(secret), signingSecretSealContext(keyId)) ?? null,
    created_at: clock.now(),
    revoked_at: null,
  };
  return { row, created: { key: apiKeyOf({ ...row, used_at: null }), secret } };
}

/** Refuses a key with more rights than its creator; null: it has none. */
function excessOf(input: KeyRights, creator: KeyRights): Refusal | null {
  const scope = input.scopes.find((name) => !creator.scopes.includes(name));
  if (scope !== undefined) return tooManyRights('scopes', `"${scope}" is not a scope of the creating key`);
  const networks = creator.allowIps.map(parseNetwork).filter((network) => network !== null);
  const covered = input.allowIps.every((text) => networks.some((network) => network.covers(text)));
  if (creator.allowIps.length > 0 && (input.allowIps.length === 0 || !covered))
    return tooManyRights('allowIps', `must be within ${creator.allowIps.join(', ')}`);
  const included = input.allowFrom.every((domain) => creator.allowFrom.includes(domain));
  if (creator.allowFrom.length > 0 && (input.allowFrom.length === 0 || !included))
    return tooManyRights('allowFrom', `must be among ${creator.allowFrom.join(', ')}`);
  if (input.allowEssential && !creator.allowEssential)
    return tooManyRights('allowEssential', 'must be false, as for the creating key');
  if (input.livemode && !creator.livemode)
    return tooManyRights('livemode', 'must be false, as for the creating key');
  return creator.strictCompliance && !input.strictCompliance
    ? tooManyRights('strictCompliance', 'must be true, as for the creating key')
    : null;
}

function tooManyRights(field: string, message: string): Refusal {
  return refuse(
    'INSUFFICIENT_SCOPE',
    `A key cannot create a key with more rights than its own: ${field} ${message}`,
    { details: [{ field, message }] },
  );
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
    'allowIps',
    input.allowIps,
    'an address or network such as 192.0.2.0/24',
    (text) => parseNetwork(text)?.text ?? null,
  );
  if (isRefusal(allowIps)) return allowIps;
  const allowFrom = readEach('allowFrom', input.allowFrom, 'a domain such as example.com', normalizeDomain);
  if (isRefusal(allowFrom)) return allowFrom;
  const { accountId, allowEssential = true, strictCompliance = false, livemode = true, seal = null } = input;
  if (!livemode && scopes.has('operator'))
    return invalid('scope', 'of a test key must not be operator, which concerns the mail of all accounts');
  const rights = { scopes: [...scopes], allowIps, allowFrom, allowEssential, strictCompliance, livemode };
  return { accountId, name, ...rights, seal };
}

function readEach(
  field: string,
  texts: readonly string[] | undefined,
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

function apiKeyOf(row: ListedApiKeyRow) {
  return {
    keyId: row.key_id,
    accountId: row.account_id,
    name: row.name,
    createdAt: iso(row.created_at),
    revokedAt: isoOrNull(row.revoked_at),
    // At most a minute too old; null: not used yet.
    lastUsedAt: isoOrNull(row.used_at),
    // Whether the key signs requests; false for one that is revoked, whose secret is deleted.
    sigv4: row.signing_secret !== null,
    ...rightsOf(row),
  };
}

/** What the key of a row may do; the lists are frozen. */
export function rightsOf(row: ApiKeyRow): KeyRights {
  return {
    scopes: Object.freeze(parseList<ApiScope>(row.scopes)),
    allowIps: Object.freeze(parseList(row.allow_ips)),
    allowFrom: Object.freeze(parseList(row.allow_from)),
    allowEssential: row.allow_essential === 1,
    strictCompliance: row.strict_compliance === 1,
    livemode: row.simulates === 0,
  };
}

/** Parses a JSON array of strings; most are empty, which needs no parsing. */
export function parseList<Item extends string = string>(json: string): Item[] {
  // Sound: only `createKeyRow` writes these columns.
  return json === '[]' ? [] : (JSON.parse(json) as Item[]);
}

const WRITE_INTERVAL_MS = 60_000;

/**
 * When keys were last used. A call changes memory only; once a minute the new times are written in one unit of work.
 * What a kill or a failed write loses is at most a minute of them. Begins without a timer: `note` only changes memory,
 * and the loop of `start` writes for the first time after a minute. A last write that fails in `stop` is logged, not
 * thrown.
 */
export function createKeyUses({ writer, clock, log }: { writer: Writer; clock: Clock; log: Log }) {
  // At most one entry per key.
  let noted = new Map<string, number>();
  const write = async (): Promise<void> => {
    if (noted.size === 0) return;
    const uses = noted;
    noted = new Map();
    await writer.run((tables) => {
      for (const [keyId, at] of uses) tables.apiKeys.use(keyId, at);
    });
  };
  const loop = createLoop({
    name: 'key-uses',
    run: write,
    intervalMs: WRITE_INTERVAL_MS,
    firstMs: WRITE_INTERVAL_MS,
    log,
  });
  return {
    /** Notes a use of a key that exists. */
    note: (keyId: string): void => {
      noted.set(keyId, clock.now());
    },
    /** Writes what was noted since the last write. */
    write,
    start: loop.start,
    /** Writes what was noted, then stops. */
    stop: async (): Promise<void> => {
      await loop.stop();
      await write().catch((error: unknown) =>
        log.warn({ err: error }, 'last uses of API keys were not recorded'),
      );
    },
  };
}
