import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { type ParsedIncoming, parseIncoming } from '../../mail/incoming/parse.ts';
import { type AuthenticatedAuthor, readSignatures } from '../../mail/incoming/signatures.ts';
import type { PublicKeys } from '../../mail/incoming/verify-signatures.ts';
import { readSubmitted, type Submitted } from '../submission/submitted-mail.ts';

/**
 * The thread that parses mail from untrusted senders. It has no access to anything but the mail it is given,
 * and can be terminated at any time.
 */
export interface Readings {
  /** Mail that comes in from other servers. */
  incoming: ReadIncoming;
  /** Who signed a mail, null when no aligned signature verifies. */
  signatures: AuthenticatedAuthor | null;
  /** Mail that a customer's program hands in. */
  submission: Submitted;
}

export interface ReadIncoming {
  parsed: ParsedIncoming;
  /** 16 bytes, the same for one mail sent twice: trace fields are no part of it. */
  fingerprint: Uint8Array;
  /** Names of the keys that would tell who signed it; empty for mail whose sender does not matter. */
  keyNames: string[];
}

interface JobFields {
  incoming: { opensReports: boolean };
  signatures: {
    keys: PublicKeys;
    /** Epoch ms. */
    at: number;
  };
  submission: object;
}

/** Answered by the reading of its purpose; jobs are answered in order. */
export type ParseJob = {
  [Purpose in keyof Readings]: { purpose: Purpose; raw: Uint8Array } & JobFields[Purpose];
}[keyof Readings];

async function answer(job: ParseJob): Promise<Readings[keyof Readings]> {
  const mail = Buffer.from(job.raw.buffer, job.raw.byteOffset, job.raw.byteLength);
  if (job.purpose === 'incoming') return readIncoming(mail, job.opensReports);
  if (job.purpose === 'submission') return readSubmitted(mail);
  // Loaded by the first mail that needs it: it is most of this thread's memory.
  const { verifySignatures } = await import('../../mail/incoming/verify-signatures.ts');
  return verifySignatures(mail, job.keys, job.at);
}

/** What these say is believed the more when it is known who says it. */
const SIGNED_KINDS: ReadonlySet<ParsedIncoming['kind']> = new Set(['arf', 'dmarc-report', 'tls-report']);

function readIncoming(mail: Buffer, opensReports: boolean): ReadIncoming {
  const parsed = parseIncoming(mail, { opensReports });
  const keyNames = SIGNED_KINDS.has(parsed.kind) ? (readSignatures(mail)?.keyNames ?? []) : [];
  return { parsed, fingerprint: fingerprintOf(mail), keyNames };
}

/** Of the body alone: header fields are added on the way, the body stays as it is. */
function fingerprintOf(mail: Buffer): Uint8Array {
  const ends = [mail.indexOf('\r\n\r\n'), mail.indexOf('\n\n')].filter((at) => at >= 0);
  const body = ends.length === 0 ? mail : mail.subarray(Math.min(...ends));
  return createHash('sha256').update(body).digest().subarray(0, 16);
}

let last: Promise<void> = Promise.resolve();
parentPort?.on('message', (job: ParseJob) => {
  // Verification is asynchronous: the next job waits, so that answers keep the order of the jobs. A rejection is
  // thrown in this thread, as a failed parse is.
  last = last.then(async () => parentPort?.postMessage(await answer(job)));
});
