import { type Clock, HOUR, SECOND } from '../../core/clock.ts';
import { createExpiringCache } from '../../core/lru.ts';
import type { SmtpPhase } from '../../mail/reply.ts';
import { type Connection, isOk } from './connection.ts';
import { SmtpSessionError } from './errors.ts';
import { replyOf, type WireReply } from './reply-reader.ts';
import { refusedLocally, type SessionResult } from './session-result.ts';
import type { Deadlines, SmtpTimeouts, Wire } from './socket.ts';

/** What a transaction needs of the client. */
interface TransactionTerms {
  timeouts: SmtpTimeouts;
  deadlines: Deadlines;
  bdatFaults: BdatFaults;
}

/**
 * Offers the message in one transaction: MAIL, RCPT, DATA, the message (RFC 5321 §3.3), or with BDAT in one write. Throws
 * `SmtpSessionError`: in phase `mail` the server has not processed any of it; in phase `dot` without a reply it may have
 * accepted it.
 */
export async function offer(
  connection: Connection,
  message: OutgoingMessage,
  client: TransactionTerms,
): Promise<SessionResult> {
  const refusal = refusalOf(connection, message);
  if (refusal !== null) return refusal;
  const chunked = mayUseBdat(connection, message, client)
    ? await offerWithBdat(connection, message, client)
    : null;
  const result = chunked ?? (await offerWithData(connection, message, client.timeouts));
  const accepted = result.kind === 'replied' && result.phase === 'dot' && result.reply.code < 300;
  connection.acceptedAt = accepted ? client.deadlines.now() : null;
  return result;
}

/** The commands of a pipelined group after a refused one. */
const PIPELINED_AFTER = { mail: ['rcpt', 'data'], rcpt: ['data'], data: [] } as const;

async function offerWithData(
  connection: Connection,
  message: OutgoingMessage,
  timeouts: SmtpTimeouts,
): Promise<SessionResult> {
  const { wire } = connection;
  const { pipelining } = connection.extensions;
  const [mail, rcpt] = envelopeCommands(connection, message);
  const commands: [phase: keyof typeof PIPELINED_AFTER, command: string][] = [
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
    if (reply.code < 400) throw unexpected(phase, reply);
    if (pipelining) await skipReplies(wire, PIPELINED_AFTER[phase], timeouts);
    return { kind: 'replied', phase, reply: replyOf(reply) };
  }
  const reply = await sendMessage(wire, message, timeouts);
  // Postfix does not end a transaction whose message a policy service refuses (smtpd_end_of_data_restrictions): it would refuse the
  // next MAIL, and another message with it.
  connection.unfinished = !isOk(reply);
  return { kind: 'replied', phase: 'dot', reply: replyOf(reply) };
}

/**
 * Reads the replies that follow the deciding one, of which the last may be that to DATA: a server that still replies 354
 * gets an empty message (RFC 2920 §3.1). The refusal stands: an error here only ends the connection.
 */
async function skipReplies(
  wire: Wire,
  phases: readonly SmtpPhase[],
  { trailing }: SmtpTimeouts,
): Promise<void> {
  try {
    for (const phase of phases) {
      const { code } = await wire.next(phase, trailing);
      if (phase !== 'data' || code !== 354) continue;
      wire.write('.\r\n');
      await wire.next('data', trailing);
    }
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
    return refusedLocally('ehlo', { code: 553, enhanced: '5.6.7', text }, true);
  }
  const length = sizeOf(message);
  if (length > extensions.maxSize) {
    const text = `the message has ${length} bytes, ${host} accepts ${extensions.maxSize} at most`;
    return refusedLocally('ehlo', { code: 552, enhanced: '5.3.4', text }, false);
  }
  return null;
}

function expectOk(phase: SmtpPhase, reply: WireReply): void {
  if (!isOk(reply)) throw new SmtpSessionError(phase, `RSET refused: ${reply.code} ${replyOf(reply).text}`);
}

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

/**
 * Whether the message is offered with BDAT: the server supports it, has just accepted a message over the connection, and the
 * message fits into one write.
 */
function mayUseBdat(
  { extensions, acceptedAt, address }: Connection,
  message: OutgoingMessage,
  { deadlines, bdatFaults }: TransactionTerms,
): boolean {
  if (!extensions.chunking || !extensions.pipelining) return false;
  if (acceptedAt === null || deadlines.now() - acceptedAt > MAX_IDLE_MS) return false;
  if (sizeOf(message) > BLOCK_BYTES || bdatFaults.has(address)) return false;
  return !COMMAND.test(message.body.toString('latin1'));
}

/** Replies to BDAT of a server that does not know it, or not in this form. */
const NOT_SUPPORTED = new Set([500, 501, 502, 503, 504, 555]);

/**
 * A transaction in one write: MAIL, RCPT, and the message as the only chunk of BDAT (RFC 3030 §2). Its replies arrive after one
 * round trip; with DATA it takes two, because the message has to wait for the 354. The message is on its way before the server
 * has replied to anything, so this is for servers that work: a connection begins with DATA, and an address at which BDAT
 * failed gets only DATA for an hour.
 *
 * Returns null if the server does not support BDAT: the message must be offered with DATA. Throws `SmtpSessionError`: in phase
 * `mail` nothing was sent, or the server ended the session with 421; in phase `dot` without a reply it may have accepted the
 * message.
 */
async function offerWithBdat(
  connection: Connection,
  message: OutgoingMessage,
  { timeouts, bdatFaults }: TransactionTerms,
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
      await skipReplies(wire, phase === 'mail' ? ['dot', 'dot'] : ['dot'], timeouts);
      if (wire.dead()) bdatFaults.add(address);
      return { kind: 'replied', phase, reply: replyOf(early) };
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
  return { kind: 'replied', phase: 'dot', reply: replyOf(reply) };
}

function transactionOf(connection: Connection, message: OutgoingMessage): Buffer {
  const { header, body } = message;
  const end = endsWithLine(body) ? [] : [LINE_END];
  const chunk = [header, body, ...end];
  const size = chunk.reduce((bytes, part) => bytes + part.length, 0);
  const commands = `${envelopeCommands(connection, message).join('')}BDAT ${size} LAST\r\n`;
  return Buffer.concat([Buffer.from(commands), ...chunk]);
}

function unexpected(phase: SmtpPhase, { code }: WireReply): SmtpSessionError {
  const command = phase === 'dot' ? 'BDAT' : phase.toUpperCase();
  return new SmtpSessionError(phase, `unexpected reply to ${command}: ${code}`);
}

const FAULT_MS = HOUR;
const MAX_FAULTS = 1000;

/** Addresses of servers at which BDAT failed, in memory only. */
export type BdatFaults = ReturnType<typeof createBdatFaults>;

export function createBdatFaults(clock: Clock) {
  const faults = createExpiringCache<true>(clock, MAX_FAULTS);
  return {
    has: (address: string): boolean => faults.get(address) === true,
    add: (address: string): void => faults.set(address, true, FAULT_MS),
  };
}

/** A message to one recipient, as it is offered to a server. */
export interface OutgoingMessage {
  /** Reverse path; '' for the null reverse path. */
  from: string;
  to: string;
  /** The fields and the empty line after them; no line begins with a dot. */
  header: Buffer;
  /** CRLF lines; dots are not doubled. */
  body: Buffer;
  /** An address in the message or its envelope is not ASCII (RFC 6531). */
  utf8: boolean;
}

/**
 * Bytes of the body that are passed to the operating system in one write, so that each block has a timeout. The header is
 * written with the first one.
 */
const BLOCK_BYTES = 64 * 1024;

const LINE_END = Buffer.from('\r\n');

/** Whether an empty or complete line ends the body. */
function endsWithLine(body: Buffer): boolean {
  return body.length === 0 || body.subarray(-2).equals(LINE_END);
}

/** Bytes of the message, without doubled dots. */
function sizeOf({ header, body }: Pick<OutgoingMessage, 'header' | 'body'>): number {
  return header.length + body.length;
}

/** The lines of MAIL and RCPT. */
function envelopeCommands(
  { extensions }: Pick<Connection, 'extensions'>,
  message: OutgoingMessage,
): [mail: string, rcpt: string] {
  const size = extensions.size ? ` SIZE=${sizeOf(message)}` : '';
  // RFC 6531 §3.4: SMTPUTF8 only where it is needed; such messages have bytes above 127.
  const utf8 = message.utf8 ? ` SMTPUTF8${extensions.eightBitMime ? ' BODY=8BITMIME' : ''}` : '';
  return [`MAIL FROM:<${message.from}>${size}${utf8}\r\n`, `RCPT TO:<${message.to}>\r\n`];
}
