import { setTimeout as sleep } from 'node:timers/promises';
import { HOSTNAME, PUBLIC_ADDRESS } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { startBenchmarkProcess } from './benchmark-process.ts';
import type { ReceiverCounts, ReceiverRequest } from './sink.ts';

export const MX_HOSTS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'];
export const RECIPIENT_DOMAINS = Array.from(
  { length: 20 },
  (_, number) => `d${String(number).padStart(2, '0')}.example`,
);

/** Starts the name server of a benchmark. */
export async function startBenchmarkDns(): Promise<DnsServer & { stop: () => Promise<void> }> {
  const dns = await startDnsServer();
  return { ...dns, stop: () => dns.close() };
}

/** Publishes the recipients' domains, which are distributed over the MX hosts, and the host of the daemon. */
export function publishRecipients(dns: DnsServer): void {
  dns.set(HOSTNAME, 'A', [PUBLIC_ADDRESS]);
  MX_HOSTS.forEach((host, site) => dns.set(`mx${site}.provider${site}.example`, 'A', [host]));
  RECIPIENT_DOMAINS.forEach((domain, number) => {
    const site = number % MX_HOSTS.length;
    dns.set(domain, 'MX', [`10 mx${site}.provider${site}.example`]);
  });
}

/** The receiving side: one sink process that listens on the addresses of all MX hosts. */
export interface Receiver {
  /** The same port on all addresses. */
  port: number;
  pid: number;
  counts(): Promise<ReceiverCounts>;
  /** Epoch ms at which messages to recipients that begin with `timed` were accepted, by recipient. */
  arrivals(): Promise<Map<string, number>>;
  /** Resets all counts. */
  reset(): Promise<void>;
  /** Waits for the number of messages, or until none arrives for 15 s; calls `onCounts` with each poll. */
  waitFor(messages: number, onCounts?: (counts: ReceiverCounts) => void): Promise<ReceiverCounts>;
  stop(): Promise<void>;
}

const POLL_INTERVAL_MS = 10;
/** Timeout for a missing message. */
const ARRIVAL_TIMEOUT_MS = 15_000;
/** Time for duplicates to arrive. */
const DUPLICATES_TIMEOUT_MS = 500;

/** `hosts`: addresses on which it listens. `tls`: whether the sink offers STARTTLS. */
export async function startReceiver({
  hosts = MX_HOSTS,
  tls = false,
}: {
  hosts?: readonly string[];
  tls?: boolean;
} = {}): Promise<Receiver> {
  const program = new URL('sink.ts', import.meta.url);
  const sink = startBenchmarkProcess<ReceiverRequest, ReceiverCounts>(program, [
    ...hosts.flatMap((host) => ['--host', host]),
    ...(tls ? ['--tls'] : []),
  ]);
  const counts = () => sink.request({});
  const { port } = await counts();
  return {
    port,
    pid: sink.pid,
    counts,
    arrivals: async () => new Map((await sink.request({ arrivals: true })).arrivals),
    reset: async () => void (await sink.request({ reset: true })),
    waitFor: async (messages, onCounts = () => {}) => {
      let last = { messages: -1, at: Date.now() };
      for (;;) {
        const now = await counts();
        onCounts(now);
        if (now.messages > last.messages) last = { messages: now.messages, at: Date.now() };
        if (now.messages >= messages || Date.now() - last.at > ARRIVAL_TIMEOUT_MS) break;
        await sleep(POLL_INTERVAL_MS);
      }
      await sleep(DUPLICATES_TIMEOUT_MS);
      return counts();
    },
    stop: () => sink.stop(),
  };
}
