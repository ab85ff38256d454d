import { isIP } from 'node:net';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import type { TlsMode, TlsRecord } from './protocol.ts';
import type { Wire } from './wire.ts';

/**
 * STARTTLS (RFC 3207) as each mode wants it. One secure context for all connections, since loading the root
 * certificates costs milliseconds, and a small memory of TLS sessions, since resuming one saves both ends the
 * dear part of the handshake.
 */
export interface Encryption {
  /** Encrypts a wire whose server has just said yes to STARTTLS. Throws `HandshakeTrouble`. */
  begin(wire: Wire, hostname: string, port: number, mode: TlsMode): Promise<TlsRecord>;
}

interface KnownSession {
  session: Buffer;
  /** A resumed session shows no certificate: what the first one proved is remembered with it. */
  verified: boolean;
}

const KNOWN_SESSIONS = 1000;

/** `authorities`: PEM certificates trusted beside the built-in ones. */
export function createEncryption(authorities: readonly string[] = []): Encryption {
  const known = new LRUCache<string, KnownSession>({ max: KNOWN_SESSIONS });
  let context: SecureContext | null = null;
  const sharedContext = () => {
    // RFC 8996: nothing older than TLS 1.2.
    context ??= createSecureContext({
      minVersion: 'TLSv1.2',
      ...(authorities.length > 0 ? { ca: [...rootCertificates, ...authorities] } : {}),
    });
    return context;
  };
  return {
    begin: async (wire, hostname, port, mode) => {
      const key = `${mode} ${hostname} ${port}`;
      const earlier = known.get(key);
      // A session is offered once; a server that refuses to go on with it must not refuse for ever.
      known.delete(key);
      const socket = await wire.encrypt({
        secureContext: sharedContext(),
        host: hostname,
        // RFC 6066 §3: no literal addresses in server_name.
        ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
        rejectUnauthorized: mode === 'verified',
        ...(earlier ? { session: earlier.session } : {}),
      });
      const verified = socket.isSessionReused() ? (earlier?.verified ?? false) : socket.authorized;
      socket.on('session', (session: Buffer) => known.set(key, { session, verified }));
      if (socket.isSessionReused() && earlier) known.set(key, earlier);
      return {
        protocol: socket.getProtocol() ?? 'unknown',
        cipher: socket.getCipher().standardName,
        verified,
        policy: mode,
      };
    },
  };
}
