import { type Settings, startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startBenchmarkProcess } from './benchmark-process.ts';
import type { LoadBound, LoadJob, LoadReport } from './load.ts';
import { SUBJECT, TEMPLATE_VARIABLES, templateOf } from './message.ts';
import { publishRecipients, RECIPIENT_DOMAINS, type Receiver } from './receiver.ts';
import { deliveryResult, type RunResult } from './result.ts';

/**
 * The built daemon with its defaults, one account with a verified domain, and recipients in 20 domains at four mailbox
 * providers, found by MX.
 */
export interface PostriderBench {
  /**
   * `inFlight`: the limit of messages that are accepted and not yet at the sink; null: unlimited. `content`: default a template of
   * `size` bytes with two variables.
   */
  run(name: string, count: number, inFlight: number | null, content?: Content): Promise<RunResult>;
  stop(): Promise<void>;
}

export interface Content {
  html: string;
  /** Default: derived from the HTML. */
  text?: string;
}

export async function startPostrider(options: {
  receiver: Receiver;
  /** Concurrent clients. */
  sessions: number;
  /** Bytes of html. */
  size: number;
  settings?: Settings;
}): Promise<PostriderBench> {
  const { receiver, sessions, size, settings = {} } = options;
  const dns = await startDnsServer();
  publishRecipients(dns);
  const daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': receiver.port,
    'delivery.allowPrivateNetworks': true,
    'log.level': 'warn',
    ...settings,
  });
  const load = startBenchmarkProcess<LoadJob | LoadBound, LoadReport>(new URL('load.ts', import.meta.url));
  const stop = async () => {
    await load.stop();
    await daemon.stop();
    await dns.close();
  };
  try {
    const { domainId, recommendedDnsRecords } = await verifiedDomain(daemon, dns, 'sender.example');
    if (settings['domains.ed25519'] === true) {
      dns.publish(recommendedDnsRecords);
      await daemon.api.post(`/web-setup/domains/${domainId}/verify`);
    }
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
      subject: SUBJECT,
      html: templateOf(size),
      templateVariables: TEMPLATE_VARIABLES,
    },
    domains: RECIPIENT_DOMAINS,
    connections: sessions,
  };
  const cost = () => ({
    server: processCost(server),
    load: processCost(load.pid).cpu,
    sink: processCost(receiver.pid).cpu,
  });
  let first = 0;
  return {
    run: async (name, count, inFlight, content) => {
      await receiver.reset();
      const before = cost();
      const arrived = receiver.waitFor(count, ({ messages }) => {
        if (inFlight !== null) load.notify({ kind: 'bound', upTo: messages + inFlight });
      });
      const [report, sink] = await Promise.all([
        load.request({ ...job, body: { ...job.body, ...content }, first, count, bound: inFlight }),
        // When messages are lost, the load generator must not wait for their arrival.
        arrived.finally(() => load.notify({ kind: 'bound', upTo: count })),
      ]);
      first += count;
      const after = cost();
      const each = (seconds: number) => (seconds * 1000) / count;
      if (report.firstFailure !== '')
        console.error(`request failed: ${report.firstFailure}\n${daemon.log()}`);
      return {
        name,
        ...deliveryResult(report.accepted, { startedAt: report.startedAt, acceptedAt: report.endedAt }, sink),
        cpuMs: {
          server: each(after.server.cpu - before.server.cpu),
          mainThread: each(after.server.mainThread - before.server.mainThread),
          load: each(after.load - before.load),
          sink: each(after.sink - before.sink),
        },
        peakMiB: after.server.peakMiB,
        responseMs: { p50: report.p50, p99: report.p99 },
        failed: report.failed,
      };
    },
    stop,
  };
}
