import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Server } from 'node:net';
import {
  createTcpClients,
  type QueryHandler,
  type TcpClients,
  type TcpLimits,
} from './server/tcp-clients.ts';

/* A DNS port: UDP and TCP on one number, bytes in and bytes out. Connections are limited in server/tcp-clients.ts. */

export type { Peer, QueryHandler } from './server/tcp-clients.ts';

export interface DnsListener {
  host: string;
  port: number;
  close(): Promise<void>;
}

export const DEFAULT_LIMITS: TcpLimits = { connections: 100, connectionsPerAddress: 100 };
const MAX_PORT_ATTEMPTS = 10;

/** Listens on `host` (an address); with port 0, on a port that is free for both. Rejects when it cannot bind. */
export async function listenDns(
  host: string,
  port: number,
  handle: QueryHandler,
  limits: TcpLimits = DEFAULT_LIMITS,
): Promise<DnsListener> {
  for (let attempt = 1; ; attempt++) {
    const clients = createTcpClients(handle, limits);
    const tcp = createServer((socket) => clients.serve(socket));
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
  tcp.on('error', () => {}); // no descriptors left for accept(): the client gets no response and retries
  const address = tcp.address();
  return address !== null && typeof address === 'object' ? address.port : port;
}

async function bindUdp(host: string, port: number, handle: QueryHandler): Promise<UdpSocket> {
  const udp = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  udp.on('message', (query, from) => {
    const reply = (response: Buffer) => udp.send(response, from.port, from.address, () => {}); // the client retries after a loss
    handle(query, { address: from.address, port: from.port, via: 'udp' }, reply);
  });
  udp.bind({ address: host, port });
  try {
    await once(udp, 'listening');
  } catch (error) {
    udp.close();
    throw error;
  }
  udp.on('error', () => {}); // a response that could not be sent
  return udp;
}

async function closeAll(tcp: Server, udp: UdpSocket | null, clients: TcpClients): Promise<void> {
  clients.close();
  await Promise.all([
    new Promise((resolve) => tcp.close(resolve)),
    udp && new Promise<void>((resolve) => udp.close(resolve)),
  ]);
}
