import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import type { ReplyRule } from '../../config/reply-rules.ts';
import { LOW_PRIORITY, lowerPriority } from '../../core/thread-priority.ts';
import type { AttachmentFile, ParsedInbound } from '../../inbound/parse-mail.ts';
import { createRuleClassifier } from '../../mail/classify/classifier.ts';
import { type ParsedIncoming, parseIncoming } from '../../mail/incoming/parse.ts';
import { type AuthenticatedAuthor, type PublicKeys, readSignatures } from '../../mail/incoming/signatures.ts';
import type { VerifiedSignatures } from '../../mail/incoming/verify-authentication.ts';
import { parseSubmitted, type Submitted } from '../submission/submitted-mail.ts';

/**
 * The results of the thread that parses mail from untrusted senders, by purpose. The thread has access only to the mails
 * that it receives, and may be terminated at any time.
 */
export interface ParseResults {
  /** Mail from other servers. */
  incoming: IncomingResult;
  /** The verified signer of a mail, null when no aligned signature verifies. */
  signatures: AuthenticatedAuthor | null;
  /** Mail that a customer's program submits. */
  submission: Submitted;
  /** Mail for an account. */
  inbound: ParsedInbound | { unreadable: 'failed' };
  /** An attachment of a mail for an account; null: it has no such attachment. */
  attachment: AttachmentFile | null;
  /** All signatures of a mail for an account. */
  authentication: VerifiedSignatures;
}

export interface IncomingResult {
  parsed: ParsedIncoming;
  /** 16 bytes, the same for a mail that is sent twice: trace fields are not part of it. */
  fingerprint: Uint8Array;
  /** Names of the DNS records with the keys of its signatures; empty for mail whose signer has no effect. */
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
  /** `hostname`: of this server. */
  inbound: { hostname: string };
  /** From 0. */
  attachment: { position: number };
  authentication: {
    keys: PublicKeys;
    /** Names of keys that could not be looked up. */
    failed: readonly string[];
    /** Epoch ms. */
    at: number;
  };
}

/** Replaces the rules of the operator for the replies in later jobs. Has no answer. */
export interface RulesMessage {
  rules: readonly ReplyRule[];
}

/** Asks whether the thread has loaded its modules. It answers with the same message. */
export interface StartedMessage {
  ready: true;
}

/** A job; the thread returns the result of its purpose, in the order of the jobs. */
export type ParseJob = {
  [Purpose in keyof ParseResults]: { purpose: Purpose; raw: Uint8Array } & JobFields[Purpose];
}[keyof ParseResults];

const replies: RulesMessage = { rules: [] };
const byRules = createRuleClassifier(replies);

async function answer(job: ParseJob): Promise<ParseResults[keyof ParseResults]> {
  const mail = Buffer.from(job.raw.buffer, job.raw.byteOffset, job.raw.byteLength);
  if (job.purpose === 'incoming') return readIncoming(mail, job.opensReports);
  if (job.purpose === 'submission') return parseSubmitted(mail);
  if (job.purpose === 'inbound')
    return (await import('../../inbound/parse-mail.ts')).parseInbound(mail, job.hostname);
  if (job.purpose === 'attachment')
    return (await import('../../inbound/parse-mail.ts')).attachmentOf(mail, job.position);
  if (job.purpose === 'authentication')
    return (await import('../../mail/incoming/verify-authentication.ts')).verifyAuthentication(mail, job);
  // Loaded for the first mail that needs it: it takes most of this thread's memory.
  const { verifySignatures } = await import('../../mail/incoming/verify-signatures.ts');
  return verifySignatures(mail, job.keys, job.at);
}

/** The kinds whose effects depend on the signer. */
const SIGNED_KINDS: ReadonlySet<ParsedIncoming['kind']> = new Set(['arf', 'dmarc-report', 'tls-report']);

function readIncoming(mail: Buffer, opensReports: boolean): IncomingResult {
  const parsed = parseIncoming(mail, { opensReports, byRules });
  const keyNames = SIGNED_KINDS.has(parsed.kind) ? (readSignatures(mail)?.keyNames ?? []) : [];
  return { parsed, fingerprint: fingerprintOf(mail), keyNames };
}

/** Hash of the body only: servers add header fields and do not change the body. */
function fingerprintOf(mail: Buffer): Uint8Array {
  const ends = [mail.indexOf('\r\n\r\n'), mail.indexOf('\n\n')].filter((at) => at >= 0);
  const body = ends.length === 0 ? mail : mail.subarray(Math.min(...ends));
  return createHash('sha256').update(body).digest().subarray(0, 16);
}

lowerPriority(LOW_PRIORITY);
let last: Promise<void> = Promise.resolve();
parentPort?.on('message', (job: ParseJob | RulesMessage | StartedMessage) => {
  if ('ready' in job) {
    parentPort?.postMessage(job);
    return;
  }
  if ('rules' in job) {
    replies.rules = job.rules;
    return;
  }
  // Verification is asynchronous: the next job waits, so that results keep the order of the jobs. A rejection ends the
  // thread, as an exception while parsing does.
  last = last.then(async () => parentPort?.postMessage(await answer(job)));
});
