import type { Server, Socket } from 'node:net';
import { callerNetworks, canonicalAddress } from '../accounts/caller-addresses.ts';
import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';

/* Limits on TCP sockets that an SMTP session cannot enforce: before it begins, and when replies are not read. */

/** Sockets of an address beyond its connections while they are greeted or rejected. */
const ADDRESS_MARGIN = 10;
/** Limit for a TLS handshake or a PROXY header. */
const HANDSHAKE_TIMEOUT_MS = 10 * SECOND;
/** Sockets whose replies are not read for this long are closed. */
export const WRITE_STALL_TIMEOUT_MS = MINUTE;

/**
 * Closes sockets of an address that has more than its connections and a margin, without a reply: before the greeting
 * no other limit counts them. The networks that contain it may have a multiple (`callerNetworks`). Connections through proxies are limited by `createConnections` only, by the address that
 * the proxy states. Returns a function that removes closed sockets from the count; called every few seconds.
 */
export function limitSockets(server: Server, perAddress: number, proxies: readonly string[]): () => void {
  const exempt = new Set(proxies.map(canonicalAddress));
  const open = new Map<string, Set<Socket>>();
  const listeners = server.listeners('connection');

  // smtp-server removes all listeners of a socket at STARTTLS, so closed sockets are searched for.
  function count(network: string): number {
    const sockets = open.get(network);
    if (sockets === undefined) return 0;
    for (const socket of sockets) if (socket.destroyed) sockets.delete(socket);
    if (sockets.size === 0) open.delete(network);
    return sockets.size;
  }

  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    eventLoopTurns.connected();
    const address = socket.remoteAddress ?? '';
    if (!exempt.has(canonicalAddress(address))) {
      const networks = callerNetworks(address);
      if (networks.some(({ network, share }) => count(network) >= perAddress * share + ADDRESS_MARGIN)) {
        socket.destroy();
        return;
      }
      for (const { network } of networks) {
        const sockets = open.get(network);
        if (sockets === undefined) open.set(network, new Set([socket]));
        else sockets.add(socket);
      }
    }
    for (const listener of listeners) listener.call(server, socket);
  });
  return () => {
    for (const network of open.keys()) count(network);
  };
}

/** Closes sockets that stay without an SMTP session for too long; called with them every few seconds. */
export function createHandshakeCheck(clock: Clock): (sockets: Iterable<Socket>) => void {
  const firstSeen = new WeakMap<Socket, number>();
  return (sockets) => {
    const now = clock.now();
    for (const socket of sockets) {
      const since = firstSeen.get(socket) ?? now;
      firstSeen.set(socket, since);
      if (now - since > HANDSHAKE_TIMEOUT_MS) socket.destroy();
    }
  };
}

export interface StallCheck {
  /** Whether the peer has not read its replies for too long; called every few seconds. */
  isStalled(socket: Socket): boolean;
}

/**
 * Remembers the progress of a socket between two calls, weakly: nothing remains of a socket that is gone. A peer is
 * stalled when no byte left for `WRITE_STALL_TIMEOUT_MS` although some wait.
 */
export function createStallCheck(clock: Clock): StallCheck {
  const last = new WeakMap<Socket, { sent: number; at: number }>();
  return {
    isStalled: (socket) => {
      const now = clock.now();
      const sent = socket.bytesWritten - socket.writableLength;
      const before = last.get(socket);
      if (socket.writableLength === 0) last.delete(socket);
      else if (before === undefined || before.sent !== sent) last.set(socket, { sent, at: now });
      else return now - before.at >= WRITE_STALL_TIMEOUT_MS;
      return false;
    },
  };
}
