import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { DAY, HOUR, iso, MINUTE, SECOND } from '../core/clock.ts';
import { createGate, type Gate } from '../core/concurrency/gate.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { withTimeout } from '../core/concurrency/with-timeout.ts';
import { errorText } from '../core/errors.ts';
import { readCertificatesFile, verifyTlsPair } from '../core/tls-pair.ts';
import type { Resolver } from '../dns/resolver.ts';
import { normalizeDomain, organizationalDomain } from '../mail/address.ts';
import type { Context } from '../store/context.ts';
import type { CertificateRow } from '../store/domains/certificates.ts';
import type { Tables } from '../store/tables.ts';
import {
  type CertificateAuthority,
  createCertificateAuthority,
  type IssuedCertificate,
  RateLimitedError,
} from './authority.ts';

/** Orders of one kind never wait for those of another. */
export type OrderKind = 'own' | 'renewal' | 'new';

const INTERVAL_MS = MINUTE;
/** Orders in progress of each kind. */
const CONCURRENCY: Record<OrderKind, number> = { own: 1, renewal: 1, new: 2 };
/** Orders in progress of each kind for one registrable domain. */
const CONCURRENCY_PER_DOMAIN = 1;
const MAX_WAITING = 500;
const DUE_BATCH_SIZE = 50;
/** After this time a TLS client has disconnected. */
const HANDSHAKE_TIMEOUT_MS = 30 * SECOND;
const LOG_INTERVAL_MS = HOUR;
const MAX_LOGGED_NAMES = 2000;

/*
 * Limits on orders. Let's Encrypt, the strictest of the common authorities, allows 5 failed validations an hour for a
 * name and 300 orders in three hours: these limits stay far below, whatever fails here.
 */

/** Orders of all names. */
export const MAX_ORDERS_PER_HOUR = 50;
/** The part of MAX_ORDERS_PER_HOUR that is reserved for renewals and for the platform's own name. */
export const RESERVED_ORDERS = 20;
/** New names below one registrable domain, so that the names of one domain do not delay all others. */
export const MAX_NEW_NAMES_PER_HOUR = 5;
/** New names of one account: a third of what all accounts have. */
export const MAX_NEW_NAMES_OF_ACCOUNT = 10;

/** Pause before a name that did not lead here is tried again; nothing was sent to the authority. */
const POSTPONED_MS = 10 * MINUTE;

const FIRST_RETRY_MS = 10 * MINUTE;
const MAX_RETRY_MS = DAY;
const RENEW_BEFORE_MS = 30 * DAY;

/** Pause of all orders after a rate limit for which the authority stated no time. */
const RATE_LIMIT_PAUSE_MS = HOUR;
/** The longest window of the common authorities' rate limits; a longer Retry-After is not plausible. */
const MAX_RATE_LIMIT_PAUSE_MS = 7 * DAY;

type KeeperContext = Pick<Context, 'tables' | 'writer' | 'clock' | 'seal' | 'log'>;

export interface KeeperOptions {
  /** The host whose certificate is obtained without a client and without a lookup: it may lead here through a proxy. Null: none. */
  ownHost: string | null;
  /** Whether the host is a name of the public pages. */
  isOurs(host: string): boolean;
  /** The account of a link host; null: the platform's own host, or none of ours. */
  ownerOf(host: string): string | null;
  /**
   * Whether the host's DNS leads here, so that the authority reaches us. Called before an order occupies a slot; the
   * implementation limits the time and the number of lookups.
   */
  leadsHere(host: string, kind: OrderKind): Promise<boolean>;
  observe?(outcome: 'obtained' | 'failed'): void;
}

/**
 * The certificates of the public pages: obtained when a client first names a host, stored sealed, renewed before they
 * expire, used without a restart. Certificates are ordered only for our names that lead here. Every order is recorded before
 * the authority receives it, so that neither an error nor a restart exceeds its rate limits. A certificate is used as long
 * as it is valid.
 *
 * Begins ready: `contextFor` orders certificates before `start`. Up to 500 orders of a kind wait; further ones are dropped
 * until the next request or run.
 */
export function createKeeper(
  context: KeeperContext,
  options: KeeperOptions & { authority: CertificateAuthority },
) {
  const { tables, writer, clock, seal, log } = context;
  const { authority, ownHost, isOurs, leadsHere, ownerOf, observe } = options;
  const gateOf = (kind: OrderKind): Gate =>
    createGate({ concurrency: CONCURRENCY[kind], perKey: CONCURRENCY_PER_DOMAIN, maxWaiting: MAX_WAITING });
  const gates: Record<OrderKind, Gate> = {
    own: gateOf('own'),
    renewal: gateOf('renewal'),
    new: gateOf('new'),
  };
  const contexts = createContexts(context);
  const inProgress = new Map<string, Promise<void>>();
  /** When the log last stated why a name has no certificate, epoch ms: anyone can request the name repeatedly. */
  const lastLogged = new LRUCache<string, number>({ max: MAX_LOGGED_NAMES });
  let running = true;
  let hasLoggedLimit = false;
  const loop = createLoop({
    name: 'certificates',
    // Not awaited: an order may take longer than the interval.
    run: () => void startDue(),
    intervalMs: INTERVAL_MS,
    log,
  });

  function shouldLog(host: string): boolean {
    const now = clock.now();
    if (now - (lastLogged.get(host) ?? -Infinity) < LOG_INTERVAL_MS) return false;
    lastLogged.set(host, now);
    return true;
  }

  /** One order at a time for each name. Never rejects. */
  function obtain(host: string): Promise<void> {
    const before = inProgress.get(host);
    if (before !== undefined) return before;
    const work = attempt(host)
      .catch((error: unknown) => log.error({ err: error, host }, 'certificate order aborted'))
      .finally(() => inProgress.delete(host));
    inProgress.set(host, work);
    return work;
  }

  /** The lookup does not occupy a slot, because the host's name servers may never answer. */
  async function attempt(host: string): Promise<void> {
    if (!running || !mayOrder(host, tables)) return;
    const kind = kindOf(host, tables.certificates.get(host));
    if (kind !== 'own' && !(await leadsHere(host, kind))) return postpone(host);
    await gates[kind].run(organizationalDomain(host), () => order(host));
  }

  function kindOf(host: string, row: CertificateRow | null): OrderKind {
    if (host === ownHost) return 'own';
    return (row?.chain ?? null) === null ? 'new' : 'renewal';
  }

  /** Postpones a renewal, so that it does not displace others from the next batch; a new name has no row. */
  async function postpone(host: string): Promise<void> {
    if (!running) return;
    if (shouldLog(host)) log.info({ host }, 'no certificate ordered: the name does not lead here');
    await writer.run((tx) => {
      const row = tx.certificates.get(host);
      if (row?.chain) tx.certificates.put({ ...row, due_at: clock.now() + POSTPONED_MS });
    });
  }

  async function order(host: string): Promise<void> {
    if (!running) return;
    const pending = await writer.run((tables) => {
      // Other orders may have used up the limit while this one waited.
      if (!mayOrder(host, tables)) return null;
      const row = tables.certificates.get(host);
      const failures = (row?.failures ?? 0) + 1;
      // Recorded as failed: if the process is killed during the order, the next one waits nevertheless.
      const now = clock.now();
      const attempted = {
        ...(row ?? NO_CERTIFICATE),
        host,
        failures,
        tried_at: now,
        due_at: now + retryDelay(failures),
      };
      tables.certificates.put(attempted);
      return attempted;
    });
    if (pending === null) return;
    try {
      await store(pending, await authority.obtain(host));
    } catch (error) {
      if (running) await recordFailure(pending, error);
      else await recordAbandoned(pending);
    }
  }

  /** A stop is not a failure: the next start orders again immediately. The order counts toward the limits. */
  async function recordAbandoned(row: CertificateRow): Promise<void> {
    const abandoned = { ...row, failures: row.failures - 1, due_at: clock.now() };
    await writer.run((tx) => tx.certificates.put(abandoned));
    log.info({ host: row.host }, 'certificate order abandoned: the daemon is stopping');
  }

  function mayOrder(host: string, tables: Tables): boolean {
    const isNew = kindOf(host, tables.certificates.get(host)) === 'new';
    const block = orderBlock(tables, host, { isNew, now: clock.now(), ownerOf });
    if ((block === 'domain-limit' || block === 'account-limit') && shouldLog(host)) {
      const { newNamesPerHour, text } = DELAYS[block];
      log.info({ host, newNamesPerHour }, text);
    }
    if (block === 'hourly-limit' && !hasLoggedLimit)
      log.warn({ ordersPerHour: MAX_ORDERS_PER_HOUR }, 'certificate orders delayed: hourly limit reached');
    if (block === 'hourly-limit' || block === null) hasLoggedLimit = block !== null;
    return block === null;
  }

  async function store(row: CertificateRow, issued: IssuedCertificate): Promise<void> {
    const certificate = new X509Certificate(issued.chain);
    const notAfter = Date.parse(certificate.validTo);
    const isValid =
      certificate.checkHost(row.host) !== undefined &&
      certificate.checkPrivateKey(createPrivateKey(issued.key)) &&
      notAfter > clock.now();
    if (!isValid) throw new Error('the authority issued a certificate that is not valid for the name');
    await verifyTlsPair({ cert: issued.chain, key: issued.key });
    const dueAt = renewalTime({ notBefore: Date.parse(certificate.validFrom), notAfter });
    await writer.run((tables) => {
      tables.certificates.put({
        ...row,
        private_key: seal.seal(Buffer.from(issued.key), certificateSealContext(row.host)),
        chain: issued.chain,
        not_after: notAfter,
        // A certificate that expires almost immediately must not be ordered repeatedly.
        due_at: Math.max(dueAt, clock.now() + HOUR),
        failures: 0,
        last_error: null,
      });
    });
    contexts.use(row.host, issued, notAfter);
    const { issuer } = certificate;
    log.info({ host: row.host, issuer, notAfter: iso(notAfter) }, 'certificate obtained');
    observe?.('obtained');
  }

  async function recordFailure(row: CertificateRow, error: unknown): Promise<void> {
    const reason = errorText(error);
    const limitedUntil =
      error instanceof RateLimitedError
        ? clock.now() + Math.min(error.waitMs ?? RATE_LIMIT_PAUSE_MS, MAX_RATE_LIMIT_PAUSE_MS)
        : 0;
    const dueAt = Math.max(row.due_at, limitedUntil);
    const pausesAll = error instanceof RateLimitedError && error.scope === 'all';
    await writer.run((tables) => {
      tables.certificates.put({ ...row, due_at: pausesAll ? row.due_at : dueAt, last_error: reason });
      if (pausesAll) tables.settings.put(PAUSED_UNTIL, String(limitedUntil));
    });
    const nextTry = iso(dueAt);
    const { not_after: notAfter } = row;
    const inUse = notAfter !== null && notAfter > clock.now() ? { inUseUntil: iso(notAfter) } : {};
    log.warn(
      { host: row.host, reason, failures: row.failures, nextTry, ...inUse },
      'certificate order failed',
    );
    observe?.('failed');
  }

  /** Starts what is due; the promises never reject. */
  function startDue(): Promise<void>[] {
    const due = tables.certificates.due(clock.now(), DUE_BATCH_SIZE);
    if (ownHost !== null && (tables.certificates.get(ownHost)?.chain ?? null) === null) due.unshift(ownHost);
    return due.map((host) => (isOurs(host) ? obtain(host) : remove(host)));
  }

  /** Removes the certificate of a name that is no longer ours, such as that of a deleted domain. */
  async function remove(host: string): Promise<void> {
    contexts.delete(host);
    try {
      await writer.run((tx) => tx.certificates.remove(host));
    } catch (error) {
      log.error({ err: error, host }, 'certificate of a former name could not be deleted');
    }
  }

  return {
    /**
     * The context for a TLS client that names this host; waits up to half a minute for a new certificate. Null: not one
     * of our names, or no certificate is available.
     */
    contextFor: async (name: string): Promise<SecureContext | null> => {
      const host = normalizeDomain(name);
      if (host === null) return null;
      const cached = contexts.cached(host);
      if (cached !== null) return cached;
      if (!isOurs(host)) return null;
      const stored = contexts.current(host);
      if (stored !== null || !running) return stored;
      await withTimeout(obtain(host), HANDSHAKE_TIMEOUT_MS);
      return contexts.current(host);
    },
    /** Obtains what is due; resolves when all orders have ended. */
    runDue: async (): Promise<void> => {
      await Promise.all(startDue());
    },
    /** Begins to obtain what is due every minute. */
    start: loop.start,
    /** Abandons the orders in progress, which the next start resumes; resolves when they have ended. */
    stop: async (): Promise<void> => {
      running = false;
      await loop.stop();
      for (const gate of Object.values(gates)) gate.close();
      authority.close();
      await Promise.all(inProgress.values());
    },
  };
}

/** Ms until a name is tried again after this number of failures: ten minutes, an hour, then doubled up to a day. */
export function retryDelay(failures: number): number {
  return failures <= 1 ? FIRST_RETRY_MS : Math.min(MAX_RETRY_MS, HOUR * 2 ** (failures - 2));
}

/** Epoch ms: 30 days before the expiry; with a lifetime of less than 90 days, after two thirds of it. */
export function renewalTime(validity: { notBefore: number; notAfter: number }): number {
  const lifetime = validity.notAfter - validity.notBefore;
  return validity.notAfter - Math.min(RENEW_BEFORE_MS, lifetime / 3);
}

/** Setting: the end of a pause of all orders, epoch ms. */
const PAUSED_UNTIL = 'certificates-hold';

/**
 * Why no certificate may be ordered for the host now; null: an order is allowed. `ownerOf`: the account of a host, null for
 * the platform's own.
 */
function orderBlock(
  { certificates, settings }: Tables,
  host: string,
  { isNew, now, ownerOf }: { isNew: boolean; now: number; ownerOf(host: string): string | null },
): 'not-due' | 'paused' | 'domain-limit' | 'account-limit' | 'hourly-limit' | null {
  if ((certificates.get(host)?.due_at ?? 0) > now) return 'not-due';
  if (Number(settings.get(PAUSED_UNTIL) ?? 0) > now) return 'paused';
  const since = now - HOUR;
  if (isNew && certificates.triedBelow(organizationalDomain(host), since) >= MAX_NEW_NAMES_PER_HOUR)
    return 'domain-limit';
  const owner = isNew ? ownerOf(host) : null;
  const isSameOwner = (other: string) => ownerOf(other) === owner;
  if (
    owner !== null &&
    certificates.hostsTriedSince(since).filter(isSameOwner).length >= MAX_NEW_NAMES_OF_ACCOUNT
  )
    return 'account-limit';
  const limit = isNew ? MAX_ORDERS_PER_HOUR - RESERVED_ORDERS : MAX_ORDERS_PER_HOUR;
  return certificates.triedSince(since) >= limit ? 'hourly-limit' : null;
}

const DELAYS = {
  'domain-limit': {
    newNamesPerHour: MAX_NEW_NAMES_PER_HOUR,
    text: 'certificate order delayed: hourly limit of the domain reached',
  },
  'account-limit': {
    newNamesPerHour: MAX_NEW_NAMES_OF_ACCOUNT,
    text: 'certificate order delayed: hourly limit of the account reached',
  },
};

const NO_CERTIFICATE = { private_key: null, chain: null, not_after: null, last_error: null };

const MAX_CONTEXTS = 2000;

interface LoadedCertificate {
  context: SecureContext;
  notAfter: number;
}

/**
 * The certificates that are in use, as contexts of TLS connections. Begins empty: `current` loads certificates from the
 * database, and up to 2000 stay in memory.
 */
function createContexts({ tables, clock, seal }: KeeperContext) {
  const contexts = new LRUCache<string, LoadedCertificate>({ max: MAX_CONTEXTS });

  function use(host: string, { key, chain }: IssuedCertificate, notAfter: number): LoadedCertificate {
    const loaded = { context: createSecureContext({ key, cert: chain }), notAfter };
    contexts.set(host, loaded);
    return loaded;
  }

  function load(host: string): LoadedCertificate | null {
    const row = tables.certificates.get(host);
    if (row === null || row.chain === null || row.private_key === null || row.not_after === null) return null;
    const key = seal.open(row.private_key, certificateSealContext(host)).toString();
    return use(host, { key, chain: row.chain }, row.not_after);
  }

  const ifValid = (known: LoadedCertificate | null) =>
    known !== null && known.notAfter > clock.now() ? known.context : null;

  return {
    /**
     * The certificate of a host while it is valid, even when its renewal is due; null: none. Throws when the stored key
     * cannot be decrypted.
     */
    current: (host: string): SecureContext | null => ifValid(contexts.get(host) ?? load(host)),
    /** The certificate in memory, without a read of the database; null: none, or it has expired. */
    cached: (host: string): SecureContext | null => ifValid(contexts.get(host) ?? null),
    /** Replaces the certificate of a host. `notAfter`: epoch ms. */
    use,
    delete: (host: string): void => void contexts.delete(host),
  };
}

/** Binds a sealed key to its host. */
export function certificateSealContext(host: string): string {
  return `certificate:${host}`;
}

/** The setting with the sealed key of the account at the authority, in base64, and the context with which it is sealed. */
export const ACCOUNT_KEY = 'acme-account-key';

/**
 * The certificates of the public pages from the authority of the configuration, with the challenges of orders in progress.
 * Throws when `directoryCaFile` cannot be used.
 */
export function createCertificates(
  context: KeeperContext & Pick<Context, 'config'>,
  { resolver, userAgent, ...options }: KeeperOptions & { resolver: Resolver; userAgent: string },
) {
  const { config, writer, seal } = context;
  const { directory, email = null, directoryCaFile } = config.public.tls;
  /** Key authorizations by token, for the orders in progress. */
  const challenges = new Map<string, string>();

  /** Generated once, because the key is the account, with its authorizations for our names. */
  async function accountKey(): Promise<string> {
    const sealed = await writer.run(({ settings }) => {
      const existing = settings.get(ACCOUNT_KEY);
      if (existing !== null) return existing;
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
      const created = seal.seal(Buffer.from(pem), ACCOUNT_KEY).toString('base64');
      settings.put(ACCOUNT_KEY, created);
      return created;
    });
    return seal.open(Buffer.from(sealed, 'base64'), ACCOUNT_KEY).toString();
  }

  const authority = createCertificateAuthority({
    directory,
    email,
    trusted:
      directoryCaFile === undefined
        ? null
        : readCertificatesFile('public.tls.directoryCaFile', directoryCaFile),
    userAgent,
    resolver,
    accountKey,
    publish: (token, keyAuthorization) => void challenges.set(token, keyAuthorization),
    withdraw: (token) => void challenges.delete(token),
  });
  return {
    ...createKeeper(context, { ...options, authority }),
    /** The content at a challenge's token while its order is open (RFC 8555 §8.3); null: none. */
    challengeAnswer: (token: string): string | null => challenges.get(token) ?? null,
  };
}
