import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  DEFAULT_CIPHERS,
  type DetailedPeerCertificate,
  rootCertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { LRUCache } from 'lru-cache';
import { TlsHandshakeError } from './errors.ts';
import type {
  DanePolicy,
  DeliveryJob,
  HostPolicy,
  PolicyFault,
  TargetHost,
  TlsaAssociation,
  TlsFailureType,
  TlsMode,
  TlsRecord,
  TlsSource,
} from './protocol.ts';
import type { Wire } from './socket.ts';

export interface Encrypted {
  record: TlsRecord;
  /** Node's code of what is wrong with the certificate, '' when it was verified; modes that do not verify accept it. */
  certificateFault: string;
}

/**
 * The trust anchor of a host that publishes DANE-TA records is now known. OpenSSL verifies a chain only against anchors
 * that it has before the handshake, and a TLSA record usually has only a hash of the anchor.
 */
export class TrustAnchorFound extends Error {}

interface CachedSession {
  session: Buffer;
  /** How the certificate of the first session was verified, and its fault: a resumed session presents none. */
  verification: TlsRecord['verification'];
  certificateFault: string;
}

const MAX_CACHED_SESSIONS = 1000;
/** Hosts with DANE-TA records, some KiB each. */
const MAX_ANCHORED = 500;
/** RFC 8996: nothing older. */
const MIN_VERSION = 'TLSv1.2';
/**
 * Where plain text is the alternative (RFC 7435), TLS 1.0 is better. OpenSSL permits its signatures on level 0 only; a
 * server that knows a later version uses it nevertheless.
 */
const OPPORTUNISTIC = { minVersion: 'TLSv1', ciphers: `${DEFAULT_CIPHERS}:@SECLEVEL=0` } as const;

export type Encrypt = ReturnType<typeof createEncryption>;

/**
 * STARTTLS (RFC 3207) by TLS mode, and verification of certificates by authorities or TLSA records. Connections share
 * secure contexts, because loading the root certificates takes milliseconds, and TLS sessions are cached, because
 * resuming one saves both sides the expensive part of the handshake. `authorities`: PEM certificates to trust in addition
 * to the built-in ones.
 */
export function createEncryption(authorities: readonly string[] = []) {
  const sessions = new LRUCache<string, CachedSession>({ max: MAX_CACHED_SESSIONS });
  /** Contexts that trust only the anchors of a host's TLSA records, by requirement. */
  const anchored = new LRUCache<string, SecureContext>({ max: MAX_ANCHORED });
  const contexts = new Map<'opportunistic' | 'strict', SecureContext>();
  const sharedContext = (kind: 'opportunistic' | 'strict') => {
    const known = contexts.get(kind);
    if (known !== undefined) return known;
    const context = createSecureContext({
      ...(kind === 'opportunistic' ? OPPORTUNISTIC : { minVersion: MIN_VERSION }),
      ...(authorities.length > 0 ? { ca: [...rootCertificates, ...authorities] } : {}),
    });
    contexts.set(kind, context);
    return context;
  };

  /** Whether a TLSA record matches. Throws when none does, and when the anchors were not known. */
  function verifyByDane(socket: TLSSocket, { key }: TlsRequirement, policy: DanePolicy): void {
    const chain = chainOf(socket.getPeerCertificate(true));
    if (matchesServer(policy.records, chain)) return;
    if (anchored.has(key)) {
      if (socket.authorized) return;
      // Another anchor of the records may have issued this certificate.
      anchored.delete(key);
      throw mismatch(policy, String(socket.authorizationError));
    }
    const anchors = trustAnchors(policy.records, chain);
    if (anchors.length === 0) throw mismatch(policy, TLSA_MISMATCH);
    let anchoredContext: SecureContext;
    try {
      anchoredContext = createSecureContext({
        minVersion: MIN_VERSION,
        ca: anchors.map(pem),
        // An anchor need not be self-signed.
        allowPartialTrustChain: true,
      });
    } catch {
      // A record that claims to have a certificate has other bytes.
      throw mismatch(policy, TLSA_MISMATCH);
    }
    anchored.set(key, anchoredContext);
    throw new TrustAnchorFound();
  }

  /**
   * Encrypts a wire whose server has just accepted STARTTLS. Throws `TlsHandshakeError` if that fails or the
   * certificate is not what is required, and `TrustAnchorFound`, after which a new connection succeeds.
   */
  return async function encrypt(
    wire: Wire,
    hostname: string,
    port: number,
    requirement: TlsRequirement,
  ): Promise<Encrypted> {
    const { mode, source, dane } = requirement;
    const key = `${requirement.key} ${hostname} ${port}`;
    const earlier = sessions.get(key);
    // A session is offered once, so that a server that fails to resume it does not fail each time.
    sessions.delete(key);
    // RFC 7672 §8.1: the TLSA base domain.
    const name = dane?.base ?? hostname;
    const socket = await wire.encrypt({
      secureContext:
        (dane === null ? undefined : anchored.get(requirement.key)) ??
        sharedContext(mode === 'opportunistic' ? mode : 'strict'),
      host: name,
      // RFC 6066 §3: no literal addresses in server_name.
      ...(isIP(name) === 0 ? { servername: name } : {}),
      rejectUnauthorized: mode === 'verified' && dane === null,
      ...(dane === null ? {} : { checkServerIdentity: identityIn(dane.names) }),
      ...(earlier ? { session: earlier.session } : {}),
    });
    const isResumed = socket.isSessionReused() && earlier !== undefined;
    if (dane !== null && !isResumed) verifyByDane(socket, requirement, dane);
    const verification = isResumed ? earlier.verification : verificationOf(socket, dane !== null);
    const certificateFault = isResumed ? earlier.certificateFault : faultOf(socket, verification);
    socket.on('session', (session: Buffer) => sessions.set(key, { session, verification, certificateFault }));
    if (isResumed) sessions.set(key, earlier);
    return {
      record: {
        protocol: socket.getProtocol() ?? 'unknown',
        cipher: socket.getCipher().standardName,
        verified: verification !== 'none',
        policy: mode,
        requiredBy: source,
        verification,
      },
      certificateFault,
    };
  };
}

function verificationOf(socket: TLSSocket, byDane: boolean): TlsRecord['verification'] {
  if (byDane) return 'dane';
  return socket.authorized ? 'webpki' : 'none';
}

/** What is wrong with the certificate of a new session. Node does not check the name in a resumed one. */
function faultOf(socket: TLSSocket, verification: TlsRecord['verification']): string {
  return verification === 'none' ? String(socket.authorizationError ?? '') : '';
}

/** Accepts a certificate with one of the names (RFC 7672 §3.2.2). */
function identityIn(names: readonly string[]): NonNullable<ConnectionOptions['checkServerIdentity']> {
  return (_, certificate) => {
    const faults = names.map((name) => checkServerIdentity(name, certificate));
    return faults.includes(undefined) ? undefined : faults[0];
  };
}

function mismatch({ tlsaName }: DanePolicy, code: string): TlsHandshakeError {
  const detail = code === TLSA_MISMATCH ? '' : `: ${code}`;
  const text = `TLS handshake failed: the certificate does not match the TLSA records of ${tlsaName}${detail}`;
  return new TlsHandshakeError('starttls', text, code);
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

/**
 * What one job requires of TLS at one host: the configured mode, and what the recipient's side has published. DANE
 * precedes MTA-STS (RFC 8461 §2). A configured `none` turns TLS off, whatever was published. Pure.
 */
export interface TlsRequirement {
  mode: TlsMode;
  source: TlsSource;
  /** Null: nothing was published, or TLS is off. */
  policy: HostPolicy | null;
  /** Set when the certificate is verified by TLSA records instead of by authorities. */
  dane: DanePolicy | null;
  /** Equal for requirements that verify a host in the same way. */
  key: string;
}

/**
 * An MTA-STS policy in mode `testing` changes no requirement. A configured mode above `opportunistic` remains where all
 * TLSA records are unusable.
 */
export function requirementOf(job: Pick<DeliveryJob, 'tls' | 'tlsSource'>, host: TargetHost): TlsRequirement {
  const { policy } = host;
  const configured = { mode: job.tls, source: job.tlsSource, dane: null, key: job.tls };
  if (policy === undefined || job.tls === 'none') return { policy: null, ...configured };
  if (policy.kind === 'mta-sts') {
    const isEnforced = policy.mode === 'enforce';
    return isEnforced
      ? { mode: 'verified', source: 'mta-sts', policy, dane: null, key: 'verified' }
      : { policy, ...configured };
  }
  if (policy.records.length > 0)
    return { mode: 'verified', source: 'dane', policy, dane: policy, key: daneKey(policy) };
  // RFC 7672 §2.2: unusable records require encryption only.
  return job.tls === 'opportunistic'
    ? { mode: 'required', source: 'dane', policy, dane: null, key: 'required' }
    : { policy, ...configured };
}

function daneKey({ base, names, records }: DanePolicy): string {
  const associations = records.map(({ usage, selector, matchingType, data }) =>
    [usage, selector, matchingType, data].join(' '),
  );
  return `dane ${[base, ...names, ...associations.sort()].join(',')}`;
}

/** Why the host may not be used at all; null: it may. */
export function obstacleOf({ policy }: TlsRequirement): PolicyFault | null {
  if (policy?.fault === undefined) return null;
  return policy.kind === 'mta-sts' && policy.mode === 'testing' ? null : policy.fault;
}

/** For the end of an error text: ` (required by the MTA-STS policy of example.net)`; '' for configured modes. */
export function requiredByText({ source, policy }: TlsRequirement): string {
  if (source === 'dane' && policy?.kind === 'dane')
    return ` (required by the TLSA records of ${policy.tlsaName})`;
  if (source === 'mta-sts' && policy?.kind === 'mta-sts')
    return ` (required by the MTA-STS policy of ${policy.domain})`;
  return '';
}

/** A connection as far as TLS is concerned. */
interface OpenedConnection {
  tls: TlsRecord | null;
  requirement: Pick<TlsRequirement, 'mode' | 'key'>;
}

/**
 * Whether a connection that was opened for one message may carry another one. The site of a connection is shared by
 * domains with different policies, so that this is decided for each message.
 */
export function satisfies({ tls, requirement: opened }: OpenedConnection, needed: TlsRequirement): boolean {
  if (obstacleOf(needed) !== null) return false;
  if (needed.dane !== null) return tls?.verification === 'dane' && opened.key === needed.key;
  const isCurrent = tls !== null && !isOutdated(tls);
  if (needed.mode === 'verified') return isCurrent && tls.verification === 'webpki';
  if (needed.mode === 'required') return isCurrent;
  if (needed.mode === 'none') return opened.mode === 'none';
  // Plain text is sufficient only where TLS was tried.
  return opened.mode !== 'none';
}

/** Whether the version is one that only opportunistic connections accept (RFC 8996). */
export function isOutdated({ protocol }: Pick<TlsRecord, 'protocol'>): boolean {
  return protocol === 'TLSv1' || protocol === 'TLSv1.1';
}

const EXPIRED = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);
const UNTRUSTED = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** The result type (RFC 8460 §4.3) of a failed handshake, by Node's error code. */
export function failureTypeOf(code: string): TlsFailureType {
  if (EXPIRED.has(code)) return 'certificate-expired';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'certificate-host-mismatch';
  if (code === TLSA_MISMATCH) return 'tlsa-invalid';
  return UNTRUSTED.has(code) ? 'certificate-not-trusted' : 'validation-failure';
}

/** Our code for a certificate that no TLSA record matches. */
export const TLSA_MISMATCH = 'TLSA_MISMATCH';

/**
 * Compares certificates with TLSA records (RFC 6698 §2.1, RFC 7671). Certificates are DER; the chain of a server begins
 * with its own certificate.
 */

/** Whether a DANE-EE record matches the server's own certificate. Names and dates do not count (RFC 7671 §5.1). */
export function matchesServer(records: readonly TlsaAssociation[], chain: readonly Buffer[]): boolean {
  const [own] = chain;
  return own !== undefined && records.some((record) => record.usage === 3 && matches(record, own));
}

/**
 * The trust anchors of DANE-TA records: issuing certificates of the chain that a record matches, and certificates that
 * are in a record themselves. The server must send its anchor unless the record has the whole of it (RFC 7671 §5.2).
 */
export function trustAnchors(records: readonly TlsaAssociation[], chain: readonly Buffer[]): Buffer[] {
  const anchors = records.filter(({ usage }) => usage === 2);
  const published = anchors
    .filter(({ selector, matchingType }) => selector === 0 && matchingType === 0)
    .map(({ data }) => Buffer.from(data, 'hex'));
  const sent = chain.slice(1).filter((certificate) => anchors.some((record) => matches(record, certificate)));
  return [...sent, ...published.filter((certificate) => !sent.some((other) => other.equals(certificate)))];
}

/** The certificates that a server sent, its own first. */
export function chainOf(peer: DetailedPeerCertificate | undefined): Buffer[] {
  const chain: Buffer[] = [];
  const seen = new Set<DetailedPeerCertificate>();
  // The object of a session without a certificate is empty; a self-signed certificate is its own issuer.
  for (let each = peer; each?.raw !== undefined && !seen.has(each); each = each.issuerCertificate) {
    seen.add(each);
    chain.push(each.raw);
  }
  return chain;
}

function matches({ selector, matchingType, data }: TlsaAssociation, certificate: Buffer): boolean {
  const selected = selector === 0 ? certificate : publicKeyInfoOf(certificate);
  if (selected === null) return false;
  const expected = Buffer.from(data, 'hex');
  const actual =
    matchingType === 0
      ? selected
      : createHash(matchingType === 1 ? 'sha256' : 'sha512')
          .update(selected)
          .digest();
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

const SEQUENCE = 0x30;
/** `[0] EXPLICIT`: the version of a certificate, which is optional. */
const VERSION = 0xa0;
/** serialNumber, signature, issuer, validity and subject precede the key (RFC 5280 §4.1). */
const FIELDS_BEFORE_KEY = 5;

/**
 * The bytes of a certificate's SubjectPublicKeyInfo; null when it is no certificate. They are cut out of the certificate,
 * because encoding the key again may result in other bytes.
 */
export function publicKeyInfoOf(certificate: Buffer): Buffer | null {
  const outer = elementAt(certificate, 0);
  const body = outer?.tag === SEQUENCE ? elementAt(certificate, outer.start) : null;
  if (body?.tag !== SEQUENCE) return null;
  let at = body.start;
  for (let left = FIELDS_BEFORE_KEY; ; left--) {
    const element = at < body.end ? elementAt(certificate, at) : null;
    if (element === null) return null;
    if (left === FIELDS_BEFORE_KEY && element.tag === VERSION) left++;
    if (left === 0) return element.tag === SEQUENCE ? certificate.subarray(at, element.end) : null;
    at = element.end;
  }
}

/** One DER element (X.690 §8.1): its tag, and where its contents begin and end. Null when it is not complete. */
function elementAt(bytes: Buffer, at: number): { tag: number; start: number; end: number } | null {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) return null;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (lengthBytes > 4 || at + 2 + lengthBytes > bytes.length) return null;
  const length = lengthBytes === 0 ? first & 0x7f : bytes.readUIntBE(at + 2, lengthBytes);
  const start = at + 2 + lengthBytes;
  const end = start + length;
  return end > bytes.length ? null : { tag, start, end };
}
