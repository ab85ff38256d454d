import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiClient, createApiClient } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import type { DnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import {
  type BacklogDestinations,
  LIVE_HOSTS,
  publishBacklog,
  startSilentHosts,
} from './backlog/destinations.ts';
import { fillBacklog } from './backlog/fill.ts';
import { type BenchmarkProcess, epochNow, startBenchmarkProcess } from './benchmark-process.ts';
import type { LoadJob, LoadReport } from './load.ts';
import { thisMachine } from './machine.ts';
import { htmlOf, SUBJECT } from './message.ts';
import { readOptions } from './options.ts';
import {
  publishRecipients,
  RECIPIENT_DOMAINS,
  type Receiver,
  startBenchmarkDns,
  startReceiver,
} from './receiver.ts';
import { createResources } from './resources.ts';
import { median } from './result.ts';

const options = readOptions({
  command: 'npm run bench:backlog',
  summary: `Sends new messages with an empty queue, and with a million queued and deferred messages to 5,000 destinations,
a third of them dead, in turns. Exits with 1 when a rate with the backlog is below 80 % of that without, when the
resident memory reaches 400 MB, or when the first message is delivered later than 10 s after the start of the process.
Build first (npm run build).`,
  options: {
    messages: { integer: 1_000_000, help: 'messages of the backlog' },
    destinations: { integer: 5000, help: 'destinations of the backlog' },
    sends: { integer: 5000, help: 'new messages of each round' },
    settle: { integer: 60, min: 0, help: 'seconds from the first delivery to the measurement' },
    rounds: { integer: 2, help: 'rounds with the empty queue and with the backlog' },
    json: { flag: 'print the result as JSON' },
  },
});

const WARM_UP = 500;
const CONNECTIONS = 32;
const FROM = 'news@sender.example';
const MIN_RATIO = 0.8;
const MAX_RSS_MB = 400;
const MAX_FIRST_DELIVERY_SECONDS = 10;
const SAMPLE_INTERVAL_MS = 250;
const FIRST_DELIVERY_TIMEOUT_MS = 120_000;

interface Round {
  acceptedPerSecond: number;
  /** All messages that arrived at the sink in the time of the round, those of the backlog, too. */
  deliveredPerSecond: number;
  /** The same per second of CPU time of the main thread: on a shared machine the rates depend on its other work. */
  acceptedPerCpuSecond: number;
  deliveredPerCpuSecond: number;
  /** Response time. */
  p99: number;
  /** Peak of the resident memory since the start, in MB (1,000,000 bytes). */
  peakMB: number;
  /** From the start of the process to the first message at the sink; null: nothing was in the queue. */
  firstDeliverySeconds: number | null;
  /** Messages in the queue at the end. */
  queued: number;
}

interface BacklogReport {
  machine: ReturnType<typeof thisMachine>;
  messages: number;
  deferred: number;
  empty: Round[];
  backlog: Round[];
  /** The first delivery after a kill -9 in the middle of the backlog. */
  afterKillSeconds: number;
  acceptRatio: number;
  deliverRatio: number;
  peakMB: number;
  faults: string[];
}

interface Environment {
  dns: DnsServer;
  receiver: Receiver;
  load: BenchmarkProcess<LoadJob, LoadReport>;
}

const resources = await createResources();
let sent = 0;
await resources.run(async () => {
  const report = await bench();
  if (options.json) console.log(JSON.stringify(report, null, 2));
  else print(report);
  return report.faults.length === 0;
});

async function bench(): Promise<BacklogReport> {
  const machine = thisMachine();
  const receiver = await resources.start(() => startReceiver({ hosts: LIVE_HOSTS }));
  const dns = await resources.start(startBenchmarkDns);
  publishRecipients(dns);
  const destinations = publishBacklog(dns, options.destinations);
  await resources.start(() => startSilentHosts(destinations.silentHosts, receiver.port));
  const load = await resources.start(async () =>
    startBenchmarkProcess<LoadJob, LoadReport>(new URL('load.ts', import.meta.url)),
  );
  const environment = { dns, receiver, load };
  const dirs = { empty: join(tmpdir(), 'empty'), backlog: join(tmpdir(), 'backlog') };
  const { api, deferred } = await prepare(environment, dirs, destinations);

  const empty: Round[] = [];
  const backlog: Round[] = [];
  for (let n = 0; n < options.rounds; n++) {
    empty.push(await round(environment, dirs.empty, api, { isEmpty: true }));
    backlog.push(await round(environment, dirs.backlog, api, { isEmpty: false }));
  }
  const afterKillSeconds = await restartAfterKill(environment, dirs.backlog);
  const ratio = (value: (one: Round) => number) => median(backlog.map(value)) / median(empty.map(value));
  const acceptRatio = ratio((one) => one.acceptedPerSecond);
  const deliverRatio = ratio((one) => one.deliveredPerSecond);
  const peakMB = Math.max(...backlog.map((one) => one.peakMB));
  const firstDeliveries = [...backlog.flatMap((one) => one.firstDeliverySeconds ?? []), afterKillSeconds];
  return {
    machine,
    messages: options.messages,
    deferred,
    empty,
    backlog,
    afterKillSeconds,
    acceptRatio,
    deliverRatio,
    peakMB,
    faults: [
      ...(acceptRatio < MIN_RATIO ? [`accepted messages: ${percent(acceptRatio)} of the empty queue`] : []),
      ...(deliverRatio < MIN_RATIO
        ? [`delivered messages: ${percent(deliverRatio)} of the empty queue`]
        : []),
      ...(peakMB >= MAX_RSS_MB ? [`${peakMB.toFixed(0)} MB of resident memory`] : []),
      ...firstDeliveries
        .filter((seconds) => seconds > MAX_FIRST_DELIVERY_SECONDS)
        .map((seconds) => `first delivery ${seconds.toFixed(1)} s after a start`),
    ],
  };
}

/** Creates the installation with an empty queue, and a copy of it with the backlog. */
async function prepare(
  environment: Environment,
  dirs: { empty: string; backlog: string },
  destinations: BacklogDestinations,
): Promise<{ api: ApiClient; deferred: number }> {
  mkdirSync(dirs.empty);
  const daemon = await startAt(environment, dirs.empty);
  const { api } = daemon;
  const { domainId } = await verifiedDomain(daemon, environment.dns, 'sender.example');
  const first = await api.send({
    from: FROM,
    to: `first@${RECIPIENT_DOMAINS[0]}`,
    subject: SUBJECT,
    html: htmlOf(10_240),
  });
  if (first.status !== 200) throw new Error(first.text);
  await untilEmpty(daemon);
  await resources.stop(daemon);
  cpSync(dirs.empty, dirs.backlog, { recursive: true });
  const began = performance.now();
  const { messages } = options;
  const { accountId } = api;
  const deferred = fillBacklog(dirs.backlog, { messages, accountId, domainId, from: FROM, destinations });
  progress(`${messages} messages inserted in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  return { api, deferred };
}

async function startAt({ dns, receiver }: Environment, dataDir: string): Promise<RunningDaemon> {
  return resources.start(() =>
    startDaemon(
      {
        'data.dir': dataDir,
        'dns.resolvers': [dns.address],
        'delivery.port': receiver.port,
        'delivery.allowPrivateNetworks': true,
        'log.level': 'error',
      },
      // Options of a profiler.
      { NODE_OPTIONS: process.env['NODE_OPTIONS'] },
    ),
  );
}

/** Starts the daemon, sends new messages, and stops it. */
async function round(
  environment: Environment,
  dataDir: string,
  credentials: ApiClient,
  { isEmpty }: { isEmpty: boolean },
): Promise<Round> {
  const { receiver } = environment;
  await receiver.reset();
  const startedAt = epochNow();
  const daemon = await startAt(environment, dataDir);
  const firstDeliverySeconds = isEmpty ? null : await firstDelivery(receiver, startedAt);
  const api = createApiClient(daemon.baseUrl, credentials);
  const send = (count: number) => environment.load.request(jobOf(daemon, api, count));
  // Routes of all destinations are looked up, and the first sessions to dead ones have ended.
  if (!isEmpty) await sleep(options.settle * 1000);
  await send(WARM_UP);
  if (isEmpty) await untilEmpty(daemon);
  await receiver.reset();
  const pid = findChild('dist/main.js', 'serve');
  const cpuBefore = processCost(pid).mainThread;
  const report = await send(options.sends);
  if (report.accepted < options.sends) throw new Error(`a request failed: ${report.firstFailure}`);
  // With an empty queue the last messages are still being delivered.
  const counts = await (isEmpty ? receiver.waitFor(options.sends) : receiver.counts());
  const { mainThread, peakMiB } = processCost(pid);
  const result = {
    acceptedPerSecond: report.accepted / ((report.endedAt - report.startedAt) / 1000),
    acceptedPerCpuSecond: report.accepted / (mainThread - cpuBefore),
    deliveredPerCpuSecond: counts.messages / (mainThread - cpuBefore),
    deliveredPerSecond: counts.messages / ((counts.lastAt - report.startedAt) / 1000),
    p99: report.p99,
    firstDeliverySeconds,
    queued: await daemon.metric('postrider_queue_messages'),
    peakMB: (peakMiB * 2 ** 20) / 1e6,
  };
  await resources.stop(daemon);
  progress(`${isEmpty ? 'empty  ' : 'backlog'}  ${lineOf(result)}`);
  return result;
}

/** Kills the daemon while it delivers, starts it again; returns the seconds to the first delivery. */
async function restartAfterKill(environment: Environment, dataDir: string): Promise<number> {
  const { receiver } = environment;
  const daemon = await startAt(environment, dataDir);
  await receiver.reset();
  await firstDelivery(receiver, epochNow());
  await daemon.kill('SIGKILL');
  // Connections of the killed process have ended when their data was read.
  await sleep(SAMPLE_INTERVAL_MS);
  await receiver.reset();
  const startedAt = epochNow();
  await daemon.restart();
  const seconds = await firstDelivery(receiver, startedAt);
  await resources.stop(daemon);
  return seconds;
}

/** Seconds from `startedAt` to the first message at the sink. */
async function firstDelivery(receiver: Receiver, startedAt: number): Promise<number> {
  const { firstAt } = await eventually(
    'the first message at the sink',
    async () => {
      const counts = await receiver.counts();
      return counts.firstAt > 0 && counts;
    },
    { ms: FIRST_DELIVERY_TIMEOUT_MS, everyMs: 20 },
  );
  return (firstAt - startedAt) / 1000;
}

async function untilEmpty(daemon: RunningDaemon): Promise<void> {
  await eventually(
    'the queue to be empty',
    async () => (await daemon.metric('postrider_queue_messages')) === 0,
    { ms: FIRST_DELIVERY_TIMEOUT_MS, everyMs: 100 },
  );
}

function jobOf({ baseUrl }: RunningDaemon, { keys, accountId }: ApiClient, count: number): LoadJob {
  const first = sent;
  sent += count;
  return {
    kind: 'run',
    port: Number(new URL(baseUrl).port),
    path: '/transactional/send',
    headers: { 'X-Api-Key': keys.transactional, 'X-Id': accountId },
    body: { from: `Shop <${FROM}>`, subject: SUBJECT, html: htmlOf(10_240) },
    domains: RECIPIENT_DOMAINS,
    connections: CONNECTIONS,
    first,
    count,
    bound: null,
  };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function progress(text: string): void {
  console.error(`${text}; load ${readFileSync('/proc/loadavg', 'utf8').split(' ')[0]}`);
}

function lineOf(round: Round): string {
  const { acceptedPerSecond, deliveredPerSecond, p99, peakMB, queued, firstDeliverySeconds } = round;
  const perCpuSecond = `${round.acceptedPerCpuSecond.toFixed(0)} and ${round.deliveredPerCpuSecond.toFixed(0)} per CPU second of the main thread`;
  const first =
    firstDeliverySeconds === null ? '' : `, first delivery after ${firstDeliverySeconds.toFixed(1)} s`;
  return `accepted ${acceptedPerSecond.toFixed(0)}/s, delivered ${deliveredPerSecond.toFixed(0)}/s, ${perCpuSecond}, p99 ${p99.toFixed(0)} ms, ${peakMB.toFixed(0)} MB, ${queued} queued${first}`;
}

function print(report: BacklogReport): void {
  const { machine, messages, deferred } = report;
  console.log(`${machine.cores} × ${machine.cpu}, Node ${machine.node}, load before ${machine.load}`);
  console.log(`${messages} messages to ${options.destinations} destinations, ${deferred} of them deferred`);
  for (const one of report.empty) console.log(`empty queue  ${lineOf(one)}`);
  for (const one of report.backlog) console.log(`backlog      ${lineOf(one)}`);
  console.log(
    `accepted ${percent(report.acceptRatio)}, delivered ${percent(report.deliverRatio)} of the empty queue; ${report.peakMB.toFixed(0)} MB; first delivery ${report.afterKillSeconds.toFixed(1)} s after a kill -9`,
  );
  for (const fault of report.faults) console.log(`FAULT: ${fault}`);
}
