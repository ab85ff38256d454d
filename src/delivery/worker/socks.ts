import type { Socket } from 'node:net';
import { SocksClient } from 'socks';
import type { SmtpPhase } from '../../mail/reply.ts';
import { EgressError, SmtpSessionError } from './errors.ts';
import type { JobProxy } from './protocol.ts';

/**
 * Replies of a proxy that works about a destination that it cannot reach (RFC 1928 §6), by the names that the library
 * gives them. The other codes are the proxy's own failures.
 */
const DESTINATION_FAILURES: Readonly<Record<string, string>> = {
  NetworkUnreachable: 'network unreachable',
  HostUnreachable: 'no route to the host, or no answer',
  ConnectionRefused: 'connection refused',
  TTLExpired: 'connection timed out',
};

const OWN_FAILURES: Readonly<Record<string, string>> = {
  Failure: 'general failure',
  NotAllowed: 'its rules do not allow the connection',
  CommandNotSupported: 'it does not support CONNECT',
  AddressNotSupported: 'it does not support this kind of address',
};

const USERNAME_PASSWORD = 2;

export type Tunnel = ReturnType<typeof createTunnel>;

/**
 * A connection through a SOCKS5 proxy (RFC 1928, RFC 1929) to an IP address: names are resolved by this side, never by the
 * proxy. A failure of the proxy is a fault of this side (`EgressError`), and states nothing about the destination. Opens no
 * socket and looks nothing up: `proxy.host` is an address, and `open` gets the connected socket.
 */
export function createTunnel(proxy: JobProxy) {
  /** Bytes of the negotiation that the proxy has sent, of those that precede its reply to CONNECT. */
  let received = 0;
  let negotiation = 2;
  let isOpen = false;
  const name = `proxy ${proxy.host.includes(':') ? `[${proxy.host}]` : proxy.host}:${proxy.port}`;

  /** Observes the reply to the greeting: the authentication adds two bytes (RFC 1929 §2). */
  const observe = (chunk: Buffer) => {
    if (received < 2 && chunk[1 - received] === USERNAME_PASSWORD) negotiation = 4;
    received += chunk.length;
  };

  return {
    /**
     * Asks the proxy, to which `socket` is connected, to connect to the destination. Resolves with the address from which
     * the proxy does; null: it does not state one. Rejects with what `rejection` describes, and destroys the socket.
     */
    open: async (
      socket: Socket,
      { host, port }: { host: string; port: number },
      timeoutMs: number,
    ): Promise<string | null> => {
      socket.on('data', observe);
      try {
        const { remoteHost } = await SocksClient.createConnection({
          proxy: {
            host: proxy.host,
            port: proxy.port,
            type: 5,
            ...(proxy.user === undefined ? {} : { userId: proxy.user, password: proxy.password ?? '' }),
          },
          command: 'connect',
          destination: { host, port },
          timeout: timeoutMs,
          existing_socket: socket,
        });
        isOpen = true;
        const bound = remoteHost?.host ?? '';
        return ['', '0.0.0.0', '::'].includes(bound) ? null : bound;
      } finally {
        socket.off('data', observe);
      }
    },
    /** The session's error when the socket fails or a timeout expires. Null: the tunnel is open, and it is the server's. */
    failure: (phase: SmtpPhase, text: string): SmtpSessionError | null => {
      if (isOpen) return null;
      // The proxy has the request: now it waits for the destination.
      return received >= negotiation
        ? new SmtpSessionError(phase, `${text} (through ${name})`)
        : new EgressError(phase, `${name}: ${text}`);
    },
    /** The session's error when `open` rejects. */
    rejection: (phase: SmtpPhase, { message }: Error): SmtpSessionError => {
      const code = /rejected connection - (\w+)$/.exec(message)?.[1] ?? '';
      const ofDestination = DESTINATION_FAILURES[code];
      if (ofDestination !== undefined)
        return new SmtpSessionError(phase, `${ofDestination} (reported by ${name})`);
      const reason = message.includes('Authentication failed')
        ? 'it rejected the user or password'
        : (OWN_FAILURES[code] ?? message);
      return new EgressError(phase, `${name}: ${reason}`);
    },
  };
}
