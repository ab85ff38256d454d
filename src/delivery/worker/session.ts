import type { SmtpPhase } from '../../mail/reply.ts';
import { type Connection, isOk } from './connection.ts';
import type { Limits } from './limits.ts';
import type { Outcome } from './outcome.ts';
import { replyOf, type WireReply } from './reply-reader.ts';
import { SessionTrouble } from './trouble.ts';
import type { Wire } from './wire.ts';

/**
 * One message, one recipient, over one connection: MAIL, RCPT, DATA, the message (RFC 5321 §3.3). Sends it
 * once and reports; whom to ask next is decided in attempt.ts.
 */
export interface OutgoingMessage {
  /** Reverse path, '' for the null one. */
  from: string;
  to: string;
  /** The whole message, CRLF lines, dots not doubled. */
  octets: Buffer;
  /** An address in it or in its envelope is not ASCII (RFC 6531). */
  utf8: boolean;
}

/** What is handed to the operating system at once, so that each piece's progress can be watched. */
const BLOCK = 64 * 1024;

/**
 * Offers the message. Throws `SessionTrouble`: at stage `mail` the server never took notice of the message, at
 * stage `dot` without a reply it may have taken it.
 */
export async function offer(
  connection: Connection,
  message: OutgoingMessage,
  limits: Limits,
): Promise<Outcome> {
  const unsuitable = whyUnsuitable(connection, message);
  if (unsuitable) return unsuitable;
  const { wire, offers } = connection;
  const { pipelining } = offers;
  const commands: [stage: SmtpPhase, command: string][] = [
    ['mail', `MAIL FROM:<${message.from}>${parameters(connection, message)}\r\n`],
    ['rcpt', `RCPT TO:<${message.to}>\r\n`],
    ['data', 'DATA\r\n'],
  ];
  const reset = connection.unfinished ? 'RSET\r\n' : '';
  connection.transactions++;
  connection.unfinished = true;

  // RFC 2920 §3.1: DATA must be the last of a group; anything may come before it.
  if (pipelining) wire.write(reset + commands.map(([, command]) => command).join(''));
  else if (reset) wire.write(reset);
  if (reset) expectOk('mail', await wire.next('mail', limits.command));

  for (const [stage, command] of commands) {
    if (!pipelining) wire.write(command);
    const reply = await wire.next(stage, stage === 'data' ? limits.data : limits.command);
    if (stage === 'data' ? reply.code === 354 : isOk(reply)) continue;
    if (reply.code < 400)
      throw new SessionTrouble(stage, `unexpected reply to ${stage.toUpperCase()}: ${reply.code}`);
    if (pipelining) await skipReplies(wire, stage, limits);
    return { kind: 'answered', stage, reply: replyOf(reply) };
  }
  const reply = await sendMessage(wire, message, limits);
  connection.unfinished = false;
  return { kind: 'answered', stage: 'dot', reply: replyOf(reply) };
}

/**
 * Reads the replies to what was sent ahead of a refusal. A server that answers DATA with 354 all the same
 * gets an empty message (RFC 2920 §3.1). The verdict stands: trouble here only costs the connection.
 */
async function skipReplies(wire: Wire, refusedAt: SmtpPhase, limits: Limits): Promise<void> {
  if (refusedAt === 'data') return;
  try {
    if (refusedAt === 'mail') await wire.next('rcpt', limits.courtesy);
    const data = await wire.next('data', limits.courtesy);
    if (data.code !== 354) return;
    wire.write('.\r\n');
    await wire.next('data', limits.courtesy);
  } catch (error) {
    if (!(error instanceof SessionTrouble)) throw error;
  }
}

/** The message itself, and the reply to it. */
async function sendMessage(wire: Wire, message: OutgoingMessage, limits: Limits): Promise<WireReply> {
  for (const block of dataBlocks(message.octets)) {
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
  const reply = await wire.next('dot', limits.dot);
  if (reply.code >= 300 && reply.code < 400)
    throw new SessionTrouble('dot', `unexpected reply: ${reply.code}`);
  return reply;
}

/**
 * A server that has read enough says so before the end, and often hangs up: that is its verdict, not an
 * accident. Since the rest of the message will not be sent, the connection ends there.
 */
function earlyRefusal(wire: Wire): WireReply | null {
  const reply = wire.early();
  if (!reply) return null;
  const words = 'the server replied before it had the whole message';
  wire.cut(words);
  if (reply.code === 421) throw new SessionTrouble('data', 'the server ended the session', reply);
  if (reply.code < 400) throw new SessionTrouble('data', `${words}: ${reply.code}`);
  return reply;
}

const DOT = '.'.charCodeAt(0);
const LINE_END = Buffer.from('\r\n');
const FINAL_DOT = Buffer.from('.\r\n');
const LINE_END_AND_FINAL_DOT = Buffer.from('\r\n.\r\n');

/**
 * The message in blocks, with dots doubled at line starts and the final dot (RFC 5321 §4.5.2). Most messages have
 * none to double: those are sent as they are, without a copy of the whole.
 */
function* dataBlocks(octets: Buffer): Generator<Buffer> {
  const hasDots = octets[0] === DOT || octets.includes('\r\n.');
  const stuffed = hasDots
    ? Buffer.from(octets.toString('latin1').replace(/(^|\r\n)\./g, '$1..'), 'latin1')
    : octets;
  const endsWithLine = stuffed.length === 0 || stuffed.subarray(-2).equals(LINE_END);
  const end = endsWithLine ? FINAL_DOT : LINE_END_AND_FINAL_DOT;
  let start = 0;
  for (; stuffed.length - start > BLOCK; start += BLOCK) yield stuffed.subarray(start, start + BLOCK);
  yield Buffer.concat([stuffed.subarray(start), end]);
}

function parameters({ offers }: Connection, message: OutgoingMessage): string {
  const size = offers.size ? ` SIZE=${message.octets.length}` : '';
  // RFC 6531 §3.4 wants SMTPUTF8 only where it is needed; such messages hold octets above 127.
  if (!message.utf8) return size;
  return `${size} SMTPUTF8${offers.eightBitMime ? ' BODY=8BITMIME' : ''}`;
}

/** Why this server cannot take the message, known before a word is said. */
function whyUnsuitable({ offers, host }: Connection, message: OutgoingMessage): Outcome | null {
  if (message.utf8 && !offers.smtpUtf8) {
    const text = `${host} does not take internationalised addresses (SMTPUTF8)`;
    return { kind: 'refused', stage: 'ehlo', reply: { code: 553, enhanced: '5.6.7', text }, nextHost: true };
  }
  const { length } = message.octets;
  if (length > offers.maxSize) {
    const text = `the message has ${length} octets, ${host} takes ${offers.maxSize} at most`;
    return { kind: 'refused', stage: 'ehlo', reply: { code: 552, enhanced: '5.3.4', text }, nextHost: false };
  }
  return null;
}

function expectOk(stage: SmtpPhase, reply: WireReply): void {
  if (!isOk(reply)) throw new SessionTrouble(stage, `RSET refused: ${reply.code} ${replyOf(reply).text}`);
}
