import type { MessageData } from './api-client.ts';
import { type RunningDaemon, type Settings, startDaemon } from './daemon.ts';
import { type DnsServer, startDnsServer } from './dns-server.ts';
import { eventually } from './eventually.ts';
import { publishMailHost, SHORT_MAIL } from './recipients.ts';
import { type Sink, type SinkOptions, startSink } from './smtp-sink.ts';
import { verifiedDomain } from './verified-domain.ts';

/**
 * The usual scene: a daemon that may send from kunde.example, a name server that says what the test wants, and
 * a sink that takes the mail of empfang.example, willingly unless told otherwise.
 */
export interface Scene {
  dns: DnsServer;
  sink: Sink;
  daemon: RunningDaemon;
  /** Sends to a user of empfang.example, or of another domain; returns the message id. */
  send(user: string, domain?: string): Promise<string>;
  /** Waits for a message to come to a state. */
  until(messageId: string, status: string): Promise<MessageData>;
  /** Waits until nothing is left to deliver. */
  untilDone(): Promise<void>;
  stop(): Promise<void>;
}

export async function startScene(settings: Settings = {}, behaviour: SinkOptions = {}): Promise<Scene> {
  const dns = await startDnsServer();
  const sink = await startSink(behaviour);
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
    until: (messageId, status) =>
      eventually(`${messageId} to be ${status}`, async () => {
        const message = await daemon.api.message(messageId);
        return message.status === status ? message : null;
      }),
    untilDone: async () => {
      const waiting = () => daemon.metric('postrider_queue_messages');
      await eventually('the queue to be empty', async () => (await waiting()) === 0, {
        ms: 90_000,
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
