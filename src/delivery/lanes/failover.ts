import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import type { MessageRow } from '../../store/messages/messages.ts';
import type { Tables } from '../../store/tables.ts';
import type {
  AttemptLog,
  AttemptResult,
  Failover,
  FailoverCause,
  FailoverDecision,
} from '../attempt-result.ts';
import { routeFor } from '../routing/routes.ts';
import { createFailoverCap } from './failover-cap.ts';

export interface FailoverDeps {
  config: Pick<Config, 'delivery' | 'secondary' | 'regions'>;
  /** Monotonic. */
  clock: Clock;
  wallClock: Clock;
  /** Stores the counts of the cap. */
  settings: Pick<Tables['settings'], 'get'>;
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
export function createFailover({ config, clock, wallClock, settings }: FailoverDeps): Failover {
  const cap = createFailoverCap({ clock, wallClock, stored: settings.get(COUNTS) });

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
