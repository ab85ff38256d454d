import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { type ParsedIncoming, parseIncoming } from '../mail/incoming/parse.ts';
import { readSubmitted, type Submitted } from './submitted-mail.ts';

/**
 * The thread that reads mail from strangers: whatever a mail does to its parser, it does here. It knows
 * nothing but the mail, and can be ended at any time.
 */
export interface Readings {
  /** Mail that comes in from other servers. */
  incoming: ReadIncoming;
  /** Mail that a customer's program hands in. */
  submission: Submitted;
}

export interface ReadIncoming {
  parsed: ParsedIncoming;
  /** 16 bytes, the same for one mail sent twice: trace fields are no part of it. */
  fingerprint: Uint8Array;
}

/** Each is answered by its reading, in order. */
export interface ParseJob {
  purpose: keyof Readings;
  raw: Uint8Array;
}

const READERS: { [Purpose in keyof Readings]: (mail: Buffer) => Readings[Purpose] } = {
  incoming: (mail) => ({ parsed: parseIncoming(mail), fingerprint: fingerprintOf(mail) }),
  submission: readSubmitted,
};

/** Of the body alone: on its way a mail gets more header fields, but nobody rewrites what it reports. */
function fingerprintOf(mail: Buffer): Uint8Array {
  const ends = [mail.indexOf('\r\n\r\n'), mail.indexOf('\n\n')].filter((at) => at >= 0);
  const body = ends.length === 0 ? mail : mail.subarray(Math.min(...ends));
  return createHash('sha256').update(body).digest().subarray(0, 16);
}

parentPort?.on('message', ({ purpose, raw }: ParseJob) => {
  const mail = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  parentPort?.postMessage(READERS[purpose](mail));
});
