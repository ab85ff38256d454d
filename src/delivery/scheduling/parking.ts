import { type Clock, iso, MINUTE } from '../../core/clock.ts';
import { errorText } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { createLru } from '../../core/lru.ts';

/**
 * Domains and accounts whose mail cannot be prepared (an unreadable key, a damaged row). After several failures in a
 * row their mail stays in the queue for a while, so that it does not slow other accounts; then one message is tried, and
 * the first that can be prepared releases them.
 */
export interface Parking {
  failed(origin: MailOrigin, error: unknown): void;
  succeeded(origin: MailOrigin): void;
  /** Milliseconds until mail of the domain may be taken again; 0: now. */
  domainWait(domainId: string): number;
  accountWait(accountId: string): number;
  /** What is parked, at most `MAX_LISTED` entries. */
  list(): Parked[];
  count(kind: Parked['kind']): number;
}

export interface MailOrigin {
  domainId: string;
  accountId: string;
}

export interface Parked {
  kind: 'domain' | 'account';
  id: string;
  /** ISO 8601. */
  since: string;
  reason: string;
}

const DOMAIN_FAILURES = 3;
/** An account is parked when this many messages of at least `ACCOUNT_DOMAINS` domains failed and none succeeded. */
const ACCOUNT_FAILURES = 12;
const ACCOUNT_DOMAINS = 3;
const FIRST_WAIT_MS = MINUTE;
const MAX_WAIT_MS = 30 * MINUTE;
const MAX_REMEMBERED = 10_000;
const MAX_LISTED = 100;

interface Entry {
  failures: number;
  domains: Set<string>;
  reason: string;
  /** Null: not parked yet. */
  parked: { since: number; until: number; waitMs: number } | null;
}

export interface ParkingDeps {
  clock: Clock;
  monotonic: Clock;
  log: Log;
}

/**
 * Nothing is parked at first: a restart releases all. Remembers failures of 10,000 domains and 10,000 accounts; the
 * wait doubles from 1 to 30 minutes. Starts no timer.
 */
export function createParking({ clock, monotonic, log }: ParkingDeps): Parking {
  const entries = {
    domain: createLru<Entry>(MAX_REMEMBERED),
    account: createLru<Entry>(MAX_REMEMBERED),
  };

  function fail(kind: Parked['kind'], id: string, domainId: string, reason: string): void {
    const entry = entries[kind].get(id) ?? { failures: 0, domains: new Set(), reason, parked: null };
    entry.failures++;
    if (entry.domains.size < ACCOUNT_DOMAINS) entry.domains.add(domainId);
    entry.reason = reason;
    entries[kind].set(id, entry);
    const enough =
      kind === 'domain'
        ? entry.failures >= DOMAIN_FAILURES
        : entry.failures >= ACCOUNT_FAILURES && entry.domains.size >= ACCOUNT_DOMAINS;
    // Messages that were taken before the parking fail one by one: they count once.
    if (!enough || wait(kind, id) > 0) return;
    const { parked } = entry;
    const ms = parked === null ? FIRST_WAIT_MS : Math.min(parked.waitMs * 2, MAX_WAIT_MS);
    entry.parked = { since: parked?.since ?? clock.now(), until: monotonic.now() + ms, waitMs: ms };
    log.error({ [`${kind}Id`]: id, reason, waitMs: ms }, `${kind} parked: its mail cannot be prepared`);
  }

  function succeed(kind: Parked['kind'], id: string): void {
    // Called for every message: almost always there is no entry.
    if (entries[kind].size === 0) return;
    const entry = entries[kind].peek(id);
    if (entry === undefined) return;
    entries[kind].delete(id);
    if (entry.parked !== null) log.info({ [`${kind}Id`]: id }, `${kind} released: its mail is sent again`);
  }

  function wait(kind: Parked['kind'], id: string): number {
    if (entries[kind].size === 0) return 0;
    const until = entries[kind].peek(id)?.parked?.until ?? 0;
    return Math.max(0, until - monotonic.now());
  }

  const parkedOf = (kind: Parked['kind']) =>
    [...entries[kind].entries()].flatMap(([id, { parked, reason }]) =>
      parked === null ? [] : [{ kind, id, since: iso(parked.since), reason }],
    );

  return {
    failed: ({ domainId, accountId }, error) => {
      const reason = errorText(error);
      fail('domain', domainId, domainId, reason);
      fail('account', accountId, domainId, reason);
    },
    succeeded: ({ domainId, accountId }) => {
      succeed('domain', domainId);
      succeed('account', accountId);
    },
    domainWait: (domainId) => wait('domain', domainId),
    accountWait: (accountId) => wait('account', accountId),
    list: () => [...parkedOf('account'), ...parkedOf('domain')].slice(0, MAX_LISTED),
    count: (kind) => parkedOf(kind).length,
  };
}
