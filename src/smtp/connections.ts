import type { SMTPServerSession } from 'smtp-server';
import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import { type SmtpCaller, smtpCaller } from './caller.ts';
import { SmtpReply } from './reply.ts';

/**
 * Which connections are open, and which one ends when all slots are taken. A connection is judged by its last
 * completed message, never by its last command: a client that repeats MAIL and RSET, or sends a mail byte by byte,
 * holds its slot only while nobody else needs it. A connection whose message is being processed is never ended.
 */
export interface ConnectionLimits {
  connections: number;
  /** Of one address; an IPv6 /64 counts as one. */
  perAddress: number;
  messagesPerConnection: number;
  /** Most time from MAIL to the end of the mail, ms. */
  transactionMs: number;
  /** Most time of a connection, ms. */
  connectionMs: number;
}

export const CONNECTION_LIMITS: Pick<
  ConnectionLimits,
  'messagesPerConnection' | 'transactionMs' | 'connectionMs'
> = { messagesPerConnection: 1000, transactionMs: 10 * MINUTE, connectionMs: 120 * MINUTE };

/** idle: between mails. mail: from MAIL on. processing: the client waits for the reply to its mail. */
export type Stage = 'idle' | 'mail' | 'processing';

export interface Connections {
  /** A new one; the reply when there is no slot for it. */
  admit(session: SMTPServerSession): SmtpReply | null;
  /** MAIL; the reply when the connection has sent all the messages it may. */
  begin(session: SMTPServerSession): SmtpReply | null;
  enter(session: SMTPServerSession, stage: Stage): void;
  /** A message was accepted. */
  complete(session: SMTPServerSession): void;
  /** A recipient was refused; the reply when it tries many addresses that do not exist. */
  refused(session: SMTPServerSession): SmtpReply | null;
  left(session: SMTPServerSession): void;
  /** Ends connections that are over their time: to be called every few seconds. */
  sweep(): void;
  /** Ends the idle connections now, and each other one when it becomes idle. */
  drain(): void;
  count(): number;
}

interface Held {
  caller: SmtpCaller;
  since: number;
  stage: Stage;
  /** When the stage began. */
  stageAt: number;
  /** When the last message was completed, else when the connection began. */
  productiveAt: number;
  /** Messages that were accepted. */
  completed: number;
  mails: number;
  refusals: number;
}

/** A connection that completed a message keeps its slot this long, even when its network has too many. */
const PATIENCE_MS = 5 * SECOND;
/** And this long when its network has no more than its fair share. */
const FAIR_PATIENCE_MS = 30 * SECOND;
/** Addresses that do not exist, in one connection. */
const REFUSALS = 20;

export function createConnections(settings: {
  clock: Clock;
  limits: ConnectionLimits;
  /** Replies 421 and closes. */
  hangUp(session: SMTPServerSession, text: string): void;
}): Connections {
  const { clock, limits, hangUp } = settings;
  const held = new Map<SMTPServerSession, Held>();
  const blocks = createCounter();
  const networks = createCounter();
  let draining = false;

  /** Connections without a message for so long that one of them may have to go. */
  function unproductive(patienceMs: number): Candidate[] {
    const latest = clock.now() - patienceMs;
    return [...held].filter(
      ([, { stage, productiveAt }]) => stage !== 'processing' && productiveAt <= latest,
    );
  }

  /** The connection that makes room for one of this caller when all slots are taken. */
  function victimFor({ network }: SmtpCaller): SMTPServerSession | null {
    const own = networks.count(network) + 1;
    const others = networks.count(network) === 0 ? networks.size() + 1 : networks.size();
    const fairShare = Math.max(1, Math.floor(limits.connections / others));
    // A network above its share takes slots only from itself and from larger ones.
    const isAbove = ({ caller }: Held) => {
      const size = caller.network === network ? own : networks.count(caller.network);
      return size > fairShare && (own <= fairShare || size >= own);
    };
    const fromAbove = (candidates: Candidate[]) => {
      const above = candidates.filter(([, entry]) => isAbove(entry));
      const ofNetwork = largestGroup(above, ({ caller }) => caller.network);
      return stalest(largestGroup(ofNetwork, ({ caller }) => caller.block));
    };
    const victim = fromAbove(unproductive(PATIENCE_MS));
    if (victim !== null || own > fairShare) return victim;
    // Clients that reconnect all the time are never old: without any message they have no patience to claim.
    const fresh = [...held].filter(([, { stage, completed }]) => stage !== 'processing' && completed === 0);
    return fromAbove(fresh) ?? stalest(unproductive(FAIR_PATIENCE_MS));
  }

  function evict(victim: SMTPServerSession | null): boolean {
    if (victim === null) return false;
    forget(victim);
    hangUp(victim, 'Other clients need this connection');
    return true;
  }

  function forget(session: SMTPServerSession): void {
    const entry = held.get(session);
    if (entry === undefined) return;
    held.delete(session);
    blocks.add(entry.caller.block, -1);
    networks.add(entry.caller.network, -1);
  }

  return {
    admit: (session) => {
      const caller = smtpCaller(session.remoteAddress);
      if (
        blocks.count(caller.block) >= limits.perAddress &&
        !evict(stalest(unproductive(PATIENCE_MS).filter(([, entry]) => entry.caller.block === caller.block)))
      )
        return new SmtpReply(421, '4.7.0', 'Too many connections from your address');
      if (held.size >= limits.connections && !evict(victimFor(caller)))
        return new SmtpReply(421, '4.3.2', 'Too many connections; please try again in a moment');
      const now = clock.now();
      held.set(session, {
        caller,
        since: now,
        stage: 'idle',
        stageAt: now,
        productiveAt: now,
        completed: 0,
        mails: 0,
        refusals: 0,
      });
      blocks.add(caller.block, 1);
      networks.add(caller.network, 1);
      return null;
    },
    begin: (session) => {
      const entry = held.get(session);
      if (entry === undefined) return null;
      if (++entry.mails > limits.messagesPerConnection)
        return new SmtpReply(421, '4.7.0', 'Too many messages in one connection; please open another');
      entry.stage = 'mail';
      entry.stageAt = clock.now();
      return null;
    },
    enter: (session, stage) => {
      const entry = held.get(session);
      if (entry === undefined) return;
      entry.stage = stage;
      entry.stageAt = clock.now();
      if (draining && stage === 'idle') hangUp(session, 'Shutting down');
    },
    complete: (session) => {
      const entry = held.get(session);
      if (entry === undefined) return;
      entry.productiveAt = clock.now();
      entry.completed++;
    },
    refused: (session) => {
      const entry = held.get(session);
      return entry !== undefined && ++entry.refusals >= REFUSALS
        ? new SmtpReply(421, '4.7.0', 'Too many addresses that do not exist')
        : null;
    },
    left: forget,
    sweep: () => {
      const now = clock.now();
      for (const [session, { stage, stageAt, since }] of held) {
        const late =
          (stage === 'mail' && now - stageAt > limits.transactionMs) ||
          (stage !== 'processing' && now - since > limits.connectionMs);
        if (!late) continue;
        forget(session);
        hangUp(session, 'This takes too long');
      }
    },
    drain: () => {
      draining = true;
      for (const [session, { stage }] of held) if (stage === 'idle') hangUp(session, 'Shutting down');
    },
    count: () => held.size,
  };
}

type Candidate = [SMTPServerSession, Held];

/** The one whose last completed message is longest ago. */
function stalest(candidates: Candidate[]): SMTPServerSession | null {
  let found: Candidate | null = null;
  for (const candidate of candidates)
    if (found === null || candidate[1].productiveAt < found[1].productiveAt) found = candidate;
  return found?.[0] ?? null;
}

function largestGroup(candidates: Candidate[], nameOf: (entry: Held) => string): Candidate[] {
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

function createCounter() {
  const counts = new Map<string, number>();
  return {
    add: (name: string, change: 1 | -1): void => {
      const count = (counts.get(name) ?? 0) + change;
      if (count === 0) counts.delete(name);
      else counts.set(name, count);
    },
    count: (name: string): number => counts.get(name) ?? 0,
    size: (): number => counts.size,
  };
}
