import { type Refusal, type RefusalDetail, refuse } from '../core/refusal.ts';
import { isLoopback } from '../dns/address-kinds.ts';
import type { ApiKeyWithAccount } from '../store/api-keys.ts';
import type { Context } from '../store/context.ts';
import { ACCOUNT_MOVES } from './accounts.ts';
import { type Network, parseNetwork } from './caller-addresses.ts';
import { type ApiScope, type KeyRights, keyHash, rightsOf } from './keys.ts';
import { FAILURES_PER_MINUTE, type FailureLimits } from './rate-limits.ts';

/**
 * An authenticated caller. The key is looked up by its hash in the database on every call, so that a revoked key or a
 * disabled account has an immediate effect. Without a valid key the refusal is always the same, whether the key is
 * missing, unknown, revoked or another account's.
 */
export interface Caller extends KeyRights {
  readonly accountId: string;
  readonly keyId: string;
}

/** The address that a call comes from. */
export interface CallerAddress {
  /** Canonical. */
  address: string;
  /** The call came through a proxy, configured or not: the address does not prove that the caller is on this host. */
  forwarded: boolean;
}

export interface Credentials {
  /** The key that the caller sent; '' for none. */
  secret: string;
  /** The account that the key must belong to; null: any. */
  accountId: string | null;
  from: CallerAddress;
}

/** Longer secrets cannot be valid and are not hashed. */
const MAX_SECRET_LENGTH = 200;

/**
 * Keeps the frozen caller of each key row with its parsed networks in memory until the row changes. Only calls without a valid key count in `failures`.
 */
export function createAuthenticator(
  { tables }: Pick<Context, 'tables'>,
  {
    failures,
    onUse,
  }: {
    failures: FailureLimits;
    /** Called with the key of each accepted call. */
    onUse?: (keyId: string) => void;
  },
) {
  /**
   * Callers and their networks by the row of the key: the store returns the same one until it changes. Calls share the
   * callers, so they are frozen.
   */
  const known = new WeakMap<ApiKeyWithAccount, { caller: Caller; networks: readonly Network[] }>();

  function callerOf(key: ApiKeyWithAccount): { caller: Caller; networks: readonly Network[] } {
    const found = known.get(key);
    if (found !== undefined) return found;
    const caller = Object.freeze({ accountId: key.account_id, keyId: key.key_id, ...rightsOf(key) });
    const networks = caller.allowIps.map(parseNetwork).filter((network) => network !== null);
    known.set(key, { caller, networks });
    return { caller, networks };
  }

  /** The refusal of a call without a valid key or signature; `message`: if it is not that about a missing key. */
  function unauthenticated(from: CallerAddress, message?: string, details?: RefusalDetail[]): Refusal {
    const wait = failures.count(from.address);
    if (wait !== null) {
      return refuse('RATE_LIMITED', 'Too many failed authentications from this address', {
        retryAfter: wait,
        limit: { name: 'authentication', calls: FAILURES_PER_MINUTE, seconds: 60 },
      });
    }
    return refuse(
      'UNAUTHENTICATED',
      message ??
        'Authorization: Bearer, or X-Api-Key and X-Id, must name a valid key and the account it belongs to',
      details === undefined ? {} : { details },
    );
  }

  /** The caller of a valid key. Checks in this order: address allow-list, account enabled, scope. */
  function admit(key: ApiKeyWithAccount, from: CallerAddress, scope: ApiScope): Caller | Refusal {
    const { caller, networks } = callerOf(key);
    // Behind a proxy that is not configured, every caller has the proxy's address.
    const isUnknown = from.forwarded && isLoopback(from.address);
    const isAllowed = !isUnknown && networks.some((network) => network.contains(from.address));
    if (caller.allowIps.length > 0 && !isAllowed) {
      return refuse('KEY_NOT_ALLOWED', 'This key may not be used from this address');
    }
    if (key.account_status !== 'active') {
      return key.account_moved_at === null
        ? refuse('ACCOUNT_DISABLED', 'This account is disabled')
        : refuse('UNAVAILABLE', ACCOUNT_MOVES);
    }
    if (!caller.scopes.includes(scope)) {
      return refuse('INSUFFICIENT_SCOPE', `This key does not have the scope "${scope}"`);
    }
    onUse?.(key.key_id);
    return caller;
  }

  return {
    /** Checks the key and the account id, then what `admit` checks. */
    authenticate: ({ secret, accountId, from }: Credentials, scope: ApiScope): Caller | Refusal => {
      if (secret === '' || secret.length > MAX_SECRET_LENGTH) return unauthenticated(from);
      const key = tables.apiKeys.byHash(keyHash(secret));
      const isValid = key !== null && key.revoked_at === null;
      if (!isValid || (accountId !== null && key.account_id !== accountId)) return unauthenticated(from);
      return admit(key, from, scope);
    },
    /** The key that signs requests under this id; null: there is none. `admit` follows when the signature is verified. */
    signer: (keyId: string): ApiKeyWithAccount | null =>
      keyId.length > MAX_SECRET_LENGTH ? null : tables.apiKeys.bySigner(keyId),
    admit,
    unauthenticated,
  };
}

export type Authenticator = ReturnType<typeof createAuthenticator>;
