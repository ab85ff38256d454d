import { createServer, type Server } from 'node:http';
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

const MAX_HEADERS = 100;

/** `setting` names the address in a complaint. */
export function createListener(at: string, setting: string, limits: ConnectionLimits): Listener {
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    // Whoever answers asks for it, and says so in its own form.
    requireHostHeader: false,
    noDelay: true,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkMs,
  });
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
    close: (graceMs) => close(server, graceMs),
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
