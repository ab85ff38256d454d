import type { SmtpPhase } from '../../mail/reply.ts';
import { mayUseBdat, offerWithBdat } from './bdat.ts';
import type { Client } from './client.ts';
import { type Connection, isOk } from './connection.ts';
import { SmtpSessionError } from './errors.ts';
import {
  BLOCK_BYTES,
  endsWithLine,
  envelopeCommands,
  type OutgoingMessage,
  sizeOf,
} from './outgoing-message.ts';
import { replyOf, type WireReply } from './reply-reader.ts';
import type { SessionResult } from './session-result.ts';
import type { SmtpTimeouts } from './timeouts.ts';
import type { Wire } from './wire.ts';

/**
 * Offers the message in one transaction: MAIL, RCPT, DATA, the message (RFC 5321 §3.3), or with BDAT in one write. Throws
 * `SmtpSessionError`: in phase `mail` the server has not processed any of it; in phase `dot` without a reply it may have
 * accepted it.
 */
export async function offer(
  connection: Connection,
  message: OutgoingMessage,
  client: Pick<Client, 'timeouts' | 'deadlines' | 'bdatFaults'>,
): Promise<SessionResult> {
  const refusal = refusalOf(connection, message);
  if (refusal !== null) return refusal;
  const chunked = mayUseBdat(connection, message, client)
    ? await offerWithBdat(connection, message, client)
    : null;
  const result = chunked ?? (await offerWithData(connection, message, client.timeouts));
  const accepted = result.kind === 'answered' && result.phase === 'dot' && result.reply.code < 300;
  connection.acceptedAt = accepted ? client.deadlines.now() : null;
  return result;
}

async function offerWithData(
  connection: Connection,
  message: OutgoingMessage,
  timeouts: SmtpTimeouts,
): Promise<SessionResult> {
  const { wire } = connection;
  const { pipelining } = connection.extensions;
  const [mail, rcpt] = envelopeCommands(connection, message);
  const commands: [phase: SmtpPhase, command: string][] = [
    ['mail', mail],
    ['rcpt', rcpt],
    ['data', 'DATA\r\n'],
  ];
  const reset = connection.unfinished ? 'RSET\r\n' : '';
  connection.transactions++;
  connection.unfinished = true;

  // RFC 2920 §3.1: DATA must be the last of a group; anything may come before it.
  if (pipelining) wire.write(reset + commands.map(([, command]) => command).join(''));
  else if (reset) wire.write(reset);
  if (reset) expectOk('mail', await wire.next('mail', timeouts.command));

  for (const [phase, command] of commands) {
    if (!pipelining) wire.write(command);
    const reply = await wire.next(phase, phase === 'data' ? timeouts.data : timeouts.command);
    if (phase === 'data' ? reply.code === 354 : isOk(reply)) continue;
    if (reply.code < 400)
      throw new SmtpSessionError(phase, `unexpected reply to ${phase.toUpperCase()}: ${reply.code}`);
    if (pipelining) await skipReplies(wire, phase, timeouts);
    return { kind: 'answered', phase, reply: replyOf(reply) };
  }
  const reply = await sendMessage(wire, message, timeouts);
  // Postfix does not end a transaction whose message a policy service refuses (smtpd_end_of_data_restrictions): it would refuse the
  // next MAIL, and another message with it.
  connection.unfinished = !isOk(reply);
  return { kind: 'answered', phase: 'dot', reply: replyOf(reply) };
}

/**
 * Reads the replies to commands that were pipelined after the refused one. A server that still replies 354 to DATA gets
 * an empty message (RFC 2920 §3.1). The refusal stands: an error here only ends the connection.
 */
async function skipReplies(wire: Wire, refusedAt: SmtpPhase, timeouts: SmtpTimeouts): Promise<void> {
  if (refusedAt === 'data') return;
  try {
    if (refusedAt === 'mail') await wire.next('rcpt', timeouts.trailing);
    const data = await wire.next('data', timeouts.trailing);
    if (data.code !== 354) return;
    wire.write('.\r\n');
    await wire.next('data', timeouts.trailing);
  } catch (error) {
    if (!(error instanceof SmtpSessionError)) throw error;
  }
}

/** Sends the message; resolves with its reply. */
async function sendMessage(wire: Wire, message: OutgoingMessage, timeouts: SmtpTimeouts): Promise<WireReply> {
  for (const block of dataBlocks(message)) {
    const early = earlyRefusal(wire);
    if (early) return early;
    try {
      await wire.writeBlock(block);
    } catch (error) {
      const last = earlyRefusal(wire);
      if (last) return last;
      throw error;
    }
  }
  const reply = await wire.next('dot', timeouts.dot);
  if (reply.code >= 300 && reply.code < 400)
    throw new SmtpSessionError('dot', `unexpected reply: ${reply.code}`);
  return reply;
}

/**
 * A reply that the server sent before the end of the message, often followed by a close: it decides. The rest of the
 * message is not sent, so the connection ends.
 */
function earlyRefusal(wire: Wire): WireReply | null {
  const reply = wire.early();
  if (!reply) return null;
  const reason = 'the server replied before the end of the message';
  wire.close(reason);
  if (reply.code === 421) throw new SmtpSessionError('data', 'the server ended the session', reply);
  if (reply.code < 400) throw new SmtpSessionError('data', `${reason}: ${reply.code}`);
  return reply;
}

const DOT = '.'.charCodeAt(0);
const NOTHING = Buffer.alloc(0);
const FINAL_DOT = Buffer.from('.\r\n');
const LINE_END_AND_FINAL_DOT = Buffer.from('\r\n.\r\n');

/**
 * The message in blocks, with dots doubled at line starts and the final dot (RFC 5321 §4.5.2). Most messages have no such
 * dots and are sent without a copy of the whole.
 */
function* dataBlocks({ header, body }: OutgoingMessage): Generator<Buffer> {
  const hasDots = body[0] === DOT || body.includes('\r\n.');
  const stuffed = hasDots
    ? Buffer.from(body.toString('latin1').replace(/(^|\r\n)\./g, '$1..'), 'latin1')
    : body;
  const end = endsWithLine(stuffed) ? FINAL_DOT : LINE_END_AND_FINAL_DOT;
  let before = header;
  let start = 0;
  for (; before.length + stuffed.length - start > BLOCK_BYTES; start += BLOCK_BYTES) {
    const block = stuffed.subarray(start, start + BLOCK_BYTES);
    yield before.length === 0 ? block : Buffer.concat([before, block]);
    before = NOTHING;
  }
  yield Buffer.concat([before, stuffed.subarray(start), end]);
}

/** The result when the server's extensions rule the message out; null: it can be offered. */
function refusalOf({ extensions, host }: Connection, message: OutgoingMessage): SessionResult | null {
  if (message.utf8 && !extensions.smtpUtf8) {
    const text = `${host} does not support internationalized addresses (SMTPUTF8)`;
    return { kind: 'refused', phase: 'ehlo', reply: { code: 553, enhanced: '5.6.7', text }, nextHost: true };
  }
  const length = sizeOf(message);
  if (length > extensions.maxSize) {
    const text = `the message has ${length} bytes, ${host} accepts ${extensions.maxSize} at most`;
    return { kind: 'refused', phase: 'ehlo', reply: { code: 552, enhanced: '5.3.4', text }, nextHost: false };
  }
  return null;
}

function expectOk(phase: SmtpPhase, reply: WireReply): void {
  if (!isOk(reply)) throw new SmtpSessionError(phase, `RSET refused: ${reply.code} ${replyOf(reply).text}`);
}
