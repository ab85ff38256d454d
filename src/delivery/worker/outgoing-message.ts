import type { Connection } from './connection.ts';

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
export const BLOCK_BYTES = 64 * 1024;

export const LINE_END = Buffer.from('\r\n');

/** Whether an empty or complete line ends the body. */
export function endsWithLine(body: Buffer): boolean {
  return body.length === 0 || body.subarray(-2).equals(LINE_END);
}

/** Bytes of the message, without doubled dots. */
export function sizeOf({ header, body }: Pick<OutgoingMessage, 'header' | 'body'>): number {
  return header.length + body.length;
}

/** The lines of MAIL and RCPT. */
export function envelopeCommands(
  { extensions }: Pick<Connection, 'extensions'>,
  message: OutgoingMessage,
): [mail: string, rcpt: string] {
  const size = extensions.size ? ` SIZE=${sizeOf(message)}` : '';
  // RFC 6531 §3.4: SMTPUTF8 only where it is needed; such messages have bytes above 127.
  const utf8 = message.utf8 ? ` SMTPUTF8${extensions.eightBitMime ? ' BODY=8BITMIME' : ''}` : '';
  return [`MAIL FROM:<${message.from}>${size}${utf8}\r\n`, `RCPT TO:<${message.to}>\r\n`];
}
