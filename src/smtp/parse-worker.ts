import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { type ParsedIncoming, parseIncoming } from '../mail/incoming/parse.ts';

/**
 * The thread that reads mail from strangers: whatever a mail does to its parser, it does here. It knows
 * nothing but the mail, and can be ended at any time.
 */
export interface ParseJob {
  id: number;
  raw: Uint8Array;
}

export interface ParseResult {
  id: number;
  parsed: ParsedIncoming;
  /** 16 bytes, the same for one mail sent twice: trace fields are no part of it. */
  fingerprint: Uint8Array;
}

/** The body alone: on the way a mail gets another header, but the same servers do not rewrite what they report. */
function fingerprintOf(raw: Buffer): Uint8Array {
  const end = [raw.indexOf('\r\n\r\n'), raw.indexOf('\n\n')].filter((at) => at >= 0);
  const body = end.length === 0 ? raw : raw.subarray(Math.min(...end));
  return createHash('sha256').update(body).digest().subarray(0, 16);
}

parentPort?.on('message', ({ id, raw }: ParseJob) => {
  const mail = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const result: ParseResult = { id, parsed: parseIncoming(mail), fingerprint: fingerprintOf(mail) };
  parentPort?.postMessage(result);
});
