import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContext, TLSSocket } from 'node:tls';
import { parseListen } from '../config/setting-types.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';
import { listenFault } from '../core/operator-fault.ts';
import { type ConnectionCounts, createHttpConnections, type HttpConnections } from './connections.ts';
import { endSlowly, isLingering } from './unread-body.ts';

/** An HTTP server that listens on an address, with limits on its connections. The owner handles the requests. */
export interface HttpListener {
  server: Server;
  /** Binds the address; rejects when it is not available. */
  listen(): Promise<void>;
  /** The bound address, with port 0 resolved; null before `listen` and after `close`. */
  address(): { host: string; port: number } | null;
  /** Accepts no new connections, and closes those that have not ended after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Limits of connections; times in ms. */
export interface HttpConnectionLimits extends ConnectionCounts {
  headersMs: number;
  requestMs: number;
  keepAliveMs: number;
  /** Interval at which the three times above are checked. */
  checkMs: number;
  headerBytes: number;
  /** A connection is closed when the client reads none of the waiting bytes for this time. */
  writeStallMs: number;
}

/** Returns the certificate for the host that a TLS client names; null: none. */
export type ContextFor = (host: string) => Promise<SecureContext | null>;

/** Connections that wait to be accepted: with fewer, those of a flood take the places of others. */
const BACKLOG = 4096;
/** Header fields of a request. */
export const MAX_HEADER_FIELDS = 100;
/** Longer than obtaining a certificate during the handshake takes. */
const HANDSHAKE_TIMEOUT_MS = 40_000;

/**
 * Responds 400 without a body where Node reports that no request arrived. A connection on which nothing arrived is closed
 * without a response: browsers open connections ahead, and would take it for the response to a request that they send at
 * that moment. For the event `clientError` of pages; the socket is a connection of their server.
 */
export function refuseInvalid(_error: Error, socket: Duplex): void {
  if (isLingering(socket)) return;
  if (!socket.writable || !('bytesRead' in socket) || socket.bytesRead === 0) socket.destroy();
  else endSlowly(socket, 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}

/** `setting` names the address in errors. With `contextFor` the server uses HTTPS. */
export function createListener(
  at: string,
  setting: string,
  limits: HttpConnectionLimits,
  contextFor?: ContextFor,
): HttpListener {
  const options: ServerOptions = {
    maxHeaderSize: limits.headerBytes,
    // The owner requires it, and responds in its own format.
    requireHostHeader: false,
    noDelay: true,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkMs,
  };
  const isSecure = contextFor !== undefined;
  const connections = createHttpConnections(limits, isSecure);
  const server =
    contextFor === undefined ? createServer(options) : tlsServer(options, contextFor, connections);
  // Node drops further fields silently: one more shows that there are too many.
  server.maxHeadersCount = MAX_HEADER_FIELDS + 1;
  server.on('connection', eventLoopTurns.connected);
  const checkStalled = closeStalled(server, isSecure ? 'secureConnection' : 'connection', limits);
  connections.attach(server);
  const sweeps = setInterval(() => {
    checkStalled();
    connections.sweep();
  }, limits.checkMs).unref();

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
      const closed = closeServer(server, graceMs).finally(() => clearInterval(sweeps));
      connections.endHandshakes();
      return closed;
    },
  };
}

/** The handshake fails for clients that name no host: no certificate matches. */
function tlsServer(options: ServerOptions, contextFor: ContextFor, connections: HttpConnections): Server {
  const tls = createTlsServer({
    ...options,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    // Node calls it as a method of the connection.
    SNICallback(this: TLSSocket, host, respond) {
      if (!connections.waitForCertificate(this))
        return respond(new Error('too many clients wait for a certificate'));
      contextFor(host)
        .finally(() => connections.continueHandshake(this))
        .then(
          (context) =>
            context === null ? respond(new Error(`no certificate for ${host}`)) : respond(null, context),
          (error: Error) => respond(error),
        );
    },
  });
  tls.on('tlsClientError', (_error, socket) => socket.destroy());
  return tls;
}

/**
 * Whether a request has more than MAX_HEADER_FIELDS header fields. It must be refused: Node has dropped the last ones, and
 * proxies add X-Forwarded-For after the fields of the client.
 */
export function hasTooManyFields({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * MAX_HEADER_FIELDS;
}

/** Returns a check that closes connections whose client does not read. */
function closeStalled(
  server: Server,
  event: 'connection' | 'secureConnection',
  { writeStallMs }: HttpConnectionLimits,
): () => void {
  /** Bytes accepted by the operating system, and when that number last changed. */
  const progress = new Map<Socket, { taken: number; since: number }>();
  server.on(event, (socket: Socket) => {
    progress.set(socket, { taken: 0, since: performance.now() });
    socket.once('close', () => progress.delete(socket));
  });
  return () => {
    const now = performance.now();
    for (const [socket, last] of progress) {
      const taken = socket.bytesWritten - socket.writableLength;
      if (socket.writableLength === 0 || taken !== last.taken) {
        last.taken = taken;
        last.since = now;
      } else if (now - last.since >= writeStallMs) socket.destroy();
    }
  };
}

function listen(server: Server, at: string, setting: string): Promise<void> {
  const address = parseListen(at);
  if (address === null) return Promise.reject(new Error(`${setting}: "${at}" is not an address`));
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(listenFault(setting, address, error));
    server.once('error', onError);
    server.listen({ ...address, backlog: BACKLOG }, () => {
      server.removeListener('error', onError);
      server.on('error', () => {}); // no descriptors or memory left for accept(): the client connects again
      resolve();
    });
  });
}

/** Accepts no new connections, and closes those that have not ended after `graceMs`. */
export function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    // The only possible error is that the server was not open.
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
