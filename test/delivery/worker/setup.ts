import { performance } from 'node:perf_hooks';
import { onTestFinished } from 'vitest';
import { attempt } from '../../../src/delivery/worker/attempt.ts';
import { type Client, type ClientOptions, createSmtpClient } from '../../../src/delivery/worker/client.ts';
import type { AttemptReport, DeliveryJob, TargetHost } from '../../../src/delivery/worker/protocol.ts';
import { dialTcp, type SmtpTimeouts } from '../../../src/delivery/worker/socket.ts';
import type { OutgoingMessage } from '../../../src/delivery/worker/transaction.ts';
import type { EncodedContent } from '../../../src/mail/stored-content.ts';
import { type Sink, type SinkOptions, startSink } from '../../support/smtp-sink.ts';

/** Timeouts that a loaded machine does not reach; tests shorten single ones. */
const TIMEOUTS: SmtpTimeouts = {
  connect: 10_000,
  greeting: 10_000,
  handshake: 10_000,
  command: 10_000,
  data: 10_000,
  block: 10_000,
  dot: 10_000,
  message: 20_000,
  trailing: 2000,
  tick: 5,
};

export function client(timeouts: Partial<SmtpTimeouts> = {}, options: Partial<ClientOptions> = {}): Client {
  const created = createSmtpClient({
    clock: { now: () => Date.now() },
    monotonic: { now: () => performance.now() },
    dial: dialTcp,
    ...options,
    timeouts: { ...TIMEOUTS, ...timeouts },
  });
  onTestFinished(() => {
    created.abort();
    return created.close();
  });
  return created;
}

export async function sink(options: SinkOptions = {}): Promise<Sink> {
  const started = await startSink(options);
  onTestFinished(() => started.close());
  return started;
}

/** Several hosts of one domain: different loopback addresses, one port. */
export async function sinks(...options: SinkOptions[]): Promise<Sink[]> {
  const started: Sink[] = [];
  for (const [index, each] of options.entries()) {
    const port = started[0]?.port ?? 0;
    started.push(await sink({ host: `127.0.0.${index + 1}`, port, ...each }));
  }
  return started;
}

/** No program listens there. */
export const CLOSED_ADDRESS = '127.0.0.99';

export function host(name: string, ...addresses: string[]): TargetHost {
  return { name, addresses };
}

let ids = 0;

/** A content in the stored form `json`. */
export function jsonContent(json: string): EncodedContent {
  const encoded = bytes(json);
  return { bytes: encoded, encoding: 'json', size: encoded.byteLength };
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** A job for a sink, or for several as `mx1.example.test`, `mx2.example.test`, … in their order. */
export function job(to: Sink | Sink[], changes: Partial<DeliveryJob> = {}): DeliveryJob {
  const hosts = [to].flat();
  return {
    id: ++ids,
    slot: 'slot',
    content: jsonContent('{}'),
    copy: {
      recipient: 'ann@example.test',
      kind: 'transactional',
      unsubscribeUrl: 'https://track.example.test/u/1',
      reportAbuseUrl: 'https://track.example.test/r/1',
      unsubscribeAddress: null,
      signedId: 'id-1',
      feedbackAddress: null,
      feedbackId: 'c:a:tx:postrider',
    },
    envelope: { from: 'b-1@return-a.example.org', to: 'ann@example.test' },
    signers: [],
    hosts: hosts.map((each, index) => host(`mx${index + 1}.example.test`, each.host)),
    port: hosts[0]?.port ?? 1,
    tls: 'opportunistic',
    tlsSource: 'default',
    chunking: true,
    egress: { hostname: 'out.example.org' },
    messagesPerConnection: 100,
    idleMs: 10_000,
    ...changes,
  };
}

export const BODY = 'Subject: hello\r\n\r\nHow are you?\r\n';

export function message(of: DeliveryJob, changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return { ...of.envelope, header: Buffer.alloc(0), body: Buffer.from(BODY), utf8: false, ...changes };
}

/** One attempt with the standard message; throws when the attempt is aborted. */
export async function deliver(
  client: Client,
  job: DeliveryJob,
  changes: Partial<OutgoingMessage> = {},
): Promise<AttemptReport> {
  const report = await attempt(job, () => Promise.resolve(message(job, changes)), client);
  if (report === null) throw new Error('the attempt was aborted');
  return report;
}

/** The report in short: `replied dot 250`, `unreachable greeting`. */
export function summary(report: AttemptReport): string {
  const { conclusion, phase, reply } = report;
  return [conclusion, phase, reply?.code].filter((part) => part !== undefined).join(' ');
}

export function lastError(report: AttemptReport): string {
  return report.sessions.at(-1)?.error ?? '';
}
