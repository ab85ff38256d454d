import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { callerBlock } from '../accounts/caller-addresses.ts';
import { parseListen } from '../config/schema.ts';

/**
 * A listening HTTP server and its connections: how many, how slow, and how they end. It answers nothing: what
 * a request means is its owner's business.
 */
export interface Listener {
  server: Server;
  /** Binds the address; rejects when it cannot be had. */
  listen(): Promise<void>;
  /** Where it listens, port 0 resolved; null before `listen` and after `close`. */
  address(): { host: string; port: number } | null;
  /** Takes no new connection and gives those in work `graceMs` to end before it cuts them off. */
  close(graceMs: number): Promise<void>;
}

/** Bounds on a connection, in ms. A caller that dribbles holds a socket and some bytes, never longer. */
export interface ConnectionLimits {
  headersMs: number;
  requestMs: number;
  keepAliveMs: number;
  /** How often the three are looked at. */
  checkMs: number;
  connections: number;
  headerBytes: number;
  /** Connections of one caller; those of `trusted` ones (this machine, proxies) are not counted. */
  ofOneCaller?: { connections: number; trusted(address: string): boolean };
}

/** The certificate for the host that a TLS client names; null: none. */
export type ContextFor = (host: string) => Promise<SecureContext | null>;

const MAX_HEADERS = 100;
/** More than a certificate takes that is obtained meanwhile. */
const HANDSHAKE_MS = 40_000;

/** `setting` names the address in a complaint. With `contextFor` it speaks HTTPS. */
export function createListener(
  at: string,
  setting: string,
  limits: ConnectionLimits,
  contextFor?: ContextFor,
): Listener {
  const options: ServerOptions = {
    maxHeaderSize: limits.headerBytes,
    // Whoever answers asks for it, and says so in its own form.
    requireHostHeader: false,
    noDelay: true,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkMs,
  };
  const tls = contextFor === undefined ? null : tlsServer(options, contextFor);
  const server = tls?.server ?? createServer(options);
  server.maxConnections = limits.connections;
  server.maxHeadersCount = MAX_HEADERS;
  if (limits.ofOneCaller !== undefined) limitCallers(server, limits.ofOneCaller);

  return {
    server,
    listen: () => listen(server, at, setting),
    address: () => {
      const address = server.address();
      return address === null || typeof address === 'string'
        ? null
        : { host: address.address, port: address.port };
    },
    close: (graceMs) => {
      const closed = close(server, graceMs);
      tls?.endHandshakes();
      return closed;
    },
  };
}

/** Clients that name no host get none: there is no certificate that would be right for them. */
function tlsServer(
  options: ServerOptions,
  contextFor: ContextFor,
): { server: Server; endHandshakes(): void } {
  // Until it speaks HTTP, the HTTP server does not know of a connection.
  const handshaking = new Map<string, Socket>();
  const nameOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  const tls = createTlsServer({
    ...options,
    handshakeTimeout: HANDSHAKE_MS,
    SNICallback: (host, answer) => {
      contextFor(host).then(
        (context) =>
          context === null ? answer(new Error(`no certificate for ${host}`)) : answer(null, context),
        (error: Error) => answer(error),
      );
    },
  });
  const server: Server = tls;
  server.on('connection', (socket) => {
    const name = nameOf(socket);
    handshaking.set(name, socket);
    socket.once('close', () => handshaking.delete(name));
  });
  tls.on('secureConnection', (socket) => handshaking.delete(nameOf(socket)));
  tls.on('tlsClientError', (_error, socket) => socket.destroy());
  return {
    server,
    endHandshakes: () => {
      for (const socket of handshaking.values()) socket.destroy();
    },
  };
}

function limitCallers(
  server: Server,
  { connections, trusted }: Required<ConnectionLimits>['ofOneCaller'],
): void {
  const open = new Map<string, number>();
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    if (trusted(address)) return;
    const caller = callerBlock(address);
    const count = (open.get(caller) ?? 0) + 1;
    if (count > connections) {
      socket.destroy();
      return;
    }
    open.set(caller, count);
    socket.once('close', () => {
      const left = (open.get(caller) ?? 1) - 1;
      if (left > 0) open.set(caller, left);
      else open.delete(caller);
    });
  });
}

function listen(server: Server, at: string, setting: string): Promise<void> {
  const address = parseListen(at);
  if (address === null) return Promise.reject(new Error(`${setting}: "${at}" is not an address`));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

function close(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    // The one error is that it was never open, and then it is closed.
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
