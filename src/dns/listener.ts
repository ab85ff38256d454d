import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Server, type Socket } from 'node:net';
import { SECOND } from '../core/clock.ts';
import { framed } from './transport.ts';

/**
 * A DNS port: UDP and TCP on one number, bytes in and bytes out. Connections, their idle time, the size of queries and
 * unread answers are limited.
 */
export interface Peer {
  address: string;
  port: number;
  via: 'udp' | 'tcp';
}

/** Called for each message; `reply` may be called later, several times or never. Must not throw. */
export type QueryHandler = (query: Buffer, peer: Peer, reply: (answer: Buffer) => void) => void;

export interface DnsListener {
  host: string;
  port: number;
  close(): Promise<void>;
}

const MAX_CLIENTS = 100;
const IDLE_TIMEOUT_MS = 10 * SECOND;
/** Valid queries are much smaller. */
const MAX_QUERY_BYTES = 4096;
const MAX_UNREAD_BYTES = 256 * 1024;
const MAX_PORT_ATTEMPTS = 10;

/** Listens on `host` (an address); with port 0 on a port that is free for both. Rejects when it cannot bind. */
export async function listenDns(host: string, port: number, handle: QueryHandler): Promise<DnsListener> {
  for (let attempt = 1; ; attempt++) {
    const clients = new Set<Socket>();
    const tcp = createServer((socket) => serveClient(socket, clients, handle));
    tcp.maxConnections = MAX_CLIENTS;
    const chosen = await listenTcp(tcp, host, port);
    try {
      const udp = await bindUdp(host, chosen, handle);
      return { host, port: chosen, close: () => closeAll(tcp, udp, clients) };
    } catch (error) {
      await closeAll(tcp, null, clients);
      // With port 0: a port that is free for TCP may be in use for UDP.
      if (port !== 0 || attempt === MAX_PORT_ATTEMPTS) throw error;
    }
  }
}

async function listenTcp(tcp: Server, host: string, port: number): Promise<number> {
  tcp.listen({ host, port });
  await once(tcp, 'listening');
  tcp.on('error', () => {}); // no descriptors left for accept(): the client gets no answer and retries
  const address = tcp.address();
  return address !== null && typeof address === 'object' ? address.port : port;
}

async function bindUdp(host: string, port: number, handle: QueryHandler): Promise<UdpSocket> {
  const udp = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  udp.on('message', (query, from) => {
    const reply = (answer: Buffer) => udp.send(answer, from.port, from.address, () => {}); // the client retries after a loss
    handle(query, { address: from.address, port: from.port, via: 'udp' }, reply);
  });
  udp.bind({ address: host, port });
  try {
    await once(udp, 'listening');
  } catch (error) {
    udp.close();
    throw error;
  }
  udp.on('error', () => {}); // an answer that could not be delivered
  return udp;
}

function serveClient(socket: Socket, clients: Set<Socket>, handle: QueryHandler): void {
  clients.add(socket);
  let received = Buffer.alloc(0);
  const peer: Peer = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0, via: 'tcp' };
  const reply = (answer: Buffer) => {
    if (socket.destroyed) return;
    socket.write(framed(answer));
    if (socket.writableLength > MAX_UNREAD_BYTES) socket.destroy();
  };
  socket.setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy()); // the client disconnected
  socket.on('close', () => clients.delete(socket));
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2 && !socket.destroyed) {
      const length = received.readUInt16BE(0);
      if (length > MAX_QUERY_BYTES) {
        socket.destroy();
        return;
      }
      if (received.length < 2 + length) return;
      handle(received.subarray(2, 2 + length), peer, reply);
      received = received.subarray(2 + length);
    }
  });
}

async function closeAll(tcp: Server, udp: UdpSocket | null, clients: Set<Socket>): Promise<void> {
  for (const socket of clients) socket.destroy();
  await Promise.all([
    new Promise((resolve) => tcp.close(resolve)),
    udp && new Promise<void>((resolve) => udp.close(resolve)),
  ]);
}
