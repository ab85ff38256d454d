import { createSocket } from 'node:dgram';
import { connect, isIP } from 'node:net';

/*
 * Sends one query to one server, over UDP or TCP. Every query has a separate socket, so that the kernel selects a new
 * source port for each (RFC 5452 §9.2). The socket is connected, so that it receives no datagrams of other senders, and
 * a closed port is an immediate error. `signal` limits the time.
 */

export interface ServerAddress {
  address: string;
  port: number;
}

/** Returns the parsed response, or undefined to continue listening. */
type Accept<T> = (bytes: Buffer) => T | undefined;

const DNS_PORT = 53;

/** Parses `ip`, `ip:port` or `[v6]:port`; throws for anything else. */
export function parseServer(text: string): ServerAddress {
  const match = /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? /^([\d.]+)(?::(\d+))?$/.exec(text) ?? [text, text];
  const [, address = '', digits = String(DNS_PORT)] = match;
  const port = Number(digits);
  if (isIP(address) === 0 || port < 1 || port > 65_535) throw new Error(`not a DNS server address: ${text}`);
  return { address, port };
}

/** Formats an address for `parseServer`. */
export function formatServer({ address, port }: ServerAddress): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Sends a query over UDP. Rejects with the socket's error or the signal's reason. `from`: the source address. */
export function queryUdp<T>(
  server: ServerAddress,
  query: Buffer,
  accept: Accept<T>,
  signal: AbortSignal,
  from?: string,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const socket = createSocket(isIP(server.address) === 6 ? 'udp6' : 'udp4');
    const stop = () => fail(signal.reason);
    const end = () => {
      signal.removeEventListener('abort', stop);
      // A socket that is still being bound closes later, by its own listeners: they must stay.
      socket.close();
    };
    let ended = false;
    const fail = (error: unknown) => {
      if (ended) return;
      ended = true;
      end();
      reject(error);
    };
    socket.on('error', fail);
    socket.on('message', (bytes) => {
      const accepted = ended ? undefined : accept(bytes);
      if (accepted === undefined) return;
      ended = true;
      end();
      resolve(accepted);
    });
    signal.addEventListener('abort', stop, { once: true });
    if (from !== undefined) socket.bind({ address: from, port: 0 });
    socket.connect(server.port, server.address, (error?: Error) => {
      if (error) fail(error);
      else if (!ended) socket.send(query, (failed) => failed && fail(failed));
    });
  });
}

/**
 * Sends a query like `queryUdp`, with the two-byte length of RFC 1035 §4.2.2; an answer that is not accepted is an
 * error.
 */
export function queryTcp<T>(
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
      if (accepted === undefined) reject(new Error('unrelated answer'));
      else resolve(accepted);
      socket.destroy();
    });
  });
}

/** A message over TCP: its length in two bytes, then the message (RFC 1035 §4.2.2). */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
