import { createServer, type Server, type Socket } from 'node:net';
import type { DnsServer } from '../../support/dns-server.ts';
import { MX_HOSTS } from '../receiver.ts';

/**
 * The destinations of a large backlog, two thirds of them alive: half of these at four large providers, the others at 200
 * small ones. Of the dead ones a half refuses connections, a quarter accepts them and never replies, and the name servers
 * of a quarter fail; each has other hosts.
 */
export interface BacklogDestinations {
  live: string[];
  dead: string[];
  /** Addresses of the destinations that never reply. */
  silentHosts: string[];
}

const LIVE_SHARE = 2 / 3;
const SMALL_PROVIDERS = 200;
/** Where live destinations receive mail. */
export const LIVE_HOSTS: readonly string[] = [
  ...MX_HOSTS,
  ...Array.from({ length: SMALL_PROVIDERS }, (_, n) => addressIn(3, n)),
];

/** Publishes `count` destinations. */
export function publishBacklog(dns: DnsServer, count: number): BacklogDestinations {
  const names = Array.from({ length: count }, (_, n) => `b${String(n).padStart(4, '0')}.example`);
  const live = names.slice(0, Math.round(count * LIVE_SHARE));
  const dead = names.slice(live.length);
  LIVE_HOSTS.forEach((host, n) => dns.set(`mx.live${n}.example`, 'A', [host]));
  live.forEach((name, n) => {
    const host = n % 2 === 0 ? n % MX_HOSTS.length : MX_HOSTS.length + (((n - 1) / 2) % SMALL_PROVIDERS);
    dns.set(name, 'MX', [`10 mx.live${host}.example`]);
  });
  const silentHosts: string[] = [];
  dead.forEach((name, n) => {
    if (n % 4 === 3) {
      dns.set(name, 'MX', 'SERVFAIL');
      return;
    }
    const isSilent = n % 4 === 1;
    const host = addressIn(isSilent ? 5 : 4, n);
    if (isSilent) silentHosts.push(host);
    dns.set(name, 'MX', [`10 mx.${name}`]);
    dns.set(`mx.${name}`, 'A', [host]);
  });
  return { live, dead, silentHosts };
}

/** Listens on the addresses, accepts connections and never sends anything. */
export async function startSilentHosts(
  hosts: readonly string[],
  port: number,
): Promise<{ peak: () => number; stop: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  let peak = 0;
  for (const host of hosts) {
    const server = createServer((socket) => {
      sockets.add(socket);
      peak = Math.max(peak, sockets.size);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
    servers.push(server);
  }
  return {
    peak: () => peak,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** An address of 127.0.0.0/8. */
function addressIn(network: number, number: number): string {
  return `127.${network}.${Math.floor(number / 200)}.${1 + (number % 200)}`;
}
