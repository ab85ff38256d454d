import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { startGroup } from '../support/group.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { epochNow } from './benchmark-process.ts';
import { thisMachine } from './machine.ts';
import { htmlOf } from './message.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { setStage } from './resources.ts';

/*
 * How long transactional mail takes while a campaign is sent:
 *
 *     npm run build && npm run bench:campaign -- --members 20000
 *
 *   here ──HTTP, 20 a second──▶ postrider serve ──SMTP──▶ sink      the same MX hosts as the campaign's
 *                               └ a campaign to 20,000 ─▶
 *
 * The same stream is sent before the campaign as well, for comparison. Times are those from the moment of the
 * request to the sink's 250, which is longer than from acceptance to delivery. Fails when the 99th percentile is
 * a second or more.
 */
const MX_HOSTS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'];
const DOMAINS = Array.from({ length: 20 }, (_, n) => `d${String(n).padStart(2, '0')}.example`);
const ALONE_SECONDS = 5;
const LIMIT_MS = 1000;

const { values } = parseArgs({
  options: {
    members: { type: 'string', default: '20000' },
    'per-second': { type: 'string', default: '20' },
    /** Bytes of html, of either mail. */
    size: { type: 'string', default: '10240' },
  },
});
const MEMBERS = Number(values.members);
const PER_SECOND = Number(values['per-second']);
const HTML = htmlOf(Number(values.size));

const stage = await setStage();
try {
  process.exitCode = (await bench()) ? 0 : 1;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await stage.clear();
}

async function bench(): Promise<boolean> {
  const { cpu, cores, load } = thisMachine();
  const receiver = await stage.use(() => startReceiver(MX_HOSTS));
  const daemon = await stage.use(() => startScene(receiver));
  console.log(`${cores} × ${cpu}, Node ${process.version}, load ${load}`);
  const people = Array.from({ length: MEMBERS }, (_, n) => ({
    email: `reader${n}@${DOMAINS[n % DOMAINS.length]}`,
    firstName: `Reader ${n}`,
  }));
  const { subscriptionGroupId, campaignId } = await startGroup(daemon.api, people);

  await receiver.reset();
  const alone = await during(daemon, receiver, 'alone', sleep(ALONE_SECONDS * 1000));
  print('transactional mail alone', alone);

  await receiver.reset();
  const before = processCost(findChild('dist/main.js', 'serve'));
  const path = `/web-setup/campaigns/${campaignId}`;
  const sent = await daemon.api.post(`${path}/send`, {
    from: 'News <news@news.example>',
    subject: 'News for {{firstName}}',
    html: HTML,
    subscriptionGroupId,
  });
  if (sent.status !== 202) throw new Error(sent.text);
  const began = epochNow();
  let endedAt = began;
  const campaign = async () => {
    for (;;) {
      const { data } = await daemon.api.get<{ totals: { delivered: number } }>(`${path}/analytics`);
      endedAt = epochNow();
      if (data.totals.delivered >= MEMBERS) return;
      await sleep(250);
    }
  };
  const beside = await during(daemon, receiver, 'beside', campaign());
  const seconds = (endedAt - began) / 1000;
  const after = processCost(findChild('dist/main.js', 'serve'));
  const { recipients } = await receiver.counts();
  print(
    `beside a campaign to ${MEMBERS} (${(MEMBERS / seconds).toFixed(0)}/s, ${seconds.toFixed(1)} s)`,
    beside,
  );
  const cost = ((after.cpu - before.cpu) * 1000) / (MEMBERS + beside.times.length);
  console.log(
    `CPU of the server ${cost.toFixed(2)} ms a message, peak ${after.peakMiB?.toFixed(0) ?? '-'} MiB`,
  );
  const missing = MEMBERS + beside.times.length - recipients;
  if (missing > 0) console.log(`FAULT: ${missing} messages never came to the sink`);
  return missing === 0 && at(beside.times, 0.99) < LIMIT_MS;
}

async function startScene(receiver: Receiver): Promise<RunningDaemon> {
  const dns = await startDnsServer();
  // As the world would see it; nobody connects to it.
  dns.set(HOSTNAME, 'A', ['192.0.2.25']);
  receiver.hosts.forEach((host, site) => dns.set(`mx${site}.provider${site}.example`, 'A', [host]));
  DOMAINS.forEach((domain, n) => {
    const site = n % receiver.hosts.length;
    dns.set(domain, 'MX', [`10 mx${site}.provider${site}.example`]);
  });
  const daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': receiver.port,
    'delivery.allowPrivateNetworks': true,
    'log.level': 'warn',
  });
  const stop = async () => {
    await daemon.stop();
    await dns.close();
  };
  try {
    await verifiedDomain(daemon, dns, 'shop.example');
    await verifiedDomain(daemon, dns, 'news.example', { useCaseId: 'mk-local' });
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...daemon, stop };
}

interface Measured {
  /** From request to answer, and to the sink's 250: ms, in order. */
  answers: number[];
  times: number[];
}

/** Sends transactional mail, evenly, as long as something lasts, and waits until it has arrived. */
async function during(
  daemon: RunningDaemon,
  receiver: Receiver,
  name: string,
  lasts: Promise<void>,
): Promise<Measured> {
  const sends: Promise<{ to: string; at: number; answer: number }>[] = [];
  const over = new AbortController();
  const ended = lasts.finally(() => over.abort());
  const began = epochNow();
  for (let n = 0; !over.signal.aborted; n++) {
    const wait = began + (n * 1000) / PER_SECOND - epochNow();
    if (wait > 0) await sleep(wait);
    sends.push(send(daemon, `timed${name}${n}@${DOMAINS[n % DOMAINS.length]}`));
  }
  await ended;
  const sent = await Promise.all(sends);
  let arrivals = await receiver.arrivals();
  for (let tries = 0; arrivals.size < sent.length && tries < 300; tries++) {
    await sleep(100);
    arrivals = await receiver.arrivals();
  }
  const times = sent.map(({ to, at }) => (arrivals.get(to) ?? Number.POSITIVE_INFINITY) - at);
  return { answers: inOrder(sent.map(({ answer }) => answer)), times: inOrder(times) };
}

async function send(daemon: RunningDaemon, to: string) {
  const at = epochNow();
  const answer = await daemon.api.send({
    from: 'Shop <shop@shop.example>',
    to,
    subject: 'Your order has left our house',
    html: HTML,
  });
  if (answer.status !== 200) throw new Error(answer.text);
  return { to, at, answer: epochNow() - at };
}

function inOrder(numbers: number[]): number[] {
  return numbers.toSorted((a, b) => a - b);
}

function at(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function print(title: string, { answers, times }: Measured): void {
  const row = (numbers: number[]) =>
    `p50 ${at(numbers, 0.5).toFixed(0)} ms, p99 ${at(numbers, 0.99).toFixed(0)} ms, worst ${at(numbers, 1).toFixed(0)} ms`;
  console.log(`\n${title}: ${times.length} messages at ${PER_SECOND}/s`);
  console.log(`  request to answer       ${row(answers)}`);
  console.log(`  request to delivered    ${row(times)}`);
}
