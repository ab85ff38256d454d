import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { getDomain } from 'tldts';
import { type Clock, HOUR, iso, MINUTE, SECOND } from '../core/clock.ts';
import { createGate, type Gate } from '../core/gate.ts';
import type { Log } from '../core/log.ts';
import type { Seal } from '../core/seal.ts';
import { normalizeDomain } from '../mail/address.ts';
import type { CertificateRow } from '../store/domains/certificates.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { type Authority, HeldOff, type Issued } from './authority.ts';
import {
  NEW_NAMES_AN_HOUR,
  ORDERS_AN_HOUR,
  ORDERS_KEPT,
  POSTPONED_MS,
  renewalTime,
  waitAfter,
} from './pace.ts';

/**
 * The certificates of the public pages: obtained when a name is first asked for, kept sealed, renewed ahead,
 * taken into use without a restart. Asks only for names that are ours and lead here; every try is on disk before
 * the authority hears of it, so that neither a fault nor a restart can wear out its patience. What is there stays
 * in use for as long as it is valid.
 */
export interface Keeper {
  /**
   * For a TLS client that names this host; waits while a certificate is obtained, half a minute at most. Null:
   * not a name of ours, or none can be had now.
   */
  contextFor(host: string): Promise<SecureContext | null>;
  /** Looks after what is due; resolves when it is done. */
  tick(): Promise<void>;
  /** Ticks by itself from now on. */
  start(): void;
  stop(): Promise<void>;
}

export interface KeeperHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  seal: Seal;
  log: Log;
  authority: Authority;
  /** Wanted before anybody asks, and may lead here by ways that we cannot see; null: none. */
  ownHost: string | null;
  /** Whether it is a name for the public pages at all. */
  isOurs(host: string): boolean;
  /**
   * Whether its DNS leads to us, so that the authority would find us there. Asked before an order takes its place,
   * and bounded in time and number by whoever answers.
   */
  leadsHere(host: string, kind: OrderKind): Promise<boolean>;
  observe?(outcome: 'obtained' | 'failed'): void;
}

/** What an order is for. Orders of one kind never wait for those of another. */
export type OrderKind = 'own' | 'renewal' | 'new';

const INTERVAL = MINUTE;
/** Orders under way at the same time: in all, and of new names below one registrable domain. */
const CONCURRENCY: Record<OrderKind, number> = { own: 1, renewal: 1, new: 2 };
const PER_DOMAIN = 1;
const MAX_WAITING = 500;
const DUE_AT_ONCE = 50;
/** Longer, and the client has given up. */
const HANDSHAKE_PATIENCE = 30 * SECOND;
const CONTEXTS = 2000;
const LOG_AGAIN_MS = HOUR;
const HELD_OFF_MS = HOUR;
/** Until when no authority is asked for anything, epoch ms. */
const HOLD = 'certificates-hold';

interface InUse {
  context: SecureContext;
  notAfter: number;
}

export function createKeeper(house: KeeperHouse): Keeper {
  const { tables, writer, clock, seal, log, authority, ownHost, isOurs, leadsHere } = house;
  const gateOf = (kind: OrderKind): Gate =>
    createGate({ concurrency: CONCURRENCY[kind], perKey: PER_DOMAIN, maxWaiting: MAX_WAITING });
  const gates: Record<OrderKind, Gate> = {
    own: gateOf('own'),
    renewal: gateOf('renewal'),
    new: gateOf('new'),
  };
  const contexts = new LRUCache<string, InUse>({ max: CONTEXTS });
  const underWay = new Map<string, Promise<void>>();
  /** When the log last said why a name got no certificate: anybody can ask for it again and again. */
  const lastLogged = new LRUCache<string, number>({ max: CONTEXTS });
  let timer: NodeJS.Timeout | null = null;
  let running = true;
  let saidTooMany = false;

  function isNews(host: string): boolean {
    const now = clock.now();
    if (now - (lastLogged.get(host) ?? -Infinity) < LOG_AGAIN_MS) return false;
    lastLogged.set(host, now);
    return true;
  }

  /** The certificate that is there, whether or not another is wanted. */
  function inUse(host: string): SecureContext | null {
    const known = contexts.get(host) ?? loaded(host);
    return known !== null && known.notAfter > clock.now() ? known.context : null;
  }

  function loaded(host: string): InUse | null {
    const row = tables.certificates.get(host);
    if (row === null || row.chain === null || row.private_key === null || row.not_after === null) return null;
    const key = seal.open(row.private_key, contextOf(host)).toString();
    return keepReady(host, { key, chain: row.chain }, row.not_after);
  }

  function keepReady(host: string, { key, chain }: Issued, notAfter: number): InUse {
    const ready = { context: createSecureContext({ key, cert: chain }), notAfter };
    contexts.set(host, ready);
    return ready;
  }

  /** One try at a time for each name; resolves when it has ended, well or not. */
  function obtain(host: string): Promise<void> {
    const before = underWay.get(host);
    if (before !== undefined) return before;
    const work = attempt(host)
      .catch((error: unknown) => log.error({ err: error, host }, 'obtaining a certificate broke off'))
      .finally(() => underWay.delete(host));
    underWay.set(host, work);
    return work;
  }

  /** A customer's nameserver may never answer: it is asked before the order takes its place. */
  async function attempt(host: string): Promise<void> {
    if (!running || !mayTry(host, tables)) return;
    const kind = kindOf(host, tables.certificates.get(host));
    if (kind !== 'own' && !(await leadsHere(host, kind))) return postpone(host);
    await gates[kind].run(registrableDomainOf(host), () => order(host));
  }

  function kindOf(host: string, row: CertificateRow | null): OrderKind {
    if (host === ownHost) return 'own';
    return (row?.chain ?? null) === null ? 'new' : 'renewal';
  }

  /** A renewal makes room for the others that are due; a new name has nothing to postpone. */
  async function postpone(host: string): Promise<void> {
    if (!running) return;
    if (isNews(host)) log.info({ host }, 'no certificate was asked for: the name does not lead here');
    await writer.run((all) => {
      const row = all.certificates.get(host);
      if (row?.chain) all.certificates.put({ ...row, due_at: clock.now() + POSTPONED_MS });
    });
  }

  async function order(host: string): Promise<void> {
    if (!running) return;
    const failing = await writer.run((all) => {
      // Others may have been tried while this one waited.
      if (!mayTry(host, all)) return null;
      const row = all.certificates.get(host);
      const failures = (row?.failures ?? 0) + 1;
      // As if it had failed: should this process end before it is known, the next one waits all the same.
      const now = clock.now();
      const tried = { ...(row ?? NOTHING), host, failures, tried_at: now, due_at: now + waitAfter(failures) };
      all.certificates.put(tried);
      return tried;
    });
    if (failing === null) return;
    try {
      await take(failing, await authority.obtain(host));
    } catch (error) {
      if (running) await explain(failing, error);
    }
  }

  function mayTry(host: string, all: Tables): boolean {
    const now = clock.now();
    const row = all.certificates.get(host);
    if ((row !== null && row.due_at > now) || Number(all.settings.get(HOLD) ?? 0) > now) return false;
    const isNew = kindOf(host, row) === 'new';
    const domain = registrableDomainOf(host);
    if (isNew && all.certificates.triedBelow(domain, now - HOUR) >= NEW_NAMES_AN_HOUR) {
      if (isNews(host))
        log.info(
          { host, domain, newNamesAnHour: NEW_NAMES_AN_HOUR },
          'a certificate waits: its domain had many',
        );
      return false;
    }
    const most = isNew ? ORDERS_AN_HOUR - ORDERS_KEPT : ORDERS_AN_HOUR;
    const tooMany = all.certificates.triedSince(now - HOUR) >= most;
    if (tooMany && !saidTooMany)
      log.warn({ ordersAnHour: ORDERS_AN_HOUR }, 'certificates wait: enough were asked for in this hour');
    saidTooMany = tooMany;
    return !tooMany;
  }

  async function take(row: CertificateRow, issued: Issued): Promise<void> {
    const certificate = new X509Certificate(issued.chain);
    const notAfter = Date.parse(certificate.validTo);
    const fits =
      certificate.checkHost(row.host) !== undefined &&
      certificate.checkPrivateKey(createPrivateKey(issued.key)) &&
      notAfter > clock.now();
    if (!fits) throw new Error('the authority gave a certificate that is not good for the name');
    const dueAt = renewalTime({ notBefore: Date.parse(certificate.validFrom), notAfter });
    await writer.run((all) => {
      all.certificates.put({
        ...row,
        private_key: seal.seal(Buffer.from(issued.key), contextOf(row.host)),
        chain: issued.chain,
        not_after: notAfter,
        // A certificate that is as good as over already would be asked for again and again.
        due_at: Math.max(dueAt, clock.now() + HOUR),
        failures: 0,
        last_error: null,
      });
    });
    keepReady(row.host, issued, notAfter);
    const { issuer } = certificate;
    log.info({ host: row.host, issuer, notAfter: iso(notAfter) }, 'certificate obtained');
    house.observe?.('obtained');
  }

  async function explain(row: CertificateRow, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    const hold = error instanceof HeldOff ? clock.now() + (error.waitMs ?? HELD_OFF_MS) : null;
    await writer.run((all) => {
      all.certificates.put({ ...row, last_error: message });
      if (hold !== null) all.settings.put(HOLD, String(hold));
    });
    const nextTry = iso(Math.max(row.due_at, hold ?? 0));
    const old = row.not_after !== null && row.not_after > clock.now() ? iso(row.not_after) : null;
    log.warn(
      { host: row.host, failures: row.failures, nextTry, ...(old === null ? {} : { inUseUntil: old }) },
      `no certificate could be obtained: ${message}`,
    );
    house.observe?.('failed');
  }

  async function tick(): Promise<void> {
    const now = clock.now();
    const due = tables.certificates.due(now, DUE_AT_ONCE);
    if (ownHost !== null && (tables.certificates.get(ownHost)?.chain ?? null) === null) due.unshift(ownHost);
    const work = [];
    for (const host of due) {
      if (isOurs(host)) work.push(obtain(host));
      else {
        // Not ours any more, as when its domain was deleted.
        contexts.delete(host);
        work.push(writer.run((all) => all.certificates.remove(host)));
      }
    }
    await Promise.all(work);
  }

  return {
    contextFor: async (name) => {
      const host = normalizeDomain(name);
      if (host === null) return null;
      const ready = contexts.has(host) ? inUse(host) : null;
      if (ready !== null) return ready;
      if (!isOurs(host)) return null;
      const kept = inUse(host);
      if (kept !== null || !running) return kept;
      await within(HANDSHAKE_PATIENCE, obtain(host));
      return inUse(host);
    },
    tick,
    start: () => {
      const round = () =>
        void tick().catch((error: unknown) => log.error({ err: error }, 'looking after certificates failed'));
      round();
      timer = setInterval(round, INTERVAL);
      timer.unref();
    },
    stop: async () => {
      running = false;
      if (timer !== null) clearInterval(timer);
      for (const gate of Object.values(gates)) gate.close();
      authority.close();
      await Promise.all(underWay.values());
    },
  };
}

const NOTHING = { private_key: null, chain: null, not_after: null, last_error: null };

/** Binds a sealed key to its host. */
function contextOf(host: string): string {
  return `certificate:${host}`;
}

/** The domain that one registrant controls, by the public suffix list with its private part. */
function registrableDomainOf(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host;
}

/** Resolves when the work has ended, or after `ms`. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
    timer.unref();
  });
  await Promise.race([work, expired]);
  clearTimeout(timer);
}
