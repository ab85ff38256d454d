import { onTestFinished } from 'vitest';
import type { MessageData } from './api-client.ts';
import { type RunningDaemon, type Settings, startDaemon } from './daemon.ts';
import { type DnsServer, startDnsServer } from './dns-server.ts';
import { eventually } from './eventually.ts';
import { publishMailHost, SHORT_MAIL } from './recipients.ts';
import { type Sink, type SinkOptions, startSink } from './smtp-sink.ts';
import { verifiedDomain } from './verified-domain.ts';

/**
 * The usual setup: a daemon with the verified domain kunde.example, a programmable name server, and a sink that
 * receives the mail of empfang.example and accepts everything unless `SinkOptions` change that.
 */
export interface SendingSetup {
  dns: DnsServer;
  sink: Sink;
  daemon: RunningDaemon;
  /** Sends to a user of empfang.example, or of another domain; returns the message id. */
  send(user: string, domain?: string): Promise<string>;
  /** Waits until the message has the status. */
  waitForStatus(messageId: string, status: string): Promise<MessageData>;
  /** Waits until nothing is left to deliver. */
  waitForEmptyQueue(): Promise<void>;
  stop(): Promise<void>;
}

export async function startSendingSetup(
  settings: Settings = {},
  sinkOptions: SinkOptions = {},
): Promise<SendingSetup> {
  const dns = await startDnsServer();
  const sink = await startSink(sinkOptions);
  const daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    ...settings,
  });
  publishMailHost(dns, 'empfang.example', sink.host);
  await verifiedDomain(daemon, dns, 'kunde.example');
  return {
    dns,
    sink,
    daemon,
    send: async (user, domain = 'empfang.example') => {
      const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@${domain}` };
      return (await daemon.api.send(mail)).data.messageId;
    },
    waitForStatus: (messageId, status) =>
      eventually(`${messageId} to be ${status}`, async () => {
        const message = await daemon.api.message(messageId);
        return message.status === status ? message : null;
      }),
    waitForEmptyQueue: async () => {
      const queued = () => daemon.metric('postrider_queue_messages');
      await eventually('the queue to be empty', async () => (await queued()) === 0, {
        everyMs: 100,
      });
    },
    stop: async () => {
      await daemon.stop();
      await sink.close();
      await dns.close();
    },
  };
}

/** `startSendingSetup` for one test: stopped when the test has finished. */
export async function startSetupForTest(
  ...options: Parameters<typeof startSendingSetup>
): Promise<SendingSetup> {
  const setup = await startSendingSetup(...options);
  onTestFinished(() => setup.stop());
  return setup;
}
