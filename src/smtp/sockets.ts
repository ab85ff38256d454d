import type { Server, Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { callerNetworks, canonicalAddress } from '../accounts/caller-addresses.ts';
import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';

/*
 * TCP sockets before and outside of their SMTP sessions: limits that a session cannot enforce (before it begins, and when
 * replies are not read), and the PROXY protocol.
 *
 * smtp-server reads only version 1 (text) of the PROXY protocol, and of that no addresses after UNKNOWN, which a receiver
 * must ignore (§2.1): each header of version 2 (binary) is translated before smtp-server sees the connection. Applies to
 * connections of the configured proxies only; from any other client such a header is an SMTP syntax error.
 *
 * https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt, §2.2
 */

/** Sockets of an address beyond its connections while they are greeted or rejected. */
const ADDRESS_MARGIN = 10;
/** Limit for a TLS handshake or a PROXY header, which a proxy sends right after it connects. */
const HANDSHAKE_TIMEOUT_MS = 10 * SECOND;
/** Sockets whose replies are not read for this long are closed. */
export const WRITE_STALL_TIMEOUT_MS = MINUTE;

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const FIXED = 16;
const VERSION = 2;
const [LOCAL, PROXIED] = [0, 1];
/** Address family and transport in one byte. */
const [TCP4, TCP6] = [0x11, 0x21];
/** Maximum length of addresses and TLVs (§2.2.1), bytes. */
const MAX_LENGTH = 4096;

/**
 * Closes sockets of an address that has more than its connections and a margin, without a reply: before the greeting no
 * other limit counts them. The networks that contain it may have a multiple (`callerNetworks`). Connections through proxies
 * are limited by `createConnections` only, by the address that the proxy states. Returns a function that removes closed
 * sockets from the count; called every few seconds.
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

/**
 * Returns a function that states whether the peer has not read its replies for too long; called every few seconds. It
 * remembers the progress of a socket between two calls, weakly: nothing remains of a socket that is gone. A peer is stalled
 * when no byte left for `WRITE_STALL_TIMEOUT_MS` although some wait.
 */
export function createStallCheck(clock: Clock): (socket: Socket) => boolean {
  const last = new WeakMap<Socket, { sent: number; at: number }>();
  return (socket) => {
    const now = clock.now();
    const sent = socket.bytesWritten - socket.writableLength;
    const before = last.get(socket);
    if (socket.writableLength === 0) last.delete(socket);
    else if (before === undefined || before.sent !== sent) last.set(socket, { sent, at: now });
    else return now - before.at >= WRITE_STALL_TIMEOUT_MS;
    return false;
  };
}

/** incomplete: more bytes are needed. absent: nothing to translate. malformed: version 2, but not valid. */
export type ProxyHeader = { line: string; length: number } | 'incomplete' | 'absent' | 'malformed';

/** Parses a header at the beginning of the bytes of a connection. `line`: version 1; `length`: bytes it takes. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const unknown = readUnknown(bytes);
  if (unknown !== 'absent') return unknown;
  const known = Math.min(bytes.length, SIGNATURE.length);
  if (!bytes.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return 'absent';
  if (bytes.length < FIXED) return 'incomplete';
  const [version, command] = [bytes.readUInt8(12) >> 4, bytes.readUInt8(12) & 0x0f];
  const length = bytes.readUInt16BE(14);
  if (version !== VERSION || (command !== LOCAL && command !== PROXIED) || length > MAX_LENGTH)
    return 'malformed';
  if (bytes.length < FIXED + length) return 'incomplete';
  const payload = bytes.subarray(FIXED, FIXED + length);
  const line = command === LOCAL ? UNKNOWN : lineFor(bytes.readUInt8(13), payload);
  return line === null ? 'malformed' : { line, length: FIXED + length };
}

/** A health check of the proxy, or a connection without an IP address: the proxy's own address counts. */
const UNKNOWN = 'PROXY UNKNOWN\r\n';

/** The longest header of version 1 (§2.1), bytes. */
const MAX_TEXT_LENGTH = 107;

/** A header of version 1 without an IP address. */
function readUnknown(bytes: Buffer): ProxyHeader {
  const begin = UNKNOWN.slice(0, -2);
  const known = bytes.toString('latin1', 0, begin.length);
  if (known === '' || !begin.startsWith(known)) return 'absent';
  const end = bytes.subarray(0, MAX_TEXT_LENGTH).indexOf('\n');
  if (end >= 0) return { line: UNKNOWN, length: end + 1 };
  return bytes.length < MAX_TEXT_LENGTH ? 'incomplete' : 'absent';
}

function lineFor(family: number, payload: Buffer): string | null {
  if (family !== TCP4 && family !== TCP6) return UNKNOWN;
  const width = family === TCP4 ? 4 : 16;
  if (payload.length < 2 * width + 4) return null;
  const address = (at: number) => ipaddr.fromByteArray([...payload.subarray(at, at + width)]).toString();
  const ports = [payload.readUInt16BE(2 * width), payload.readUInt16BE(2 * width + 2)];
  return `PROXY ${family === TCP4 ? 'TCP4' : 'TCP6'} ${address(0)} ${address(width)} ${ports.join(' ')}\r\n`;
}

/**
 * Translates the headers of connections from proxies before the server's own listeners run. Returns a function that
 * closes connections whose header has not arrived. A connection with a malformed or late header is closed without a
 * reply, so that a misconfigured proxy is noticed immediately.
 */
export function translateProxyHeaders(server: Server, proxies: readonly string[]): () => void {
  if (proxies.length === 0) return () => {};
  const trusted = new Set(proxies.map(canonicalAddress));
  const waiting = new Set<Socket>();
  const listeners = server.listeners('connection');
  const admit = (socket: Socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (!trusted.has(canonicalAddress(socket.remoteAddress ?? ''))) return admit(socket);
    waiting.add(socket);
    let sent = Buffer.alloc(0);
    const drop = () => void socket.destroy();
    const timer = setTimeout(drop, HANDSHAKE_TIMEOUT_MS).unref();
    const done = () => {
      clearTimeout(timer);
      waiting.delete(socket);
      socket.off('readable', read);
      socket.off('end', drop);
      socket.off('close', done);
    };
    function read(): void {
      for (let chunk = next(); chunk !== null; chunk = next()) sent = Buffer.concat([sent, chunk]);
      if (sent.length === 0) return;
      const header = readProxyHeader(sent);
      if (header === 'incomplete') return;
      done();
      if (header === 'malformed') return drop();
      socket.unshift(
        header === 'absent' ? sent : Buffer.concat([Buffer.from(header.line), sent.subarray(header.length)]),
      );
      admit(socket);
    }
    const next = (): Buffer | null => socket.read();
    socket.on('readable', read);
    socket.on('error', drop);
    socket.on('end', drop);
    socket.on('close', done);
  });
  return () => {
    for (const socket of waiting) socket.destroy();
  };
}
