import type { CopyDetails } from '../../mail/content.ts';
import type { DkimSigner } from '../../mail/dkim.ts';
import type { SmtpPhase, SmtpReply } from '../../mail/reply.ts';
import type { CopyIdentity } from '../../mail/shared-content.ts';
import type { EncodedContent, JobContent } from '../../mail/stored-content.ts';

/**
 * The messages between the main thread and a delivery worker. The main thread decides which message is sent when
 * (queue, sites, slots); the worker composes, signs and delivers over SMTP, without access to the database.
 */

/** A host to try, with its addresses in the order to try; they are resolved and admitted by the guard. */
export interface TargetHost {
  name: string;
  addresses: string[];
  /** What the recipient's side has published about TLS; absent: nothing that applies to this host. */
  policy?: HostPolicy;
}

/**
 * none: never STARTTLS. opportunistic: when offered, certificate not verified, plain text after a failed
 * handshake. required: encrypted or not at all, certificate not verified. verified: required, and the
 * certificate must be valid for the host's name.
 */
export type TlsMode = 'none' | 'opportunistic' | 'required' | 'verified';

/** Who requires the TLS mode of a session. */
export type TlsSource = 'default' | 'profile' | 'route' | 'mta-sts' | 'dane';

/** A published policy, as far as it concerns one host. */
export type HostPolicy = DanePolicy | StsHostPolicy;

/** TLSA records of a host whose DNS data is signed (RFC 7672). */
export interface DanePolicy {
  kind: 'dane';
  /** The TLSA base domain: the name in SNI. */
  base: string;
  /** `_25._tcp.mx.example.net` */
  tlsaName: string;
  /** Names that a certificate issued by a trust anchor may have (RFC 7672 §3.2.2). */
  names: string[];
  /** The usable records; none: the session is encrypted and the certificate not verified (RFC 7672 §2.2). */
  records: TlsaAssociation[];
  /** Why no mail may be sent to this host. */
  fault?: PolicyFault;
}

/** The usable combinations of RFC 7672 §3.1. `data`: hex. */
export interface TlsaAssociation {
  /** 2: trust anchor (DANE-TA); 3: the server's own certificate (DANE-EE). */
  usage: 2 | 3;
  /** 0: the certificate; 1: its public key. */
  selector: 0 | 1;
  /** 0: the bytes themselves; 1: their SHA-256; 2: SHA-512. */
  matchingType: 0 | 1 | 2;
  data: string;
}

/** The MTA-STS policy of the recipient domain (RFC 8461). `fault`: the host is not in it; only reported in mode testing. */
export interface StsHostPolicy {
  kind: 'mta-sts';
  domain: string;
  mode: 'enforce' | 'testing';
  fault?: PolicyFault;
}

export interface PolicyFault {
  type: TlsFailureType;
  text: string;
}

/** RFC 8460 §4.3. */
export type TlsFailureType =
  | 'starttls-not-supported'
  | 'certificate-host-mismatch'
  | 'certificate-expired'
  | 'certificate-not-trusted'
  | 'validation-failure'
  | 'tlsa-invalid'
  | 'dnssec-invalid'
  | 'sts-policy-fetch-error'
  | 'sts-policy-invalid'
  | 'sts-webpki-invalid';

/** The part of a content that is the same in other jobs: each worker decodes it once and caches it by its id. */
export interface SharedReference extends EncodedContent<SharedArrayBuffer> {
  id: number;
  identity: CopyIdentity;
}

/** The source address of a job. With `proxy`, the addresses are those from which the proxy connects. */
export interface JobEgress {
  hostname: string;
  address?: string | undefined;
  address6?: string | undefined;
  proxy?: JobProxy | undefined;
}

/** A SOCKS5 proxy (RFC 1928); `user` and `password`: RFC 1929. */
export interface JobProxy {
  /** An IP address. */
  host: string;
  port: number;
  user?: string;
  password?: string;
}

/** Where an attempt is made, and over which connection. */
export interface Destination {
  /**
   * The connection slot that the attempt holds while it runs. A slot belongs to one site and one worker; a worker has at
   * most one open connection for each slot, so the number of slots of a site limits its connections.
   */
  slot: string;
  hosts: TargetHost[];
  port: number;
  /** The configured mode; the policy of a host may require more. */
  tls: TlsMode;
  tlsSource: TlsSource;
  /** Whether the message may be sent with BDAT (RFC 3030). */
  chunking: boolean;
  /**
   * SMTP AUTH at a fixed route. The password is sent only to a host whose certificate was verified, unless
   * `allowUnverified` is set; on an unencrypted connection only over loopback.
   */
  auth?: { user: string; password: string; allowUnverified: boolean } | undefined;
  egress: JobEgress;
  messagesPerConnection: number;
  idleMs: number;
}

/** What jobs that share a connection have in common, in addition to TLS. */
export type ConnectionTerms = Pick<Destination, 'port' | 'auth' | 'egress' | 'chunking'>;

export interface DeliveryJob extends Destination {
  id: number;
  /**
   * `MessageContent`: as it is stored, its memory transferred to the worker, or as JSON. The worker drops it once the message
   * is composed.
   */
  content: JobContent;
  /** If set, `content` is only what belongs to this message (`OwnContent`, `TemplatedContent`), and this is the rest. */
  shared?: SharedReference;
  copy: CopyDetails;
  /** `to` is the only recipient. */
  envelope: { from: string; to: string };
  signers: DkimSigner[];
}

export interface TlsRecord {
  protocol: string;
  cipher: string;
  /** Whether the server's certificate was verified, in either way. */
  verified: boolean;
  /** The TLS mode that applied, and who required it. */
  policy: TlsMode;
  requiredBy: TlsSource;
  /** webpki: a trusted authority vouches for the host's name; dane: a TLSA record matches. */
  verification: 'none' | 'webpki' | 'dane';
}

/** What a new session adds to the report for the recipient's side (RFC 8460). */
export interface TlsResult {
  /** Null: a success. */
  failure: TlsFailureType | null;
  /** Reason of a failure; empty for a success. */
  reason: string;
}

/** One session with one address: a line of the message's timeline. */
export interface SessionRecord {
  host: string;
  address: string;
  port: number;
  localAddress: string | null;
  tls: TlsRecord | null;
  /** The last phase that was reached. */
  phase: SmtpPhase;
  /** The server's deciding reply; null when the connection failed without one, or this side refused. */
  reply: SmtpReply | null;
  /** `connection refused`, `timed out after 60 s waiting for the greeting`. */
  error: string | null;
  startedAt: number;
  endedAt: number;
  /** Set when TLS was negotiated, refused or required in this session; not on a connection that was open already. */
  tlsResult?: TlsResult;
}

/**
 * replied: a server gave the deciding reply (2xx at `dot`: delivered; 4xx or 5xx in any phase). unreachable: no host
 * gave a deciding reply; `phase` is that of the most significant session, `reply` the 421 with which its server closed,
 * if it did, and `sessions` has the errors. unanswered: the connection was lost after the final dot, so the message may
 * have been accepted. refused-locally: this side did not offer the message (it needs SMTPUTF8, exceeds SIZE, needs TLS);
 * `reply` is this side's and has the reason, 4xx where another attempt may help. not-composed: no message can be
 * composed of the content, now or later; `reply` has the reason, and no host was contacted. egress-failed: the source
 * address cannot be used (its proxy does not work, or no interface has it); the last session has the error.
 */
export type Conclusion =
  | 'replied'
  | 'unreachable'
  | 'unanswered'
  | 'refused-locally'
  | 'not-composed'
  | 'egress-failed';

export interface AttemptReport {
  id: number;
  conclusion: Conclusion;
  phase: SmtpPhase;
  reply: SmtpReply | null;
  /** In order; the deciding one is not always the last. */
  sessions: SessionRecord[];
}

/** Number of classes of jobs. */
export const JOB_CLASSES = 2;

/** The class of a job: a worker begins waiting jobs of class 1 (marketing) after all jobs of class 0. */
export function jobClassOf({ copy }: Pick<DeliveryJob, 'copy'>): 0 | 1 {
  return copy.kind === 'marketing' ? 1 : 0;
}

/** The `workerData` of a worker thread. */
export interface WorkerSetup {
  /**
   * Two 32-bit counters that outlive the thread: how many jobs of each class (`jobClassOf`) it has begun. Jobs of a class
   * begin in the order in which they were posted. When a thread dies, the counters separate the jobs that were not begun
   * from those that may have been sent.
   */
  begun: SharedArrayBuffer;
  /** PEM certificates of authorities to trust in addition to the built-in ones. */
  authorities: string[];
  /** Maximum number of idle connections of the worker. */
  idleConnections: number;
}

/** stop: no further job begins; running ones are aborted after `graceMs`. */
export type ToWorker = { kind: 'jobs'; jobs: DeliveryJob[] } | { kind: 'stop'; graceMs: number };

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'reports'; reports: AttemptReport[] }
  /** An internal error in one job, with its stack, for the log; the job is also reported. */
  | { kind: 'fault'; id: number; error: string }
  /** The reply to `stop`, after which the thread exits. Jobs without a report were offered to no host. */
  | { kind: 'stopped' };
