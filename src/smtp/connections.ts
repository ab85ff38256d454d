import type { SMTPServerSession } from 'smtp-server';
import { callerBlock } from '../accounts/caller-addresses.ts';
import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import { SmtpReply } from './reply.ts';

/**
 * Who is connected, and who has to go: clients that dribble, that hoard connections, that never end. A client
 * that finds its places taken gets one from the slowest of its own, so that whoever holds them all without
 * using them keeps out nobody, not even itself. What we are at work for is never cut.
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

/** idle: between mails. mail: from MAIL on. ours: it waits for our answer. */
export type Stage = 'idle' | 'mail' | 'ours';

export interface Connections {
  /** A new one; the reply when there is no place for it. */
  admit(session: SMTPServerSession): SmtpReply | null;
  /** MAIL; the reply when it has had its share. */
  begin(session: SMTPServerSession): SmtpReply | null;
  enter(session: SMTPServerSession, stage: Stage): void;
  /** A recipient was refused; the reply when it asks for many that are not there. */
  refused(session: SMTPServerSession): SmtpReply | null;
  left(session: SMTPServerSession): void;
  /** Hangs up on those whose time is over: to be called every few seconds. */
  sweep(): void;
  /** Hangs up on the idle ones now, and on each other when it becomes idle. */
  drain(): void;
  count(): number;
}

interface Held {
  /** The caller's block of addresses. */
  block: string;
  since: number;
  stage: Stage;
  /** When the stage began. */
  stageAt: number;
  mails: number;
  refusals: number;
}

/** Nobody is called slow before. */
const PATIENCE_MS = 5 * SECOND;
/** Addresses that do not exist, in one connection. */
const REFUSALS = 20;

export function createConnections(settings: {
  clock: Clock;
  limits: ConnectionLimits;
  /** Says 421 and closes. */
  hangUp(session: SMTPServerSession, text: string): void;
}): Connections {
  const { clock, limits, hangUp } = settings;
  const held = new Map<SMTPServerSession, Held>();
  const blocks = new Map<string, number>();
  let draining = false;

  /** Takes the place of the slowest connection of a block; false when none is slow. */
  function makeRoom(block: string): boolean {
    const oldest = clock.now() - PATIENCE_MS;
    let slowest: [SMTPServerSession, Held] | null = null;
    for (const entry of held) {
      const [, { block: of, stage, stageAt }] = entry;
      if (of !== block || stage === 'ours' || stageAt > oldest) continue;
      if (slowest === null || stageAt < slowest[1].stageAt) slowest = entry;
    }
    if (slowest === null) return false;
    forget(slowest[0]);
    hangUp(slowest[0], 'Others are waiting for this connection');
    return true;
  }

  function forget(session: SMTPServerSession): void {
    const entry = held.get(session);
    if (entry === undefined) return;
    held.delete(session);
    const left = (blocks.get(entry.block) ?? 1) - 1;
    if (left === 0) blocks.delete(entry.block);
    else blocks.set(entry.block, left);
  }

  function largestBlock(): string {
    let largest = '';
    for (const [block, count] of blocks) if (count > (blocks.get(largest) ?? 0)) largest = block;
    return largest;
  }

  return {
    admit: (session) => {
      const block = callerBlock(session.remoteAddress);
      if ((blocks.get(block) ?? 0) >= limits.perAddress && !makeRoom(block))
        return new SmtpReply(421, '4.7.0', 'Too many connections from your address');
      if (held.size >= limits.connections && !makeRoom(largestBlock()))
        return new SmtpReply(421, '4.3.2', 'Too many connections; please try again in a moment');
      const now = clock.now();
      held.set(session, { block, since: now, stage: 'idle', stageAt: now, mails: 0, refusals: 0 });
      blocks.set(block, (blocks.get(block) ?? 0) + 1);
      return null;
    },
    begin: (session) => {
      const entry = held.get(session);
      if (entry === undefined) return null;
      if (++entry.mails > limits.messagesPerConnection)
        return new SmtpReply(421, '4.7.0', 'Enough mail for one connection; please open another');
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
          (stage !== 'ours' && now - since > limits.connectionMs);
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
