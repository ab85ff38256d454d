import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { startGroup } from '../support/group.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { epochNow } from './benchmark-process.ts';
import { thisMachine } from './machine.ts';
import { htmlOf, SUBJECT } from './message.ts';
import { readOptions } from './options.ts';
import { publishRecipients, RECIPIENT_DOMAINS, type Receiver, startReceiver } from './receiver.ts';
import { createResources } from './resources.ts';
import { percentile } from './result.ts';

/*
 * Delivery time of transactional messages while a campaign is sent:
 *
 *     npm run build && npm run bench:campaign -- --members 20000
 *
 *   benchmark ──HTTP, 20 per second──▶ postrider serve ──SMTP──▶ sink    the MX hosts of the campaign
 *                                      └ campaign to 20,000 ───▶
 *
 * The same stream is also sent before the campaign, for comparison. Times are from the request to the sink's 250, which
 * is longer than from acceptance to delivery. Exits with 1 when the 99th percentile is a second or more.
 *
 * A campaign to a part of the group precedes both: until then V8 compiles the program, which takes a tenth of the CPU time of a
 * campaign to 20,000 people, and nothing of one to a million.
 */
const ALONE_SECONDS = 5;
/** People that receive the first campaign. */
const WARM_UP_MEMBERS = 10_000;
const LIMIT_MS = 1000;

const values = readOptions({
  command: 'npm run bench:campaign',
  summary: `Delivery time of transactional messages while a campaign is sent. Exits with 1 when the 99th percentile is a
second or more. Build first (npm run build).`,
  options: {
    members: { integer: 20_000, help: 'members of the group' },
    'per-second': { integer: 20, help: 'transactional messages per second' },
    size: { integer: 10_240, help: 'bytes of html of each transactional message' },
    segment: { flag: 'send to a segment that all members are in' },
    'campaign-size': { integer: 10_240, help: 'bytes of html of the campaign' },
  },
});
const MEMBERS = values.members;
const PER_SECOND = values['per-second'];
const HTML = htmlOf(values.size);
const CAMPAIGN_HTML = htmlOf(values['campaign-size']);

const resources = await createResources();
await resources.run(bench);

interface Analytics {
  totals: { delivered: number };
}

async function bench(): Promise<boolean> {
  const { cpu, cores, load } = thisMachine();
  const receiver = await resources.start(() => startReceiver());
  const daemon = await resources.start(() => startSender(receiver));
  console.log(`${cores} × ${cpu}, Node ${process.version}, load ${load}`);
  const people = Array.from({ length: MEMBERS }, (_, n) => ({
    email: `reader${n}@${RECIPIENT_DOMAINS[n % RECIPIENT_DOMAINS.length]}`,
    firstName: `Reader ${n}`,
  }));
  const sendTo = async ({ campaignId, subscriptionGroupId }: Awaited<ReturnType<typeof startGroup>>) => {
    const sent = await daemon.api.post(`/web-setup/campaigns/${campaignId}/send`, {
      from: 'News <news@news.example>',
      subject: 'News for {{firstName}}',
      html: CAMPAIGN_HTML,
      subscriptionGroupId,
      ...(values.segment ? { segmentId: await segmentOfAll(daemon) } : {}),
    });
    if (sent.status !== 202) throw new Error(sent.text);
  };
  const delivered = async (campaignId: string) =>
    (await daemon.api.get<Analytics>(`/web-setup/campaigns/${campaignId}/analytics`)).data.totals.delivered;

  const warmUp = people.slice(0, Math.max(1, Math.min(MEMBERS, WARM_UP_MEMBERS)));
  const first = await startGroup(daemon.api, warmUp);
  await sendTo(first);
  while ((await delivered(first.campaignId)) < warmUp.length) await sleep(250);
  const group = await startGroup(daemon.api, people);

  await receiver.reset();
  const alone = await sendDuring(daemon, receiver, 'alone', sleep(ALONE_SECONDS * 1000));
  print('transactional messages only', alone);

  await receiver.reset();
  const before = processCost(findChild('dist/main.js', 'serve'));
  await sendTo(group);
  const began = epochNow();
  let endedAt = began;
  const campaign = async () => {
    for (;;) {
      const count = await delivered(group.campaignId);
      endedAt = epochNow();
      if (count >= MEMBERS) return;
      await sleep(250);
    }
  };
  const concurrent = await sendDuring(daemon, receiver, 'concurrent', campaign());
  const seconds = (endedAt - began) / 1000;
  const after = processCost(findChild('dist/main.js', 'serve'));
  const { recipients } = await receiver.counts();
  print(
    `during a campaign to ${MEMBERS} (${(MEMBERS / seconds).toFixed(0)}/s, ${seconds.toFixed(1)} s)`,
    concurrent,
  );
  const perMessage = (kind: 'cpu' | 'mainThread') =>
    (((after[kind] - before[kind]) * 1000) / (MEMBERS + concurrent.times.length)).toFixed(3);
  console.log(
    `CPU of the server ${perMessage('cpu')} ms per message, of its main thread ${perMessage('mainThread')} ms; peak memory ${after.peakMiB.toFixed(0)} MiB`,
  );
  const missing = MEMBERS + concurrent.times.length - recipients;
  if (missing > 0) console.log(`FAULT: ${missing} messages did not arrive at the sink`);
  return missing === 0 && percentile(concurrent.times, 0.99) < LIMIT_MS;
}

/** Creates a segment with all contacts, by two conditions. */
async function segmentOfAll({ api }: RunningDaemon): Promise<string> {
  const filter = {
    all: [{ field: 'email', op: 'exists' }, { not: { opened: { withinDays: 30 } } }],
  };
  const created = await api.post<{ segment: { segmentId: string } }>('/web-setup/segments', {
    name: `All ${crypto.randomUUID()}`,
    filter,
  });
  return created.data.segment.segmentId;
}

async function startSender(receiver: Receiver): Promise<RunningDaemon> {
  const dns = await startDnsServer();
  publishRecipients(dns);
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

/** Times from the request, in ms, ascending. */
interface Measurement {
  /** To the response. */
  responses: number[];
  /** To the sink's 250. */
  times: number[];
}

/** Sends transactional messages at a constant rate until `work` has ended, and waits for their arrival. */
async function sendDuring(
  daemon: RunningDaemon,
  receiver: Receiver,
  name: string,
  work: Promise<void>,
): Promise<Measurement> {
  const sends: Promise<{ to: string; at: number; responseMs: number }>[] = [];
  const over = new AbortController();
  const ended = work.finally(() => over.abort());
  const began = epochNow();
  for (let n = 0; !over.signal.aborted; n++) {
    const wait = began + (n * 1000) / PER_SECOND - epochNow();
    if (wait > 0) await sleep(wait);
    sends.push(send(daemon, `timed${name}${n}@${RECIPIENT_DOMAINS[n % RECIPIENT_DOMAINS.length]}`));
  }
  await ended;
  const sent = await Promise.all(sends);
  let arrivals = await receiver.arrivals();
  for (let tries = 0; arrivals.size < sent.length && tries < 300; tries++) {
    await sleep(100);
    arrivals = await receiver.arrivals();
  }
  const times = sent.map(({ to, at }) => (arrivals.get(to) ?? Number.POSITIVE_INFINITY) - at);
  return { responses: ascending(sent.map(({ responseMs }) => responseMs)), times: ascending(times) };
}

async function send(daemon: RunningDaemon, to: string) {
  const at = epochNow();
  const response = await daemon.api.send({
    from: 'Shop <shop@shop.example>',
    to,
    subject: SUBJECT,
    html: HTML,
  });
  if (response.status !== 200) throw new Error(response.text);
  return { to, at, responseMs: epochNow() - at };
}

function ascending(numbers: number[]): number[] {
  return numbers.toSorted((a, b) => a - b);
}

function print(title: string, { responses, times }: Measurement): void {
  const row = (numbers: number[]) =>
    [
      ['p50', 0.5],
      ['p99', 0.99],
      ['max', 1],
    ]
      .map(([name, share]) => `${name} ${percentile(numbers, Number(share)).toFixed(0)} ms`)
      .join(', ');
  console.log(`\n${title}: ${times.length} messages at ${PER_SECOND}/s`);
  console.log(`  request to response     ${row(responses)}`);
  console.log(`  request to delivery     ${row(times)}`);
}
