import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Server, type Socket } from 'node:net';
import { SECOND } from '../core/clock.ts';
import { framed } from './transport.ts';

/**
 * A DNS port: UDP and TCP on one number, bytes in and bytes out. Knows nothing of names. Bounded in all that
 * a stranger can make it hold: connections, their idle time, what they may send at once and leave unread.
 */
export interface Peer {
  address: string;
  port: number;
  via: 'udp' | 'tcp';
}

/** Called for each message; `reply` may be called later, several times or never. Must not throw. */
export type Respond = (query: Buffer, peer: Peer, reply: (answer: Buffer) => void) => void;

export interface DnsListener {
  host: string;
  port: number;
  close(): Promise<void>;
}

const MAX_CLIENTS = 100;
const IDLE_MS = 10 * SECOND;
/** Questions are small; nobody has a reason to send more than this in one. */
const MAX_QUERY = 4096;
const MAX_UNREAD = 256 * 1024;
const PORT_TRIES = 10;

/** Listens on `host` (an address); with port 0 on a port that is free for both. Rejects when it cannot bind. */
export async function listenDns(host: string, port: number, respond: Respond): Promise<DnsListener> {
  for (let tried = 1; ; tried++) {
    const clients = new Set<Socket>();
    const tcp = createServer((socket) => serveClient(socket, clients, respond));
    tcp.maxConnections = MAX_CLIENTS;
    const chosen = await listenTcp(tcp, host, port);
    try {
      const udp = await bindUdp(host, chosen, respond);
      return { host, port: chosen, close: () => closeAll(tcp, udp, clients) };
    } catch (error) {
      await closeAll(tcp, null, clients);
      // Port 0: what was free for TCP may be taken for UDP; any other will do.
      if (port !== 0 || tried === PORT_TRIES) throw error;
    }
  }
}

async function listenTcp(tcp: Server, host: string, port: number): Promise<number> {
  tcp.listen({ host, port });
  await once(tcp, 'listening');
  tcp.on('error', () => {}); // accept() out of descriptors: the client sees no answer and asks again
  const address = tcp.address();
  return address !== null && typeof address === 'object' ? address.port : port;
}

async function bindUdp(host: string, port: number, respond: Respond): Promise<UdpSocket> {
  const udp = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  udp.on('message', (query, from) => {
    const reply = (answer: Buffer) => udp.send(answer, from.port, from.address, () => {}); // lost is lost
    respond(query, { address: from.address, port: from.port, via: 'udp' }, reply);
  });
  udp.bind({ address: host, port });
  try {
    await once(udp, 'listening');
  } catch (error) {
    udp.close();
    throw error;
  }
  udp.on('error', () => {}); // an answer that could not be delivered to somebody else
  return udp;
}

function serveClient(socket: Socket, clients: Set<Socket>, respond: Respond): void {
  clients.add(socket);
  let received = Buffer.alloc(0);
  const peer: Peer = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0, via: 'tcp' };
  const reply = (answer: Buffer) => {
    if (socket.destroyed) return;
    socket.write(framed(answer));
    if (socket.writableLength > MAX_UNREAD) socket.destroy();
  };
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy()); // the client went away
  socket.on('close', () => clients.delete(socket));
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2 && !socket.destroyed) {
      const length = received.readUInt16BE(0);
      if (length > MAX_QUERY) {
        socket.destroy();
        return;
      }
      if (received.length < 2 + length) return;
      respond(received.subarray(2, 2 + length), peer, reply);
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
