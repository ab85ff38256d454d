import { isIP } from 'node:net';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import type { TlsMode, TlsRecord } from './protocol.ts';
import type { Wire } from './wire.ts';

/**
 * STARTTLS (RFC 3207) by TLS mode. All connections share one secure context, because loading the root certificates takes
 * milliseconds, and TLS sessions are cached, because resuming one saves both sides the expensive part of the handshake.
 */
export interface Encryption {
  /** Encrypts a wire whose server has just accepted STARTTLS. Throws `TlsHandshakeError`. */
  begin(wire: Wire, hostname: string, port: number, mode: TlsMode): Promise<TlsRecord>;
}

interface CachedSession {
  session: Buffer;
  /** Whether the certificate of the first session was verified: a resumed session presents none. */
  verified: boolean;
}

const MAX_CACHED_SESSIONS = 1000;

/** `authorities`: PEM certificates to trust in addition to the built-in ones. */
export function createEncryption(authorities: readonly string[] = []): Encryption {
  const sessions = new LRUCache<string, CachedSession>({ max: MAX_CACHED_SESSIONS });
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
      const earlier = sessions.get(key);
      // A session is offered once, so that a server that fails to resume it does not fail each time.
      sessions.delete(key);
      const socket = await wire.encrypt({
        secureContext: sharedContext(),
        host: hostname,
        // RFC 6066 §3: no literal addresses in server_name.
        ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
        rejectUnauthorized: mode === 'verified',
        ...(earlier ? { session: earlier.session } : {}),
      });
      const verified = socket.isSessionReused() ? (earlier?.verified ?? false) : socket.authorized;
      socket.on('session', (session: Buffer) => sessions.set(key, { session, verified }));
      if (socket.isSessionReused() && earlier) sessions.set(key, earlier);
      return {
        protocol: socket.getProtocol() ?? 'unknown',
        cipher: socket.getCipher().standardName,
        verified,
        policy: mode,
      };
    },
  };
}
