import { dsn } from '../smtp/mx/mails.ts';
import { startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type SmtpClient, smtpClient } from '../support/smtp-client.ts';
import { startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { thisMachine } from './machine.ts';
import { readOptions } from './options.ts';
import { percentile } from './result.ts';

/*
 * Rate at which bounces are received while other messages are sent:
 *
 *     npm run build && npm run bench:dsn                    500 per second for a minute
 *     npm run bench:dsn -- --rate 2000 --bounces 20000      at the maximum rate
 *
 *   reporters ──DSN──▶ postrider serve ◀──HTTP── senders        the bounced messages were delivered before
 *                          └──SMTP──▶ sink
 *
 * A reporter opens a connection for every few reports, as mail servers do. "repliesPerSecond" is the achieved rate, at
 * most --rate. Reply times are from MAIL to the reply after the final dot: five round trips and a commit. Exits with 1
 * when a report is missing in the events.
 */
const values = readOptions({
  command: 'npm run bench:dsn',
  summary: `Rate at which bounces are received while other messages are sent. Exits with 1 when a bounce is missing in the
events. Build first (npm run build).`,
  options: {
    bounces: { integer: 30_000, help: 'bounces' },
    rate: { integer: 500, help: 'target, bounces per second' },
    each: { integer: 5, help: 'bounces per connection' },
    reporters: { integer: 250, help: 'concurrent connections' },
    sending: { integer: 50, help: 'concurrently sent messages per second' },
  },
});
const { bounces, rate: perSecond } = values;

const mxPort = await freePort();
const dns = await startDnsServer();
const verps = new Map<string, string>();
const sink = await startSink({
  countOnly: true,
  onMessage: ({ from, to: [recipient = ''] }) => void verps.set(recipient, from),
});
const daemon = await startDaemon({
  'dns.resolvers': [dns.address],
  'delivery.port': sink.port,
  'delivery.allowPrivateNetworks': true,
  'mx.listen': `127.0.0.1:${mxPort}`,
  // All reporters have the same address.
  'mx.connectionsPerAddress': Math.max(30, values.reporters),
  'log.level': 'warn',
});
try {
  publishMailHost(dns, 'empfang.example');
  await verifiedDomain(daemon, dns, 'kunde.example');
  await sendAll(bounces);
  await eventually(
    'all messages to be delivered',
    async () => (await daemon.metric('postrider_queue_messages')) === 0,
    {
      ms: 300_000,
      everyMs: 250,
    },
  );
  const reports = [...verps];
  const ending = new AbortController();
  const sending = sendUntil(ending.signal);
  const result = await reportAll(reports);
  ending.abort();
  const sentConcurrently = await sending;
  const events = await daemon.api.allEvents({ event: 'email_bounced' });
  const machine = thisMachine();
  console.log(JSON.stringify({ machine, ...result, sentConcurrently, events: events.length }, null, 2));
  if (events.length !== bounces) process.exitCode = 1;
} finally {
  await daemon.stop();
  await sink.close();
  await dns.close();
}

function send(user: string) {
  return daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@empfang.example` });
}

async function sendAll(count: number): Promise<void> {
  let next = 0;
  const sender = async () => {
    while (next < count) await send(`user${next++}`);
  };
  await Promise.all(Array.from({ length: 32 }, sender));
}

/** Sends until `until` is aborted; returns the number of messages. */
async function sendUntil(until: AbortSignal): Promise<number> {
  const startedAt = performance.now();
  let sent = 0;
  while (!until.aborted) {
    const due = ((performance.now() - startedAt) * values.sending) / 1000;
    // The last sends may fail because the daemon has stopped.
    for (; sent < due; sent++) void send(`later${sent}`).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return sent;
}

async function reportAll(reports: [recipient: string, verp: string][]) {
  const server = findChild('dist/main.js', 'serve');
  const before = processCost(server);
  const times: number[] = [];
  const startedAt = performance.now();
  const failed = new Map<string, number>();
  let next = 0;
  const reporter = async () => {
    let client: SmtpClient | null = null;
    let sent = 0;
    while (next < reports.length) {
      const number = next++;
      const [recipient, verp] = reports[number] ?? ['', ''];
      const early = startedAt + (number * 1000) / perSecond - performance.now();
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
      if (client === null) {
        client = await smtpClient(mxPort);
        await client.say('EHLO reporter.example');
      }
      const at = performance.now();
      const reply = await client.mail('', verp, dsn({ recipient }));
      times.push(performance.now() - at);
      if (!reply.startsWith('250')) failed.set(reply, (failed.get(reply) ?? 0) + 1);
      if (++sent % values.each === 0) {
        await client.say('QUIT');
        client.destroy();
        client = null;
      }
    }
    client?.destroy();
  };
  await Promise.all(Array.from({ length: values.reporters }, reporter));
  const seconds = (performance.now() - startedAt) / 1000;
  const after = processCost(server);
  times.sort((a, b) => a - b);
  return {
    bounces: reports.length,
    seconds: Number(seconds.toFixed(1)),
    repliesPerSecond: Math.round(reports.length / seconds),
    replyMs: { p50: Math.round(percentile(times, 0.5)), p99: Math.round(percentile(times, 0.99)) },
    failed: Object.fromEntries(failed),
    cpuMsPerReport: {
      server: ((after.cpu - before.cpu) * 1000) / reports.length,
      mainThread: ((after.mainThread - before.mainThread) * 1000) / reports.length,
    },
    peakMiB: Math.round(after.peakMiB),
  };
}
