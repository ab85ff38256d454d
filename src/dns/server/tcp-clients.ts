import type { Socket } from 'node:net';
import { SECOND } from '../../core/clock.ts';
import { framed } from '../transport.ts';
import { networkOf } from './rate-limit.ts';

/*
 * The TCP connections of a DNS port (RFC 7766): several queries at a time on a connection, in any segments. Connections,
 * their idle time, the size of queries, the queries read in one turn of the event loop, and unread responses are limited.
 */

/** The sender of a query. */
export interface Peer {
  address: string;
  port: number;
  via: 'udp' | 'tcp';
  /**
   * Resolves with true when a TCP client has read what was sent before, with false when it disconnected. Undefined over
   * UDP.
   */
  drained?: () => Promise<boolean>;
}

/** Called for each message; `reply` may be called later, several times or never. Must not throw. */
export type QueryHandler = (query: Buffer, peer: Peer, reply: (response: Buffer) => void) => void;

export interface TcpLimits {
  /** Concurrent connections; a further one replaces the one that has been idle for the longest time. */
  connections: number;
  /** Concurrent connections of one IPv4 address or IPv6 /64. */
  connectionsPerAddress: number;
}

export type TcpClients = ReturnType<typeof createTcpClients>;

interface Client {
  socket: Socket;
  network: string;
  /** Increases with each complete query of any client. */
  used: number;
}

/** RFC 7766 §6.2.3: of the order of a few seconds. Only a complete query or a read response extends it. */
const IDLE_TIMEOUT_MS = 10 * SECOND;
/** Valid queries are much smaller. */
const MAX_QUERY_BYTES = 4096;
const MAX_UNREAD_BYTES = 256 * 1024;
const QUERIES_PER_TURN = 16;

/**
 * The owner accepts connections and passes them to `serve`. Disconnects a client after 10 s without a complete query or
 * a read response, with more than 256 KiB of unread responses, or with a query above 4096 bytes.
 */
export function createTcpClients(handle: QueryHandler, limits: TcpLimits) {
  const clients = new Set<Client>();
  let uses = 0;

  /** The client to disconnect after a new connection from `network`; null: the limits are kept. */
  function victimOf(network: string): Client | null {
    const own = [...clients].filter((client) => client.network === network);
    const candidates =
      own.length > limits.connectionsPerAddress ? own : clients.size > limits.connections ? [...clients] : [];
    return candidates.reduce<Client | null>(
      (oldest, client) => (oldest !== null && oldest.used <= client.used ? oldest : client),
      null,
    );
  }

  return {
    serve: (socket: Socket): void => {
      const address = socket.remoteAddress ?? '';
      const client: Client = { socket, network: networkOf(address, 32, 64), used: uses++ };
      clients.add(client);
      socket.on('close', () => clients.delete(client));
      victimOf(client.network)?.socket.destroy();
      readQueries(socket, { address, port: socket.remotePort ?? 0, via: 'tcp' }, (query, peer, reply) => {
        client.used = uses++;
        handle(query, peer, reply);
      });
    },
    /** Disconnects all clients. */
    close: (): void => {
      for (const { socket } of clients) socket.destroy();
    },
  };
}

function readQueries(socket: Socket, peer: Omit<Peer, 'drained'>, handle: QueryHandler): void {
  let received = Buffer.alloc(0);
  const idle = setTimeout(() => socket.destroy(), IDLE_TIMEOUT_MS);
  idle.unref();
  const client: Peer = { ...peer, drained: () => drained(socket) };
  const reply = (response: Buffer) => {
    if (socket.destroyed) return;
    socket.write(framed(response));
    if (socket.writableLength > MAX_UNREAD_BYTES) socket.destroy();
  };
  const handleReceived = () => {
    for (let handled = 0; received.length >= 2 && !socket.destroyed; handled++) {
      const length = received.readUInt16BE(0);
      if (length > MAX_QUERY_BYTES) {
        socket.destroy();
        return;
      }
      if (received.length < 2 + length) break;
      if (handled === QUERIES_PER_TURN) {
        setImmediate(handleReceived);
        return;
      }
      const query = received.subarray(2, 2 + length);
      received = received.subarray(2 + length);
      idle.refresh();
      handle(query, client, reply);
    }
    if (!socket.destroyed) socket.resume();
  };
  socket.on('drain', () => idle.refresh());
  socket.on('error', () => socket.destroy()); // the client disconnected
  socket.on('close', () => clearTimeout(idle));
  socket.on('data', (chunk) => {
    // Further data is read when all queries of this chunk have been handled.
    socket.pause();
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    handleReceived();
  });
}

/** Resolves with true when the client has read what was written, with false when it disconnected. */
function drained(socket: Socket): Promise<boolean> {
  if (socket.destroyed) return Promise.resolve(false);
  if (!socket.writableNeedDrain) return Promise.resolve(true);
  return new Promise((resolve) => {
    const settle = (isOpen: boolean) => () => {
      socket.off('drain', onDrain);
      socket.off('close', onClose);
      resolve(isOpen);
    };
    const onDrain = settle(true);
    const onClose = settle(false);
    socket.on('drain', onDrain);
    socket.on('close', onClose);
  });
}
