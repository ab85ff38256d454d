import { HOSTNAME, startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startCompanion } from './benchmark-process.ts';
import type { LoadBound, LoadJob, LoadReport } from './load.ts';
import { htmlOf } from './message.ts';
import type { Receiver } from './receiver.ts';
import { measured, type RunResult } from './result.ts';

/**
 * Our side of the benchmark: the built daemon with its defaults, one customer with a verified domain, and
 * recipients in many domains behind a few mailbox providers, found by MX through a DNS server of our own.
 */
export interface PostriderBench {
  /** How many may be accepted and not yet at the sink; null: as many as the interface takes. */
  run(name: string, count: number, inFlight: number | null): Promise<RunResult>;
  stop(): Promise<void>;
}

const DOMAINS = 20;

export async function startPostrider(settings: {
  receiver: Receiver;
  /** Callers at once. */
  sessions: number;
  /** Of the html, in bytes. */
  size: number;
}): Promise<PostriderBench> {
  const { receiver, sessions, size } = settings;
  const dns = await startDnsServer();
  // As the world would see it; nobody connects to it.
  dns.set(HOSTNAME, 'A', ['192.0.2.25']);
  receiver.hosts.forEach((host, site) => dns.set(`mx${site}.provider${site}.example`, 'A', [host]));
  const domains = Array.from(
    { length: DOMAINS },
    (_, number) => `d${String(number).padStart(2, '0')}.example`,
  );
  domains.forEach((domain, number) => {
    const site = number % receiver.hosts.length;
    dns.set(domain, 'MX', [`10 mx${site}.provider${site}.example`]);
  });

  const daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': receiver.port,
    'delivery.allowPrivateNetworks': true,
    'log.level': 'warn',
  });
  const load = startCompanion<LoadJob | LoadBound, LoadReport>(new URL('load.ts', import.meta.url));
  const stop = async () => {
    await load.stop();
    await daemon.stop();
    await dns.close();
  };
  try {
    await verifiedDomain(daemon, dns, 'sender.example');
  } catch (error) {
    await stop();
    throw error;
  }
  const server = findChild('dist/main.js', 'serve');
  const { accountId, keys } = daemon.api;
  const job: Omit<LoadJob, 'first' | 'count' | 'bound'> = {
    kind: 'run',
    port: Number(new URL(daemon.baseUrl).port),
    path: '/transactional/send',
    headers: { 'X-Api-Key': keys.transactional, 'X-Id': accountId },
    body: {
      from: 'Shop <news@sender.example>',
      subject: 'Your order has left our house',
      html: htmlOf(size),
    },
    domains,
    connections: sessions,
  };
  const cost = () => ({
    server: processCost(server),
    load: processCost(load.pid).cpu,
    sink: processCost(receiver.pid).cpu,
  });
  let first = 0;
  return {
    run: async (name, count, inFlight) => {
      await receiver.reset();
      const before = cost();
      const arrived = receiver.waitFor(count, ({ messages }) => {
        if (inFlight !== null) load.tell({ kind: 'bound', upTo: messages + inFlight });
      });
      const [report, sink] = await Promise.all([
        load.ask({ ...job, first, count, bound: inFlight }),
        // Were messages lost, the callers would wait for room for ever.
        arrived.finally(() => load.tell({ kind: 'bound', upTo: count })),
      ]);
      first += count;
      const after = cost();
      const each = (seconds: number) => (seconds * 1000) / count;
      if (report.firstRefusal !== '') console.error(`refused: ${report.firstRefusal}\n${daemon.log()}`);
      return {
        name,
        ...measured(report.accepted, { startedAt: report.startedAt, acceptedAt: report.endedAt }, sink),
        cpuMs: {
          server: each(after.server.cpu - before.server.cpu),
          mainThread: each(after.server.mainThread - before.server.mainThread),
          load: each(after.load - before.load),
          sink: each(after.sink - before.sink),
        },
        peakMiB: after.server.peakMiB,
        answerMs: { p50: report.p50, p99: report.p99 },
        refused: report.refused,
      };
    },
    stop,
  };
}
