import type { Server, Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { canonicalAddress } from '../accounts/caller-addresses.ts';
import { SECOND } from '../core/clock.ts';

/**
 * Headers of the PROXY protocol in their second, binary form, for a listener that reads the first form alone:
 * each is put in the words of the first before the listener sees the connection. Only connections of proxies
 * that the operator named are touched; from anybody else such a header is what it is, a breach of SMTP.
 *
 * https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt, §2.2
 */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const FIXED = 16;
const VERSION = 2;
const [LOCAL, PROXIED] = [0, 1];
/** Family and transport in one octet. */
const [TCP4, TCP6] = [0x11, 0x21];
/** Addresses and what proxies add to them (§2.2.1); ours is a mail server, nobody has more to say. */
const LONGEST = 4096;

/** A proxy that has connected has its header ready. */
const HEADER_MS = 10 * SECOND;

/** more: it is not all there. other: not of this form, or not of any. */
export type ProxyHeader = { line: string; length: number } | 'more' | 'other' | 'bad';

/** Reads a header at the beginning of what a connection has sent; `length` is what it takes of that. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const known = Math.min(bytes.length, SIGNATURE.length);
  if (!bytes.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return 'other';
  if (bytes.length < FIXED) return 'more';
  const [version, command] = [bytes.readUInt8(12) >> 4, bytes.readUInt8(12) & 0x0f];
  const length = bytes.readUInt16BE(14);
  if (version !== VERSION || (command !== LOCAL && command !== PROXIED) || length > LONGEST) return 'bad';
  if (bytes.length < FIXED + length) return 'more';
  const told = bytes.subarray(FIXED, FIXED + length);
  const line = command === LOCAL ? UNKNOWN : lineFor(bytes.readUInt8(13), told);
  return line === null ? 'bad' : { line, length: FIXED + length };
}

/** The proxy speaks for itself, or of a connection that has no address: the connection is what it seems. */
const UNKNOWN = 'PROXY UNKNOWN\r\n';

function lineFor(family: number, told: Buffer): string | null {
  if (family !== TCP4 && family !== TCP6) return UNKNOWN;
  const width = family === TCP4 ? 4 : 16;
  if (told.length < 2 * width + 4) return null;
  const address = (at: number) => ipaddr.fromByteArray([...told.subarray(at, at + width)]).toString();
  const ports = [told.readUInt16BE(2 * width), told.readUInt16BE(2 * width + 2)];
  return `PROXY ${family === TCP4 ? 'TCP4' : 'TCP6'} ${address(0)} ${address(width)} ${ports.join(' ')}\r\n`;
}

/**
 * Puts itself before a server's own handling of connections; returns how to let go of those whose header has
 * not come. A connection whose header cannot be read, or does not come in time, is dropped without a word: a
 * proxy that is set up wrongly is to be seen at once.
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
    const timer = setTimeout(drop, HEADER_MS).unref();
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
      if (header === 'more') return;
      done();
      if (header === 'bad') return drop();
      socket.unshift(
        header === 'other' ? sent : Buffer.concat([Buffer.from(header.line), sent.subarray(header.length)]),
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
