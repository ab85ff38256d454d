import { LRUCache } from 'lru-cache';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';
import { isLoopback, type Network, parseNetwork } from './caller-addresses.ts';
import { keyHash, parseList, type Scope } from './keys.ts';
import { FAILURES_PER_MINUTE, type FailureLimits } from './rate-limits.ts';

/**
 * Who is calling. The key is looked up by its hash in the database on every call, so that a key revoked or an
 * account disabled from the command line is out at once. A caller who shows no valid key learns nothing from
 * the answer: missing, unknown, revoked and somebody else's are one and the same.
 */
export interface Caller {
  accountId: string;
  keyId: string;
  /** From domains the key is tied to, empty: any. */
  allowFrom: string[];
  /** The key may send essential mail. */
  allowEssential: boolean;
  /** The compliance footer is not appended to mail that the key submits over SMTP. */
  strictCompliance: boolean;
}

/** Where a call comes from, as far as it can be known. */
export interface CallerAddress {
  /** Canonical. */
  address: string;
  /** It came through a proxy, named or not: it is never loopback, whatever its address says. */
  forwarded: boolean;
}

export interface Credentials {
  /** What the caller sent as key and as account id; '' when nothing. */
  secret: string;
  accountId: string;
  from: CallerAddress;
}

export interface Authenticator {
  /** In the order of contract §13.1: key and account id, address allow-list, account enabled, scope. */
  authenticate(credentials: Credentials, scope: Scope): Caller | Refusal;
}

/** Longer ones are no key of ours; hashing them would be work for nothing. */
const MAX_SECRET = 200;
const ALLOW_LISTS_REMEMBERED = 1000;

export function createAuthenticator(deps: { tables: Tables; failures: FailureLimits }): Authenticator {
  const { tables, failures } = deps;
  const allowLists = new LRUCache<string, Network[]>({ max: ALLOW_LISTS_REMEMBERED });

  function unauthenticated(from: CallerAddress): Refusal {
    const wait = failures.count(from.address);
    if (wait !== null) {
      return refuse('RATE_LIMITED', 'too many failed authentications from this address', {
        retryAfter: wait,
        limit: { name: 'authentication', calls: FAILURES_PER_MINUTE, seconds: 60 },
      });
    }
    return refuse(
      'UNAUTHENTICATED',
      'X-Api-Key and X-Id must name a valid key and the account it belongs to',
    );
  }

  function allowed(allowIps: string, from: CallerAddress): boolean {
    if (allowIps === '[]') return true;
    // Behind a proxy that nobody named, every caller has the proxy's own address: it proves nothing.
    if (from.forwarded && isLoopback(from.address)) return false;
    let networks = allowLists.get(allowIps);
    if (networks === undefined) {
      networks = parseList(allowIps)
        .map(parseNetwork)
        .filter((network) => network !== null);
      allowLists.set(allowIps, networks);
    }
    return networks.some((network) => network.contains(from.address));
  }

  return {
    authenticate: ({ secret, accountId, from }, scope) => {
      if (secret === '' || secret.length > MAX_SECRET) return unauthenticated(from);
      const key = tables.apiKeys.byHash(keyHash(secret));
      if (key === null || key.revoked_at !== null || key.account_id !== accountId) {
        return unauthenticated(from);
      }
      if (!allowed(key.allow_ips, from)) {
        return refuse('KEY_NOT_ALLOWED', 'this key may not be used from this address');
      }
      if (key.account_status !== 'active') return refuse('ACCOUNT_DISABLED', 'this account is disabled');
      if (!parseList<Scope>(key.scopes).includes(scope)) {
        return refuse('INSUFFICIENT_SCOPE', `this key does not have the scope "${scope}"`);
      }
      return {
        accountId: key.account_id,
        keyId: key.key_id,
        allowFrom: parseList(key.allow_from),
        allowEssential: key.allow_essential === 1,
        strictCompliance: key.strict_compliance === 1,
      };
    },
  };
}
