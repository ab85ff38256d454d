import type { Server, Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { canonicalAddress } from '../accounts/caller-addresses.ts';
import { SECOND } from '../core/clock.ts';

/*
 * PROXY protocol version 2 (binary) for smtp-server, which reads only version 1 (text), and of version 1 no addresses after
 * UNKNOWN, which a receiver must ignore (§2.1): each header is translated before smtp-server sees the connection. Applies to connections of the configured proxies only; from any
 * other client such a header is an SMTP syntax error.
 *
 * https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt, §2.2
 */

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const FIXED = 16;
const VERSION = 2;
const [LOCAL, PROXIED] = [0, 1];
/** Address family and transport in one byte. */
const [TCP4, TCP6] = [0x11, 0x21];
/** Maximum length of addresses and TLVs (§2.2.1), bytes. */
const MAX_LENGTH = 4096;

/** A proxy sends its header right after it connects. */
const HEADER_TIMEOUT_MS = 10 * SECOND;

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
    const timer = setTimeout(drop, HEADER_TIMEOUT_MS).unref();
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
