import type { Config } from '../config/schema.ts';
import type { DeliveryRoute } from '../config/setting-types.ts';
import { HOUR, MINUTE } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { memoized } from '../core/memoized.ts';
import type { SmtpPhase } from '../mail/reply.ts';
import type { Context } from '../store/context.ts';
import type { Lane } from '../store/domains/domains.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { QueuedMessage } from '../store/messages/queue.ts';
import type { Reroute } from '../store/messages/queue-controls.ts';
import type { Tables } from '../store/tables.ts';
import type {
  AttemptLog,
  AttemptResult,
  Failover,
  FailoverCause,
  FailoverDecision,
} from './attempt-result.ts';
import type { EgressPools } from './egress-pools.ts';
import { routeFor } from './routes.ts';
import type { TlsMode } from './worker/protocol.ts';

/**
 * The path of a message: its lane, its egress pool, and the next hop that replaces the hosts of its destination. Normally
 * the region of the domain determines the pool. A message that has failed over uses the secondary lane; one that the
 * operator rerouted uses what the reroute names.
 */
export interface DeliveryPath {
  lane: Lane;
  pool: string;
  /** Null: the configured routes and the MX hosts of the destination. */
  via: DeliveryRoute | null;
}

export type PathMessage = Pick<QueuedMessage, 'domain_id' | 'use_case' | 'secondary' | 'reroute'>;

export type DeliveryPaths = ReturnType<typeof createDeliveryPaths>;

/** A route's password belongs to its object: the relay is a new one after a reload that changes `secondary`. */
export function createDeliveryPaths(
  {
    config,
    tables,
  }: {
    config: Pick<Config, 'secondary'>;
    tables: Pick<Tables, 'domains' | 'queueReroutes'>;
  },
  pools: Pick<EgressPools, 'poolOf'>,
) {
  /** The next hop of the secondary lane; null: it has none, as it is another egress pool. */
  const relay = memoized(() => config.secondary, relayRoute);

  /** Reads the domain, and the reroute of a rerouted message. */
  function of({ domain_id, use_case, secondary, reroute }: PathMessage): DeliveryPath {
    const own = () => pools.poolOf(tables.domains.byId(domain_id)?.region ?? '', use_case);
    const row = reroute === null ? null : tables.queueReroutes.get(reroute);
    const lane = secondary === 1 ? 'secondary' : 'primary';
    if (row !== null) return { lane, pool: row.pool ?? own(), via: hopOf(row) };
    if (lane === 'primary') return { lane, pool: own(), via: null };
    const { secondary: setting } = config;
    return setting.type === 'builtin'
      ? { lane, pool: setting.pool, via: null }
      : { lane, pool: own(), via: relay() };
  }

  return { of, relay };
}

function relayRoute(secondary: Config['secondary']): DeliveryRoute | null {
  if (secondary.type !== 'relay') return null;
  const { host, port, tls, user, passwordFile, allowUnverifiedAuth } = secondary;
  return { match: '*', host, port, tls, user, passwordFile, allowUnverifiedAuth };
}

/** The next hop that a reroute names; null: none. */
function hopOf({ host, port, tls }: Reroute): DeliveryRoute | null {
  if (host === null) return null;
  return { match: '*', host, port: port ?? 25, tls: tlsModeOf(tls), allowUnverifiedAuth: false };
}

function tlsModeOf(text: string | null): TlsMode {
  return text === 'none' || text === 'required' || text === 'verified' ? text : 'opportunistic';
}

/** Attempts without a connection after which a message changes its lane. */
const MIN_FAILED_CONNECTIONS = 2;
const BEFORE_DATA: ReadonlySet<SmtpPhase> = new Set([
  'connect',
  'greeting',
  'ehlo',
  'starttls',
  'mail',
  'rcpt',
]);

/** Name of the stored setting with the counts of messages that changed their lane in the last hour. */
const COUNTS = 'delivery.failovers';

/**
 * Reads the stored counts of the cap now; `decide` stores them again with each admitted change, in the same unit of
 * work. While `secondary.share` or `secondary.perHour` is 0, no message changes its lane.
 */
export function createFailover(
  context: Pick<Context, 'config' | 'clock' | 'monotonic' | 'tables'>,
): Failover {
  const { config } = context;
  const cap = createFailoverCap(context, context.tables.settings.get(COUNTS));

  /** Whether the message may use the secondary lane at all. */
  function isEligible(tables: Tables, message: MessageRow): boolean {
    if (message.simulated === 1) return false;
    const queued = tables.queue.get(message.seq);
    if (queued === null || queued.secondary === 1 || queued.reroute !== null) return false;
    // A configured next hop is a decision of the operator.
    if (routeFor(config.delivery.routes, queued.destination) !== null) return false;
    const domain = tables.domains.byId(message.domain_id);
    if (domain?.alt_status !== 'ACTIVE') return false;
    const region = config.regions.find(({ code }) => code === domain.region);
    return secondaryObstacle(config, region?.pools[message.use_case] ?? 'default') === null;
  }

  return {
    decide: (tables, message, result, attempt) => {
      if (attempt.lane !== 'primary') return null;
      const { share, perHour } = config.secondary;
      // The lane is switched off: no message counts as capped.
      if (share === 0 || perHour === 0) return null;
      cap.countAttempt(message.account_id);
      if (result.classification.action === 'deliver') return null;
      const cause = causeOf(tables, message, result, attempt);
      if (cause === null || !isEligible(tables, message)) return null;
      // A unit of work that is repeated counts again: the cap then admits fewer messages, never more.
      const isAdmitted = cap.take(message.account_id, { share, perHour });
      if (isAdmitted) tables.settings.put(COUNTS, cap.stored());
      const { message_id: messageId, account_id: accountId } = message;
      return { cause, isAdmitted, messageId, accountId, reply: result.reply.text };
    },
  };
}

/** `capped`: the message stays in its lane because too many have changed theirs. */
export type ObserveFailover = (result: FailoverCause | 'capped') => void;

/** Logs and counts a decision that is on disk. */
export function reportFailover(
  { isAdmitted, ...fields }: FailoverDecision,
  { log, observe }: { log: Log; observe?: ObserveFailover | undefined },
): void {
  observe?.(isAdmitted ? fields.cause : 'capped');
  log.warn(
    fields,
    isAdmitted
      ? 'message changes to the secondary lane'
      : 'message stays in the primary lane: the cap of the secondary lane is reached',
  );
}

/**
 * Why the secondary lane is no alternative to an egress pool, a clause; null: it is one. Another pool helps only if it
 * has a source address, or a proxy, that the primary one does not have.
 */
export function secondaryObstacle(
  { secondary, delivery }: Pick<Config, 'delivery' | 'secondary'>,
  primaryPool: string,
): string | null {
  if (secondary.type === 'relay') return null;
  const { pool } = secondary;
  const own = delivery.egress.filter(
    ({ pools, address, address6, proxy }) =>
      pools.includes(pool) && !pools.includes(primaryPool) && (address ?? address6 ?? proxy) !== undefined,
  );
  if (pool !== primaryPool && own.length > 0) return null;
  return `no entry of delivery.egress has a source address or a proxy for the pool ${pool} that the pool ${primaryPool} does not have`;
}

function causeOf(
  tables: Tables,
  message: MessageRow,
  result: AttemptResult,
  { conclusion, sessions }: AttemptLog,
): FailoverCause | null {
  // A 421 closes the connection, so that its session counts as broken; its text is the reply nevertheless.
  if ((conclusion === 'replied' || conclusion === 'unreachable') && isListing(result)) return 'listing';
  // After another reply or a TLS failure, another source address is unlikely to help.
  if (conclusion !== 'unreachable' || result.failure !== 'unreachable') return null;
  if (sessions.length === 0 || !sessions.every(({ phase }) => BEFORE_DATA.has(phase))) return null;
  const failed = tables.messages.attemptsOf(message.seq).filter(({ lane, report }) => {
    const stored: { conclusion?: string } = JSON.parse(report);
    return lane === 'primary' && stored.conclusion === 'unreachable';
  });
  return failed.length >= MIN_FAILED_CONNECTIONS ? 'connection' : null;
}

/** Whether the reply rejects our address because of its listing or reputation. */
function isListing({ classification, reply, source }: AttemptResult): boolean {
  const { scope, bounceClass } = classification;
  if (source !== 'smtp' || scope !== 'sender' || COMPLAINTS.test(reply.text)) return false;
  // A policy may concern the domain or the volume; it concerns the address if the reply names one.
  return bounceClass === 'reputation-block' || (bounceClass === 'policy-block' && ADDRESS.test(reply.text));
}

const COMPLAINTS = /complain|abuse report|feedback loop|dmarc/i;
/** An IPv4 or IPv6 address, or the words for one. */
const ADDRESS = /\b\d{1,3}(?:\.\d{1,3}){3}\b|\[?[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,7}|\bip\b|\bclient host\b/i;

/** Messages of an account per hour that the share never excludes. */
const MIN_OF_ACCOUNT = 20;
/** Accounts whose attempts are counted in a period; others have the minimum. */
const MAX_ACCOUNTS = 10_000;
const PERIOD_MS = 5 * MINUTE;
const PERIODS = HOUR / PERIOD_MS;
/** Accounts whose counts are stored; after a restart, the messages of others count only toward the total. */
const MAX_STORED_ACCOUNTS = 1000;
const NO_ACCOUNT = '';

/** Messages that changed their lane: account, time of the period (epoch ms), number. */
type StoredCount = [accountId: string, at: number, messages: number];

/** Counts by account in five minutes of the monotonic clock. */
interface Period {
  number: number;
  attempts: Map<string, number>;
  /** Messages that changed their lane, and the sum of them. */
  messages: Map<string, number>;
  total: number;
}

/**
 * Limits the messages that change to the secondary lane, because whatever blocks the primary lane would soon block it
 * too: to a share of the account's attempts in the last hour, and to a number per hour for all accounts. The counts of
 * messages that changed are stored, so that a daemon that restarts repeatedly does not exceed the cap. The counts of
 * attempts are not: after a restart an account has its minimum until it has made attempts.
 *
 * `before`: what `stored` returned before the restart; null: nothing.
 */
export function createFailoverCap(
  { clock, monotonic }: Pick<Context, 'clock' | 'monotonic'>,
  before: string | null,
) {
  let periods: Period[] = [];

  /** The periods of the last hour. */
  function lastHour(): Period[] {
    const oldest = periodAt(monotonic.now()) - PERIODS + 1;
    if (periods.some(({ number }) => number < oldest))
      periods = periods.filter(({ number }) => number >= oldest);
    return periods;
  }

  function period(ageMs = 0): Period {
    const number = periodAt(monotonic.now() - ageMs);
    const known = lastHour().find((each) => each.number === number);
    if (known !== undefined) return known;
    const added = { number, attempts: new Map(), messages: new Map(), total: 0 };
    periods.push(added);
    return added;
  }

  const sumOf = (kind: 'attempts' | 'messages', accountId: string) =>
    lastHour().reduce((sum, { [kind]: counts }) => sum + (counts.get(accountId) ?? 0), 0);

  function addMessages(to: Period, accountId: string, count = 1): void {
    add(to.messages, accountId, count);
    to.total += count;
  }

  for (const [accountId, at, messages] of readCounts(before)) {
    // A time in the future is that of a clock that was set back: it counts as now.
    addMessages(period(Math.max(0, clock.now() - at)), accountId, messages);
  }

  /** Counts an attempt over the primary lane. */
  function countAttempt(accountId: string): void {
    const { attempts } = period();
    if (attempts.size < MAX_ACCOUNTS || attempts.has(accountId)) add(attempts, accountId, 1);
  }

  /** Counts a message that changes its lane, if the cap admits it. */
  function take(
    accountId: string,
    { share, perHour }: Pick<Config['secondary'], 'share' | 'perHour'>,
  ): boolean {
    const all = lastHour().reduce((sum, { total }) => sum + total, 0);
    if (share === 0 || all >= perHour) return false;
    const most = Math.max(MIN_OF_ACCOUNT, Math.floor(sumOf('attempts', accountId) * share));
    if (sumOf('messages', accountId) >= most) return false;
    addMessages(period(), accountId);
    return true;
  }

  /** What `take` admitted in the last hour, as text for the next start. */
  function stored(): string {
    const now = clock.now();
    const accounts = new Set(lastHour().flatMap(({ messages }) => [...messages.keys()]));
    const named = new Set([...accounts].slice(0, MAX_STORED_ACCOUNTS));
    const rows = lastHour().flatMap(({ number, messages, total }): StoredCount[] => {
      // The end of the period: a count that is stored after each of many restarts must not become older than it is.
      const at = now - Math.max(0, monotonic.now() - ((number + 1) * PERIOD_MS - 1));
      const own = [...messages].filter(([accountId]) => named.has(accountId));
      const rest = own.reduce((left, [, count]) => left - count, total);
      return [...own, [NO_ACCOUNT, rest] as const].flatMap(([accountId, count]): StoredCount[] =>
        count > 0 ? [[accountId, at, count]] : [],
      );
    });
    return JSON.stringify(rows);
  }

  return { countAttempt, take, stored };
}

function periodAt(ms: number): number {
  return Math.floor(ms / PERIOD_MS);
}

function add(counts: Map<string, number>, accountId: string, count: number): void {
  counts.set(accountId, (counts.get(accountId) ?? 0) + count);
}

/** Reads what `stored` wrote; entries in another form are ignored. */
function readCounts(text: string | null): StoredCount[] {
  if (text === null) return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A damaged text loses only the counts of one hour.
    return [];
  }
  return Array.isArray(value) ? value.filter(isStoredCount) : [];
}

function isStoredCount(value: unknown): value is StoredCount {
  if (!Array.isArray(value)) return false;
  const [accountId, at, messages]: unknown[] = value;
  return typeof accountId === 'string' && Number.isFinite(at) && Number.isSafeInteger(messages);
}
