import type {
  DanePolicy,
  DeliveryJob,
  HostPolicy,
  PolicyFault,
  TargetHost,
  TlsFailureType,
  TlsMode,
  TlsRecord,
  TlsSource,
} from './protocol.ts';

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
