import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { callerBlock } from '../accounts/caller-addresses.ts';
import { parseListen } from '../config/schema.ts';
import { listenFault } from '../core/operator-fault.ts';
import { eventLoopTurns } from '../core/slices.ts';

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
  /** A connection on which bytes wait and none is taken for so long is closed. */
  writeStallMs: number;
  /** How many connections the caller at an address may have; Infinity: they are not counted. */
  ofOneCaller?(address: string): number;
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
  server.on('connection', eventLoopTurns.connected);
  if (limits.ofOneCaller !== undefined) limitCallers(server, limits.ofOneCaller);
  const stalls = closeStalled(server, tls === null ? 'connection' : 'secureConnection', limits);

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
      const closed = close(server, graceMs).finally(stalls.stop);
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

function limitCallers(server: Server, limitOf: Required<ConnectionLimits>['ofOneCaller']): void {
  const open = new Map<string, number>();
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    const limit = limitOf(address);
    if (limit === Number.POSITIVE_INFINITY) return;
    const caller = callerBlock(address);
    const count = (open.get(caller) ?? 0) + 1;
    if (count > limit) {
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

/** Closes connections whose other side takes nothing of what was written for it. */
function closeStalled(
  server: Server,
  event: 'connection' | 'secureConnection',
  { checkMs, writeStallMs }: ConnectionLimits,
): { stop(): void } {
  /** Bytes that the system has taken, and when that number last changed. */
  const progress = new Map<Socket, { taken: number; since: number }>();
  server.on(event, (socket: Socket) => {
    progress.set(socket, { taken: 0, since: performance.now() });
    socket.once('close', () => progress.delete(socket));
  });
  const timer = setInterval(() => {
    const now = performance.now();
    for (const [socket, last] of progress) {
      const taken = socket.bytesWritten - socket.writableLength;
      if (socket.writableLength === 0 || taken !== last.taken) {
        last.taken = taken;
        last.since = now;
      } else if (now - last.since >= writeStallMs) socket.destroy();
    }
  }, checkMs).unref();
  return { stop: () => clearInterval(timer) };
}

function listen(server: Server, at: string, setting: string): Promise<void> {
  const address = parseListen(at);
  if (address === null) return Promise.reject(new Error(`${setting}: "${at}" is not an address`));
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(listenFault(setting, address, error));
    server.once('error', onError);
    server.listen(address.port, address.host, () => {
      server.removeListener('error', onError);
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
