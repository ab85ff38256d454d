import { SECOND } from '../../core/clock.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import type { Client } from './client.ts';
import { type Connection, isOk } from './connection.ts';
import { SmtpSessionError } from './errors.ts';
import {
  BLOCK_BYTES,
  endsWithLine,
  envelopeCommands,
  LINE_END,
  type OutgoingMessage,
  sizeOf,
} from './outgoing-message.ts';
import { replyOf, type WireReply } from './reply-reader.ts';
import type { SessionResult } from './session-result.ts';

/*
 * A transaction in one write: MAIL, RCPT, and the message as the only chunk of BDAT (RFC 3030 §2). Its replies arrive after one
 * round trip; with DATA it takes two, because the message has to wait for the 354.
 *
 * The message is on its way before the server has replied to anything, so this is for servers that work: a connection begins with
 * DATA, and an address at which BDAT failed gets only DATA for an hour.
 */

/**
 * A server may close a connection that has been idle for longer. The message would then wait for its next attempt, because what
 * was sent may have been accepted.
 */
const MAX_IDLE_MS = SECOND;
/**
 * A line that a server would execute if it did not discard the chunk, as it must when it refuses the recipient (RFC 3030 §2):
 * an account could send mail to others, or in the name of others.
 */
const COMMAND = /^[ \t]*(?:mail[ \t]+from|rcpt[ \t]+to|data[ \t]*$|bdat[ \t]+\d)/im;

type BdatClient = Pick<Client, 'timeouts' | 'deadlines' | 'bdatFaults'>;

/**
 * Whether the message is offered with BDAT: the server supports it, has just accepted a message over the connection, and the
 * message fits into one write.
 */
export function mayUseBdat(
  { extensions, acceptedAt, address }: Connection,
  message: OutgoingMessage,
  { deadlines, bdatFaults }: BdatClient,
): boolean {
  if (!extensions.chunking || !extensions.pipelining) return false;
  if (acceptedAt === null || deadlines.now() - acceptedAt > MAX_IDLE_MS) return false;
  if (sizeOf(message) > BLOCK_BYTES || bdatFaults.has(address)) return false;
  return !COMMAND.test(message.body.toString('latin1'));
}

/** Replies to BDAT of a server that does not know it, or not in this form. */
const NOT_SUPPORTED = new Set([500, 501, 502, 503, 504, 555]);

/**
 * Returns null if the server does not support BDAT: the message must be offered with DATA. Throws `SmtpSessionError`: in phase
 * `mail` nothing was sent, or the server ended the session with 421; in phase `dot` without a reply it may have accepted the
 * message.
 */
export async function offerWithBdat(
  connection: Connection,
  message: OutgoingMessage,
  { timeouts, bdatFaults }: BdatClient,
): Promise<SessionResult | null> {
  const { wire, address } = connection;
  connection.transactions++;
  connection.unfinished = true;
  // Throws: the connection was lost before.
  if (!wire.write(transactionOf(connection, message))) await wire.next('mail', timeouts.command);
  let reply: WireReply;
  try {
    for (const phase of ['mail', 'rcpt'] as const) {
      // A server may send all replies together, when it has processed the message.
      const early = await wire.next(phase, timeouts.dot);
      if (isOk(early)) continue;
      if (early.code < 400) throw unexpected(phase, early);
      await skipReplies(connection, phase === 'mail' ? 2 : 1, timeouts.trailing);
      if (wire.dead()) bdatFaults.add(address);
      return { kind: 'answered', phase, reply: replyOf(early) };
    }
    reply = await wire.next('dot', timeouts.dot);
    if (reply.code >= 300 && reply.code < 400) throw unexpected('dot', reply);
    // After an unsolicited reply each one would be taken for the next. With DATA this is noticed at the 354.
    if (isOk(reply) && replyOf(reply).enhanced?.startsWith('2.1.'))
      throw new SmtpSessionError('dot', 'the server replied to the message with a status of an address');
  } catch (error) {
    if (!(error instanceof SmtpSessionError) || error.reply !== null) throw error;
    bdatFaults.add(address);
    throw new SmtpSessionError('dot', `${error.message} (sent with BDAT)`);
  }
  if (NOT_SUPPORTED.has(reply.code)) {
    bdatFaults.add(address);
    return null;
  }
  // RFC 3030 §2: after a failed BDAT the state is undefined.
  connection.unfinished = !isOk(reply);
  return { kind: 'answered', phase: 'dot', reply: replyOf(reply) };
}

function transactionOf(connection: Connection, message: OutgoingMessage): Buffer {
  const { header, body } = message;
  const end = endsWithLine(body) ? [] : [LINE_END];
  const chunk = [header, body, ...end];
  const size = chunk.reduce((bytes, part) => bytes + part.length, 0);
  const commands = `${envelopeCommands(connection, message).join('')}BDAT ${size} LAST\r\n`;
  return Buffer.concat([Buffer.from(commands), ...chunk]);
}

/** Reads the replies after the deciding one. An error only ends the connection. */
async function skipReplies({ wire }: Connection, count: number, limitMs: number): Promise<void> {
  try {
    for (let n = 0; n < count; n++) await wire.next('dot', limitMs);
  } catch (error) {
    if (!(error instanceof SmtpSessionError)) throw error;
  }
}

function unexpected(phase: SmtpPhase, { code }: WireReply): SmtpSessionError {
  return new SmtpSessionError(
    phase,
    `unexpected reply to ${phase === 'dot' ? 'BDAT' : phase.toUpperCase()}: ${code}`,
  );
}
