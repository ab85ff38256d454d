import { parseArgs } from 'node:util';
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

/*
 * Whether bounces are taken as fast as they come, while sending goes on:
 *
 *     npm run build && npm run bench:dsn                    500 a second for a minute
 *     npm run bench:dsn -- --rate 2000 --bounces 20000      as fast as they are taken
 *
 *   reporters ──DSN──▶ postrider serve ◀──HTTP── senders        the messages that bounce were delivered before
 *                          └──SMTP──▶ sink
 *
 * A reporter opens a connection for every few reports, as the world's servers do. "answeredPerSecond" is the rate
 * that came about; it can be no higher than --rate. Answer times are from the first command of a mail to the reply
 * after its dot, so they hold five round trips and a commit. It ends with 1 when a report is not in the events.
 */
const { values } = parseArgs({
  options: {
    bounces: { type: 'string', default: '30000' },
    /** Wanted a second. */
    rate: { type: 'string', default: '500' },
    /** Reports over one connection. */
    each: { type: 'string', default: '5' },
    /** Connections at once. */
    reporters: { type: 'string', default: '250' },
    /** Mails sent meanwhile, a second. */
    sending: { type: 'string', default: '50' },
  },
});
const bounces = Number(values.bounces);
const perSecond = Number(values.rate);

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
  // All reporters have one address here.
  'mx.connectionsPerAddress': Math.max(30, Number(values.reporters)),
  'log.level': 'warn',
});
try {
  publishMailHost(dns, 'empfang.example');
  await verifiedDomain(daemon, dns, 'kunde.example');
  await sendAll(bounces);
  await eventually(
    'all to be delivered',
    async () => (await daemon.metric('postrider_queue_messages')) === 0,
    {
      ms: 300_000,
      everyMs: 250,
    },
  );
  const reports = [...verps];
  const ending = new AbortController();
  const others = goOnSending(ending.signal);
  const result = await reportAll(reports);
  ending.abort();
  const sentMeanwhile = await others;
  const told = await daemon.api.allEvents({ event: 'email_bounced' });
  const machine = thisMachine();
  console.log(JSON.stringify({ machine, ...result, sentMeanwhile, inTheEvents: told.length }, null, 2));
  if (told.length !== bounces) process.exitCode = 1;
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

/** Until told to stop; returns how many were sent. */
async function goOnSending(until: AbortSignal): Promise<number> {
  const startedAt = performance.now();
  let sent = 0;
  while (!until.aborted) {
    const due = ((performance.now() - startedAt) * Number(values.sending)) / 1000;
    // The last of them may find the daemon gone.
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
  const refused = new Map<string, number>();
  let next = 0;
  const reporter = async () => {
    let client: SmtpClient | null = null;
    let said = 0;
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
      const answer = await client.mail('', verp, dsn({ recipient }));
      times.push(performance.now() - at);
      if (!answer.startsWith('250')) refused.set(answer, (refused.get(answer) ?? 0) + 1);
      if (++said % Number(values.each) === 0) {
        await client.say('QUIT');
        client.destroy();
        client = null;
      }
    }
    client?.destroy();
  };
  await Promise.all(Array.from({ length: Number(values.reporters) }, reporter));
  const seconds = (performance.now() - startedAt) / 1000;
  const after = processCost(server);
  times.sort((a, b) => a - b);
  const percentile = (part: number) => Math.round(times[Math.floor(times.length * part)] ?? 0);
  return {
    bounces: reports.length,
    seconds: Number(seconds.toFixed(1)),
    answeredPerSecond: Math.round(reports.length / seconds),
    answerMs: { p50: percentile(0.5), p99: percentile(0.99) },
    refused: Object.fromEntries(refused),
    cpuMsEach: {
      server: ((after.cpu - before.cpu) * 1000) / reports.length,
      mainThread: ((after.mainThread - before.mainThread) * 1000) / reports.length,
    },
    peakMiB: Math.round(after.peakMiB),
  };
}
