import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type CallerNetwork, callerNetworks } from '../accounts/caller-addresses.ts';
import { SECOND } from '../core/clock.ts';
import { createTally } from '../core/concurrency/tally.ts';
import { hasBody } from './body/body.ts';

/*
 * The open connections of an HTTP listener. When it is full, the oldest connection that has no complete request is closed
 * for a new one: a client sends its request within a round trip, and one that waits for nothing loses nothing.
 */

/** Connections of the listener and of one caller. */
export interface ConnectionCounts {
  connections: number;
  /** Maximum number of connections of the client at an address; Infinity: not counted. */
  ofOneCaller?(address: string): number;
  /** Time for a TLS handshake without the time for obtaining a certificate, ms. Default: 10 s. */
  handshakeMs?: number;
}

/** Unfinished TLS handshakes; each occupies some 75 KB outside of the heap. A further one replaces the oldest. */
export const MAX_HANDSHAKES = 256;
/** Of one /48 or /24: a further one of the network replaces its own oldest. */
const MAX_HANDSHAKES_OF_NETWORK = 64;
/** Unfinished handshakes whose certificate is being ordered. */
export const MAX_WAITING_FOR_CERTIFICATE = 256;
const HANDSHAKE_TIMEOUT_MS = 10 * SECOND;

/**
 * handshake: TLS is not established. certificate: the same, while the certificate of the host is obtained. idle: no request
 * has arrived completely. receiving: the body of a request arrives. busy: a request is being handled.
 */
type Phase = 'handshake' | 'certificate' | 'idle' | 'receiving' | 'busy';

interface Connection {
  name: string;
  socket: Socket;
  networks: readonly CallerNetwork[];
  phase: Phase;
  /** When the phase began, by `performance.now()`. */
  since: number;
  /** Requests that were not answered. */
  requests: number;
}

export interface HttpConnections {
  /**
   * Counts the connections of a server from now on; those that exceed a limit are closed before anything is allocated for
   * them. Handlers of requests are registered before the server listens.
   */
  attach(server: Server): void;
  /** The host named in the handshake of a connection needs a certificate first; false: too many wait for one. */
  waitForCertificate(socket: Socket): boolean;
  /** The handshake continues. */
  continueHandshake(socket: Socket): void;
  /** Closes connections whose handshake takes too long; called every few seconds. */
  sweep(): void;
  /** Closes connections whose handshake is not complete: the HTTP server does not know them. */
  endHandshakes(): void;
}

/** `isSecure`: connections begin with a TLS handshake. */
export function createHttpConnections(limits: ConnectionCounts, isSecure: boolean): HttpConnections {
  const connections = new Map<string, Connection>();
  /** The connections in each phase, the oldest first. */
  const inPhase: Record<Phase, Set<Connection>> = {
    handshake: new Set(),
    certificate: new Set(),
    idle: new Set(),
    receiving: new Set(),
    busy: new Set(),
  };
  const counts = createTally();
  /** The connections by their sockets: with TLS both the TCP socket and the one above it. */
  const ofSocket = new WeakMap<Socket, Connection>();

  function enter(connection: Connection, phase: Phase): void {
    if (!isOpen(connection)) return;
    inPhase[connection.phase].delete(connection);
    connection.phase = phase;
    connection.since = performance.now();
    inPhase[phase].add(connection);
  }

  function isOpen(connection: Connection): boolean {
    return connections.get(connection.name) === connection;
  }

  function remove(connection: Connection): void {
    if (!isOpen(connection)) return;
    connections.delete(connection.name);
    inPhase[connection.phase].delete(connection);
    for (const { network } of connection.networks) counts.add(network, -1);
  }

  function close(connection: Connection): void {
    remove(connection);
    connection.socket.destroy();
  }

  /** The oldest connection without a complete request; of those that send one only if all others have been answered. */
  function oldestWithoutRequest(): Connection | undefined {
    const [handshake] = inPhase.handshake;
    const [idle] = inPhase.idle;
    if (handshake === undefined || idle === undefined)
      return handshake ?? idle ?? inPhase.receiving.values().next().value;
    return handshake.since < idle.since ? handshake : idle;
  }

  /** The handshake to end for another one from these networks: one of the same network if it has many. */
  function replaceableHandshake(networks: readonly CallerNetwork[]): Connection | undefined {
    const largest = networks.at(-1)?.network;
    const own = [...inPhase.handshake].filter(
      (each) => largest !== undefined && each.networks.at(-1)?.network === largest,
    );
    return own.length >= MAX_HANDSHAKES_OF_NETWORK ? own[0] : inPhase.handshake.values().next().value;
  }

  function admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // The client has disconnected.
    if (remoteAddress === undefined) return false;
    const limit = limits.ofOneCaller?.(remoteAddress) ?? Number.POSITIVE_INFINITY;
    const networks = limit === Number.POSITIVE_INFINITY ? [] : callerNetworks(remoteAddress);
    if (networks.some(({ network, share }) => counts.of(network) >= limit * share)) return false;
    if (connections.size >= limits.connections) {
      const oldest = oldestWithoutRequest();
      if (oldest === undefined) return false;
      close(oldest);
    }
    if (inPhase.handshake.size >= MAX_HANDSHAKES) {
      const replaced = replaceableHandshake(networks);
      if (replaced !== undefined) close(replaced);
    }
    const phase = isSecure ? 'handshake' : 'idle';
    const name = nameOf(socket);
    const connection: Connection = { name, socket, networks, phase, since: performance.now(), requests: 0 };
    connections.set(name, connection);
    ofSocket.set(socket, connection);
    inPhase[phase].add(connection);
    for (const { network } of networks) counts.add(network, 1);
    socket.once('close', () => remove(connection));
    return true;
  }

  /** Before the owner's handlers: a request begins. */
  function onRequest(req: IncomingMessage, res: ServerResponse): void {
    const connection = ofSocket.get(req.socket);
    if (connection === undefined) return;
    connection.requests++;
    const receives = hasBody(req);
    if (!receives) enter(connection, 'busy');
    else if (connection.phase !== 'busy') enter(connection, 'receiving');
    if (receives) req.once('end', () => connection.requests > 0 && enter(connection, 'busy'));
    res.once('close', () => {
      if (--connection.requests === 0) enter(connection, 'idle');
    });
  }

  const handshakeOf = (socket: Socket, phase: Phase): Connection | null => {
    const connection = connections.get(nameOf(socket));
    return connection?.phase === phase ? connection : null;
  };
  return {
    attach: (server) => {
      const accept = server.listeners('connection');
      server.removeAllListeners('connection');
      server.on('connection', (socket: Socket) => {
        if (admit(socket)) for (const listener of accept) listener.call(server, socket);
        else socket.destroy();
      });
      server.on('secureConnection', (socket: Socket) => {
        const connection = connections.get(nameOf(socket));
        if (connection === undefined) {
          socket.destroy();
          return;
        }
        connection.socket = socket;
        ofSocket.set(socket, connection);
        enter(connection, 'idle');
      });
      server.once('listening', () => {
        // Node responds itself to the last two where nobody listens for them.
        for (const event of ['request', 'checkContinue', 'checkExpectation'])
          if (server.listenerCount(event) > 0) server.prependListener(event, onRequest);
      });
    },
    waitForCertificate: (socket) => {
      const connection = handshakeOf(socket, 'handshake');
      if (connection === null || inPhase.certificate.size >= MAX_WAITING_FOR_CERTIFICATE) return false;
      enter(connection, 'certificate');
      return true;
    },
    continueHandshake: (socket) => {
      const connection = handshakeOf(socket, 'certificate');
      if (connection !== null) enter(connection, 'handshake');
    },
    sweep: () => {
      const latest = performance.now() - (limits.handshakeMs ?? HANDSHAKE_TIMEOUT_MS);
      for (const connection of inPhase.handshake) {
        if (connection.since > latest) return;
        close(connection);
      }
    },
    endHandshakes: () => {
      for (const phase of ['handshake', 'certificate'] as const)
        for (const connection of inPhase[phase]) close(connection);
    },
  };
}

/** Names a connection: a TLS socket and the TCP socket below it have the same addresses. */
function nameOf({ localAddress, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${remoteAddress} ${remotePort}`;
}
