import { createSocket } from 'node:dgram';
import { connect, isIP } from 'node:net';

/**
 * One query to one server, over UDP or TCP. Every query has a socket of its own, so the kernel draws a new
 * source port for each (RFC 5452 §9.2), and the socket is connected, so that datagrams of anybody else never
 * arrive and a closed port is an error at once. Knows bytes only; time limits are the caller's `signal`.
 */
export interface ServerAddress {
  address: string;
  port: number;
}

/** Looks at what arrived: the caller's reading of it, or undefined to go on listening. */
type Accept<T> = (bytes: Buffer) => T | undefined;

const DNS_PORT = 53;

/** Reads `ip`, `ip:port` or `[v6]:port`. Throws on anything else: resolvers are given by address. */
export function parseServer(text: string): ServerAddress {
  const match = /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? /^([\d.]+)(?::(\d+))?$/.exec(text) ?? [text, text];
  const [, address = '', digits = String(DNS_PORT)] = match;
  const port = Number(digits);
  if (isIP(address) === 0 || port < 1 || port > 65_535) throw new Error(`not a DNS server address: ${text}`);
  return { address, port };
}

export function serverText({ address, port }: ServerAddress): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Rejects with the socket's error, or with the signal's reason. */
export function askUdp<T>(
  server: ServerAddress,
  query: Buffer,
  accept: Accept<T>,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const socket = createSocket(isIP(server.address) === 6 ? 'udp6' : 'udp4');
    const stop = () => fail(signal.reason);
    const end = () => {
      signal.removeEventListener('abort', stop);
      // While the socket is being bound it closes later, by listeners of its own: they must stay.
      socket.close();
    };
    let over = false;
    const fail = (error: unknown) => {
      if (over) return;
      over = true;
      end();
      reject(error);
    };
    socket.on('error', fail);
    socket.on('message', (bytes) => {
      const accepted = over ? undefined : accept(bytes);
      if (accepted === undefined) return;
      over = true;
      end();
      resolve(accepted);
    });
    signal.addEventListener('abort', stop, { once: true });
    socket.connect(server.port, server.address, (error?: Error) => {
      if (error) fail(error);
      else if (!over) socket.send(query, (failed) => failed && fail(failed));
    });
  });
}

/** As `askUdp`, with the two-byte length of RFC 1035 §4.2.2; anything but an accepted answer is an error. */
export function askTcp<T>(
  server: ServerAddress,
  query: Buffer,
  accept: Accept<T>,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.address, port: server.port, signal });
    let received = Buffer.alloc(0);
    socket.on('connect', () => socket.write(framed(query)));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed the connection without an answer')));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2) return;
      const length = received.readUInt16BE(0);
      if (received.length < 2 + length) return;
      const accepted = accept(received.subarray(2, 2 + length));
      if (accepted === undefined) reject(new Error('answered something else'));
      else resolve(accepted);
      socket.destroy();
    });
  });
}

/** A message as TCP carries it: its length in two bytes, then itself. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
