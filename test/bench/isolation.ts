import { setTimeout as sleep } from 'node:timers/promises';
import { startDaemon } from '../support/daemon.ts';
import type { DnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startSilentHosts } from './backlog/destinations.ts';
import { startBenchmarkProcess } from './benchmark-process.ts';
import type { LoadJob, LoadReport } from './load.ts';
import { thisMachine } from './machine.ts';
import { htmlOf, SUBJECT } from './message.ts';
import { readOptions } from './options.ts';
import { publishRecipients, RECIPIENT_DOMAINS, startBenchmarkDns, startReceiver } from './receiver.ts';
import { createResources } from './resources.ts';
import { median, percentile } from './result.ts';

/*
 * Whether mail to one destination, and of one account, delays the mail of others:
 *
 *     npm run build && npm run bench:isolation
 *
 * 1. Delivery rate to a healthy site, alone, and while mail waits for a site that accepts connections and never replies
 *    and for one that refuses them. The rate should drop by less than 10 %.
 * 2. Time from the request to the arrival of single messages of one account while the 100,000 messages of another account
 *    that are in the queue are being delivered. Each should arrive within a second.
 *
 * The sink and the load generator use the same cores: compare the ratio of the medians.
 */
const values = readOptions({
  command: 'npm run bench:isolation',
  summary: `Delivery rate to a healthy site next to dead ones, and the time until single messages leave while another account
has a long queue. Exits with 1 when the rate drops by 10 % or a message needs more than a second.
Build first (npm run build).`,
  options: {
    messages: { integer: 4000, help: 'messages of each round' },
    rounds: { integer: 3, help: 'rounds without and with the dead sites' },
    dead: { integer: 2000, help: 'messages that wait for each of the two dead sites' },
    recipients: { integer: 100_000, help: 'recipients of the large account' },
    singles: { integer: 20, help: 'single messages of the other account' },
    json: { flag: 'print the result as JSON' },
  },
});

const TARPIT = { domain: 'tarpits.example', address: '127.0.2.1' };
const REFUSING = { domain: 'refuses.example', address: '127.0.2.2' };
const PATH = '/transactional/send';
const MAX_SINGLE_MS = 30_000;
const MAX_DROP = 0.1;
const MAX_DELAY_MS = 1000;
const TARPIT_TIMEOUT_MS = 60_000;

interface Result {
  /** Messages delivered per second, by round. */
  alone: number[];
  withDeadSites: number[];
  /** 1 minus the ratio of the medians. */
  drop: number;
  /** Maximum of simultaneous connections to the tarpit. */
  tarpitConnections: number;
  /** Messages of the large account in the queue at the first and at the last single message. */
  queued: [number, number];
  /** Milliseconds from the request to the arrival of each single message, ascending. */
  singles: number[];
  /** Single messages that did not arrive. */
  missing: number;
}

const resources = await createResources();
await resources.run(async () => {
  const result = await bench();
  if (values.json) console.log(JSON.stringify({ machine: thisMachine(), ...result }, null, 2));
  else print(result);
  return !isMissed(result);
});

async function bench(): Promise<Result> {
  const receiver = await resources.start(() => startReceiver());
  const dns = await resources.start(startBenchmarkDns);
  publishRecipients(dns);
  for (const site of [TARPIT, REFUSING]) publishSite(dns, site);
  const tarpit = await resources.start(() => startSilentHosts([TARPIT.address], receiver.port));
  const daemon = await resources.start(() =>
    startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': receiver.port,
      'delivery.allowPrivateNetworks': true,
      'log.level': 'error',
    }),
  );
  await verifiedDomain(daemon, dns, 'shop.example');
  const large = await daemon.account('Large');
  await verifiedDomain(daemon, dns, 'large.example', { api: large });
  const load = startBenchmarkProcess<LoadJob, LoadReport>(new URL('load.ts', import.meta.url));
  await resources.start(() => Promise.resolve(load));

  const port = Number(new URL(daemon.baseUrl).port);
  let first = 0;
  const send = (api: typeof daemon.api, from: string, count: number, domains: string[]) => {
    const job: LoadJob = {
      kind: 'run',
      port,
      path: PATH,
      headers: { 'X-Api-Key': api.keys.transactional, 'X-Id': api.accountId },
      body: { from: `Shop <news@${from}>`, subject: SUBJECT, html: htmlOf(10_240) },
      domains,
      connections: 30,
      first,
      count,
      bound: null,
    };
    first += count;
    return load.request(job);
  };
  const round = async (): Promise<number> => {
    await receiver.reset();
    const { startedAt, accepted } = await send(
      daemon.api,
      'shop.example',
      values.messages,
      RECIPIENT_DOMAINS,
    );
    const counts = await receiver.waitFor(accepted);
    if (counts.recipients < accepted) throw new Error(`${accepted - counts.recipients} messages are missing`);
    return counts.recipients / ((counts.lastAt - startedAt) / 1000);
  };

  await round();
  const alone: number[] = [];
  for (let n = 0; n < values.rounds; n++) alone.push(await round());

  await send(daemon.api, 'shop.example', 2 * values.dead, [TARPIT.domain, REFUSING.domain]);
  await eventually('a connection to the tarpit', () => tarpit.peak() > 0, { ms: TARPIT_TIMEOUT_MS });
  const withDeadSites: number[] = [];
  for (let n = 0; n < values.rounds; n++) withDeadSites.push(await round());

  // Paused until all of it is accepted, so that the queue holds it when the single messages come.
  const account = ['--account', large.accountId];
  await daemon.cli('queue', 'pause', ...account, '--reason', 'benchmark');
  await send(large, 'large.example', values.recipients, RECIPIENT_DOMAINS);
  const queued = () => daemon.metric('postrider_queue_messages');
  const before = await queued();
  await receiver.reset();
  await daemon.cli('queue', 'resume', ...account);
  await eventually('a message of the large account', async () => (await receiver.counts()).recipients > 0, {
    ms: MAX_SINGLE_MS,
    everyMs: 10,
  });
  const requested = new Map<string, number>();
  for (let n = 0; n < values.singles; n++) {
    const to = `timed${n}@${RECIPIENT_DOMAINS[n % RECIPIENT_DOMAINS.length]}`;
    requested.set(to, Date.now());
    const response = await fetch(`${daemon.baseUrl}${PATH}`, {
      method: 'POST',
      headers: {
        'X-Api-Key': daemon.api.keys.transactional,
        'X-Id': daemon.api.accountId,
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ from: 'Shop <news@shop.example>', to, subject: SUBJECT, html: htmlOf(10_240) }),
    });
    if (!response.ok) throw new Error(`a single message was answered ${response.status}`);
    await response.arrayBuffer();
    await sleep(250);
  }
  const after = await queued();
  const until = Date.now() + MAX_SINGLE_MS;
  let arrivals = await receiver.arrivals();
  while (arrivals.size < requested.size && Date.now() < until) {
    await sleep(100);
    arrivals = await receiver.arrivals();
  }
  const singles = [...requested].flatMap(([to, at]) => {
    const arrived = arrivals.get(to);
    return arrived === undefined ? [] : [arrived - at];
  });
  return {
    alone,
    withDeadSites,
    drop: 1 - median(withDeadSites) / median(alone),
    tarpitConnections: tarpit.peak(),
    queued: [before, after],
    singles: singles.toSorted((a, b) => a - b),
    missing: requested.size - singles.length,
  };
}

function publishSite(dns: DnsServer, { domain, address }: typeof TARPIT): void {
  dns.set(domain, 'MX', [`10 mx.${domain}`]);
  dns.set(`mx.${domain}`, 'A', [address]);
}

function print({ alone, withDeadSites, drop, tarpitConnections, queued, singles, missing }: Result): void {
  const rates = (list: readonly number[]) => list.map((rate) => rate.toFixed(0)).join(', ');
  console.log(`healthy site alone:           ${rates(alone)} messages/s`);
  console.log(
    `with a tarpit and a refusing site: ${rates(withDeadSites)} messages/s (${tarpitConnections} connections held)`,
  );
  console.log(`drop of the median: ${(100 * drop).toFixed(1)} %`);
  const times = [0.5, 0.99].map((share) => percentile(singles, share).toFixed(0));
  console.log(
    `single messages while another account has ${queued[0]} to ${queued[1]} queued: p50 ${times[0]} ms, p99 ${times[1]} ms, max ${singles.at(-1)} ms; ${missing} missing`,
  );
}

/** Whether a goal is missed. */
function isMissed({ drop, singles, missing }: Result): boolean {
  return !(drop < MAX_DROP) || missing > 0 || (singles.at(-1) ?? Number.POSITIVE_INFINITY) > MAX_DELAY_MS;
}
