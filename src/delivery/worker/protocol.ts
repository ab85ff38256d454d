import type { KeyObject } from 'node:crypto';
import type { CopyDetails } from '../../mail/content.ts';
import type { SmtpPhase, SmtpReply } from '../../mail/reply.ts';
import type { CopyIdentity } from '../../mail/shared-content.ts';
import type { EncodedContent } from '../../mail/stored-content.ts';

/**
 * What the main thread and a delivery worker say to each other. The main thread decides who gets what and
 * when (queue, sites, slots); the worker composes, signs and speaks SMTP, and knows nothing of the database.
 */

/** A host to try, its addresses already resolved and allowed (private-network guard), in the order to try. */
export interface TargetHost {
  name: string;
  addresses: string[];
}

/**
 * none: never STARTTLS. opportunistic: when offered, certificate not verified, plain text after a failed
 * handshake. required: encrypted or not at all, certificate not verified. verified: required, and the
 * certificate must be valid for the host's name.
 */
export type TlsMode = 'none' | 'opportunistic' | 'required' | 'verified';

export interface Signer {
  /** `d=` */
  domain: string;
  /** `s=` */
  selector: string;
  /** RSA private key; a KeyObject crosses threads without being copied or parsed again. */
  key: KeyObject;
}

/** What a content has in common with those of other jobs: every worker decodes it once, and keeps it by its id. */
export interface SharedReference extends EncodedContent<SharedArrayBuffer> {
  id: number;
  identity: CopyIdentity;
}

export interface DeliveryJob {
  id: number;
  /**
   * The connection slot this job holds while it runs. A slot belongs to one site and one worker; a worker
   * keeps at most one open connection for each slot, so a site's limit is the number of its slots.
   */
  slot: string;
  /**
   * `MessageContent` as it is stored. Its memory is transferred to the worker, which decodes it, and drops it once
   * the message is composed.
   */
  content: EncodedContent;
  /** Set: `content` is the copy's own part (OwnContent), and this is the rest. */
  shared?: SharedReference;
  copy: CopyDetails;
  /** Envelope: `to` is the one recipient. */
  envelope: { from: string; to: string };
  signers: Signer[];
  hosts: TargetHost[];
  port: number;
  tls: TlsMode;
  /**
   * SMTP AUTH at a fixed route. The password is sent only to a host whose certificate was verified, unless
   * `allowUnverified` is set; and never on an unencrypted connection off loopback.
   */
  auth?: { user: string; password: string; allowUnverified: boolean };
  egress: { hostname: string; address?: string; address6?: string };
  messagesPerConnection: number;
  idleMs: number;
}

export interface TlsRecord {
  protocol: string;
  cipher: string;
  verified: boolean;
  /** Which policy asked for it: `opportunistic`, `required`, `verified`. */
  policy: TlsMode;
}

/** One try at one address: a line of the message's timeline. */
export interface SessionRecord {
  host: string;
  address: string;
  port: number;
  localAddress: string | null;
  tls: TlsRecord | null;
  /** How far it came. */
  stage: SmtpPhase;
  /** The server's deciding reply; null when the connection failed without one, or this side refused. */
  reply: SmtpReply | null;
  /** Trouble in words: `connection refused`, `timed out after 60 s waiting for the greeting`. */
  error: string | null;
  startedAt: number;
  endedAt: number;
}

/**
 * replied: a server gave the deciding reply (2xx at `dot` = delivered; 4xx or 5xx at any stage). unreachable: no
 * host came to a verdict; `stage` is how far the most telling session came, `reply` the 421 with which its
 * server closed, if it did, and `sessions` says why. unanswered: the connection was lost after the final dot,
 * so the message may have been accepted. refused-locally: this side would not hand it over (needs SMTPUTF8,
 * exceeds SIZE, needs TLS); `reply` is ours and says why, 4xx where another try may help. not-composed: the
 * content cannot be made into a message, now or later; `reply` says why, and no host was contacted.
 */
export type Conclusion = 'replied' | 'unreachable' | 'unanswered' | 'refused-locally' | 'not-composed';

export interface AttemptReport {
  id: number;
  slot: string;
  conclusion: Conclusion;
  stage: SmtpPhase;
  reply: SmtpReply | null;
  /** In the order in which they were tried; the deciding one need not be the last. */
  sessions: SessionRecord[];
}

/** What a worker thread is started with, as its `workerData`. */
export interface WorkerSetup {
  /**
   * One 32-bit counter that outlives the thread: how many jobs it has begun, in the order in which they were
   * posted. After the death of a thread it separates the jobs that nobody has seen from those that may be sent.
   */
  begun: SharedArrayBuffer;
  /** Idle connections that the worker keeps open at most. */
  restingConnections: number;
}

/** stop: nothing new is begun; what runs may finish for `graceMs`, then it is cut off. */
export type ToWorker = { kind: 'jobs'; jobs: DeliveryJob[] } | { kind: 'stop'; graceMs: number };

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'reports'; reports: AttemptReport[] }
  /** A fault of this program in one job, with its stack, to be logged; the job's report comes all the same. */
  | { kind: 'fault'; id: number; error: string }
  /** The answer to stop; the thread ends by itself. Jobs without a report by now were offered to no host. */
  | { kind: 'stopped' };
