import { isIP } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  DEFAULT_CIPHERS,
  rootCertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { LRUCache } from 'lru-cache';
import { TlsHandshakeError } from './errors.ts';
import type { DanePolicy, TlsRecord } from './protocol.ts';
import { TLSA_MISMATCH, type TlsRequirement } from './requirement.ts';
import { chainOf, matchesServer, trustAnchors } from './tlsa.ts';
import type { Wire } from './wire.ts';

/**
 * STARTTLS (RFC 3207) by TLS mode, and verification of certificates by authorities or TLSA records. Connections share
 * secure contexts, because loading the root certificates takes milliseconds, and TLS sessions are cached, because
 * resuming one saves both sides the expensive part of the handshake.
 */
export interface Encryption {
  /**
   * Encrypts a wire whose server has just accepted STARTTLS. Throws `TlsHandshakeError` if that fails or the
   * certificate is not what is required, and `TrustAnchorFound`, after which a new connection succeeds.
   */
  begin(wire: Wire, hostname: string, port: number, requirement: TlsRequirement): Promise<Encrypted>;
}

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

/** `authorities`: PEM certificates to trust in addition to the built-in ones. */
export function createEncryption(authorities: readonly string[] = []): Encryption {
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

  return {
    begin: async (wire, hostname, port, requirement) => {
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
      socket.on('session', (session: Buffer) =>
        sessions.set(key, { session, verification, certificateFault }),
      );
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
    },
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
