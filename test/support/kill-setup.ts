import { type RunningDaemon, startDaemon } from './daemon.ts';
import { startDnsServer } from './dns-server.ts';
import { eventually } from './eventually.ts';
import { onDisk } from './on-disk.ts';
import { LONG_PATIENCE_MS } from './patience.ts';
import { publishMailHost } from './recipients.ts';
import { type SinkProcess, startSinkProcess } from './sink-process.ts';
import { verifiedDomain } from './verified-domain.ts';

/** A daemon with the verified domain kunde.example that is killed while it sends to a sink in another process. */
export interface KillSetup {
  sink: SinkProcess;
  daemon: RunningDaemon;
  /** Waits until the sink has so many messages. */
  messagesAtSink(count: number): Promise<void>;
  /** Kills the daemon with SIGKILL; does not start it again. */
  kill(): Promise<Kill>;
  stop(): Promise<void>;
}

export interface Kill {
  /** Number of messages at the sink. */
  at: number;
  /** Messages without an outcome on disk that were taken from the queue. */
  inFlight: number;
  /** Of those, the messages that the sink accepted. */
  unrecorded: number;
}

/** `domains`: of the recipients. `delayMs`: of the replies of the sink. */
export async function startKillSetup(
  domains: readonly string[],
  { useCaseId, delayMs = 0 }: { useCaseId: 'tx-local' | 'mk-local'; delayMs?: number },
): Promise<KillSetup> {
  const dns = await startDnsServer();
  const sink = await startSinkProcess({ delayMs });
  const daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    'log.level': 'warn',
  });
  for (const domain of domains) publishMailHost(dns, domain);
  await verifiedDomain(daemon, dns, 'kunde.example', { useCaseId });
  return {
    sink,
    daemon,
    messagesAtSink: async (count) => {
      await eventually(`${count} messages at the sink`, async () => (await sink.counts()).messages >= count, {
        ms: LONG_PATIENCE_MS,
        everyMs: 25,
      });
    },
    kill: async () => {
      await daemon.kill('SIGKILL');
      // Once its connections are closed, the sink has counted everything that it accepted.
      const { messages, ids } = await eventually('the connections of the sink to be closed', async () => {
        const now = await sink.counts();
        return now.open === 0 ? now : null;
      });
      const { delivered, sending } = onDisk(daemon.dataDir);
      return { at: messages, inFlight: sending, unrecorded: ids - delivered };
    },
    stop: async () => {
      await daemon.stop();
      await sink.stop();
      await dns.close();
    },
  };
}
