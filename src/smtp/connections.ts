import type { SMTPServerSession } from 'smtp-server';
import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import { createTally } from '../core/concurrency/tally.ts';
import { type SmtpCaller, smtpCaller } from './caller.ts';
import { SmtpRejection } from './reply.ts';

/*
 * The open connections of a listener, and the choice of the one that ends when all slots are taken. The choice depends on
 * the last completed message of a connection, not on its last command: a client that repeats MAIL and RSET, or sends a
 * mail byte by byte, keeps its slot only while no other client needs it. A connection whose message is being processed is
 * never ended.
 */

/** Limits on the connections of a listener. */
export interface SmtpConnectionLimits {
  connections: number;
  /** Connections of one address; an IPv6 /64 counts as one. */
  perAddress: number;
  messagesPerConnection: number;
  /** Maximum time from MAIL to the end of the mail, ms. */
  transactionMs: number;
  /** Maximum time of a connection, ms. */
  connectionMs: number;
}

export const CONNECTION_LIMITS: Pick<
  SmtpConnectionLimits,
  'messagesPerConnection' | 'transactionMs' | 'connectionMs'
> = { messagesPerConnection: 1000, transactionMs: 10 * MINUTE, connectionMs: 120 * MINUTE };

/** idle: between mails. mail: from MAIL on. processing: the client waits for the reply to its mail. */
type ConnectionPhase = 'idle' | 'mail' | 'processing';

interface Entry {
  caller: SmtpCaller;
  since: number;
  phase: ConnectionPhase;
  /** When the phase began. */
  phaseAt: number;
  /** When the last message was completed, else when the connection began. */
  productiveAt: number;
  /** Messages that were accepted. */
  completed: number;
  mails: number;
  rejectedRecipients: number;
}

/** Time after a completed message in which a connection keeps its slot, even when its network has too many. */
const PATIENCE_MS = 5 * SECOND;
/**
 * Time after a completed message in which a connection keeps its slot when its network has no more than its fair
 * share.
 */
const FAIR_PATIENCE_MS = 30 * SECOND;
/** Recipients that do not exist, in one connection. */
const MAX_REJECTED_RECIPIENTS = 20;

/**
 * Has no connections at first and no timer: the listener calls `sweep`. `disconnect` sends 421 and closes the connection.
 * Functions ignore sessions that were removed.
 */
export function createConnections(
  clock: Clock,
  limits: SmtpConnectionLimits,
  disconnect: (session: SMTPServerSession, text: string) => void,
) {
  const entries = new Map<SMTPServerSession, Entry>();
  const blocks = createTally();
  const networks = createTally();
  let draining = false;

  /** Connections without a completed message for that long; any of them may be ended. */
  function unproductive(patienceMs: number): Candidate[] {
    const latest = clock.now() - patienceMs;
    return [...entries].filter(
      ([, { phase, productiveAt }]) => phase !== 'processing' && productiveAt <= latest,
    );
  }

  /** The connection to end for one of this caller when all slots are taken; null: none. */
  function victimFor({ network }: SmtpCaller): SMTPServerSession | null {
    const own = networks.of(network) + 1;
    const networkCount = own === 1 ? networks.keys + 1 : networks.keys;
    const fairShare = Math.max(1, Math.floor(limits.connections / networkCount));
    // A network above its share takes slots only from itself and from larger ones.
    const isAbove = ({ caller }: Entry) => {
      const size = caller.network === network ? own : networks.of(caller.network);
      return size > fairShare && (own <= fairShare || size >= own);
    };
    const fromAbove = (candidates: Candidate[]) => {
      const above = candidates.filter(([, entry]) => isAbove(entry));
      const ofNetwork = largestGroup(above, ({ caller }) => caller.network);
      return stalest(largestGroup(ofNetwork, ({ caller }) => caller.block));
    };
    const victim = fromAbove(unproductive(PATIENCE_MS));
    if (victim !== null || own > fairShare) return victim;
    // Clients that reconnect often are never old: without a completed message they are candidates immediately.
    const fresh = [...entries].filter(
      ([, { phase, completed }]) => phase !== 'processing' && completed === 0,
    );
    return fromAbove(fresh) ?? stalest(unproductive(FAIR_PATIENCE_MS));
  }

  function evict(victim: SMTPServerSession | null): boolean {
    if (victim === null) return false;
    remove(victim);
    disconnect(victim, 'Other clients need this connection');
    return true;
  }

  /** Removes a connection that was closed. */
  function remove(session: SMTPServerSession): void {
    const entry = entries.get(session);
    if (entry === undefined) return;
    entries.delete(session);
    blocks.add(entry.caller.block, -1);
    networks.add(entry.caller.network, -1);
  }

  return {
    /** Adds a connection, for which another one may be ended; returns the rejection when there is no slot for it. */
    admit: (session: SMTPServerSession): SmtpRejection | null => {
      const caller = smtpCaller(session.remoteAddress);
      if (
        blocks.of(caller.block) >= limits.perAddress &&
        !evict(stalest(unproductive(PATIENCE_MS).filter(([, entry]) => entry.caller.block === caller.block)))
      )
        return new SmtpRejection(421, '4.7.0', 'Too many connections from your address');
      if (entries.size >= limits.connections && !evict(victimFor(caller)))
        return new SmtpRejection(421, '4.3.2', 'Too many connections; please try again in a moment');
      const now = clock.now();
      entries.set(session, {
        caller,
        since: now,
        phase: 'idle',
        phaseAt: now,
        productiveAt: now,
        completed: 0,
        mails: 0,
        rejectedRecipients: 0,
      });
      blocks.add(caller.block, 1);
      networks.add(caller.network, 1);
      return null;
    },
    /** Handles MAIL; returns the rejection when the connection has sent as many messages as it may. */
    begin: (session: SMTPServerSession): SmtpRejection | null => {
      const entry = entries.get(session);
      if (entry === undefined) return null;
      if (++entry.mails > limits.messagesPerConnection)
        return new SmtpRejection(421, '4.7.0', 'Too many messages in one connection; please open another');
      entry.phase = 'mail';
      entry.phaseAt = clock.now();
      return null;
    },
    enter: (session: SMTPServerSession, phase: ConnectionPhase): void => {
      const entry = entries.get(session);
      if (entry === undefined) return;
      entry.phase = phase;
      entry.phaseAt = clock.now();
      if (draining && phase === 'idle') disconnect(session, 'Shutting down');
    },
    /** Counts an accepted message. */
    complete: (session: SMTPServerSession): void => {
      const entry = entries.get(session);
      if (entry === undefined) return;
      entry.productiveAt = clock.now();
      entry.completed++;
    },
    /** Counts a rejected recipient; returns the rejection of a connection that tries many addresses that do not exist. */
    rejectedRecipient: (session: SMTPServerSession): SmtpRejection | null => {
      const entry = entries.get(session);
      return entry !== undefined && ++entry.rejectedRecipients >= MAX_REJECTED_RECIPIENTS
        ? new SmtpRejection(421, '4.7.0', 'Too many addresses that do not exist')
        : null;
    },
    remove,
    /** Ends connections that exceed their time limits; called every few seconds. */
    sweep: (): void => {
      const now = clock.now();
      for (const [session, { phase, phaseAt, since }] of entries) {
        const isLate =
          (phase === 'mail' && now - phaseAt > limits.transactionMs) ||
          (phase !== 'processing' && now - since > limits.connectionMs);
        if (!isLate) continue;
        remove(session);
        disconnect(session, 'Time limit exceeded');
      }
    },
    /** Ends idle connections now, and every other one when it becomes idle. */
    drain: (): void => {
      draining = true;
      for (const [session, { phase }] of entries) if (phase === 'idle') disconnect(session, 'Shutting down');
    },
    count: (): number => entries.size,
  };
}

type Candidate = [SMTPServerSession, Entry];

/** The connection whose last completed message is the longest ago. */
function stalest(candidates: Candidate[]): SMTPServerSession | null {
  let found: Candidate | null = null;
  for (const candidate of candidates)
    if (found === null || candidate[1].productiveAt < found[1].productiveAt) found = candidate;
  return found?.[0] ?? null;
}

function largestGroup(candidates: Candidate[], nameOf: (entry: Entry) => string): Candidate[] {
  const groups = new Map<string, Candidate[]>();
  let largest: Candidate[] = [];
  for (const candidate of candidates) {
    const group = groups.get(nameOf(candidate[1])) ?? [];
    group.push(candidate);
    groups.set(nameOf(candidate[1]), group);
    if (group.length > largest.length) largest = group;
  }
  return largest;
}
