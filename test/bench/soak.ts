import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { freePort } from '../support/free-port.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startBenchmarkProcess } from './benchmark-process.ts';
import type { LoadBound, LoadJob, LoadReport } from './load.ts';
import { thisMachine } from './machine.ts';
import { htmlOf, SUBJECT } from './message.ts';
import { readOptions } from './options.ts';
import { startBenchmarkDns } from './receiver.ts';
import { createResources } from './resources.ts';
import {
  applyDnsFaults,
  type FaultName,
  faultsAt,
  publishPeers,
  SOAK_DOMAINS,
  UNRESOLVABLE,
} from './soak/faults.ts';
import { type Growth, growthOf, type Sample, takeSample } from './soak/growth.ts';
import { startHook } from './soak/hook.ts';
import { compareSoak, type SoakLedger } from './soak/ledger.ts';
import type { PeersRequest, PeersResponse } from './soak/peers.ts';
import { createReporter } from './soak/reporters.ts';

const options = readOptions({
  command: 'npm run soak',
  summary: `Sends at 70 % of the measured peak while destinations, name servers and a webhook endpoint fail in cycles and
bounces come in. Compares every message at the destinations and in the database, and the growth of memory,
handles and write-ahead log in the second half of the test with a limit. Exits with 1 for a lost or repeated
message, and for growth above the limit. Run it on an otherwise idle machine; build first (npm run build).`,
  options: {
    minutes: { number: 30, help: 'duration of the faults' },
    rate: { integer: 0, min: 0, help: 'messages per second; 0: --share percent of the measured peak' },
    share: { integer: 70, help: 'percentage of the peak' },
    peak: { integer: 5000, help: 'messages of the burst that measures the peak' },
    counts: { flag: 'compare messages only, and ignore growth: for short runs on busy machines' },
    json: { flag: 'print the result with all samples as JSON' },
  },
});

const WARM_UP = 500;
const CYCLE_SECONDS = 120;
const TURN_MS = 500;
const SAMPLE_INTERVAL_MS = 5000;
const PACE_INTERVAL_MS = 20;
/** From the acceptance of a message to its bounce. */
const BOUNCE_DELAY_MS = 5000;
/** For the backlog after the last message. */
const MAX_DRAIN_SECONDS = 600;
/** Longer than a failed lookup of a destination is cached (60 s). */
const NO_ARRIVAL_MS = 90_000;

interface SoakReport {
  machine: ReturnType<typeof thisMachine>;
  peakPerSecond: number;
  perSecond: number;
  minutes: number;
  injected: Partial<Record<FaultName, number>>;
  webhook: { accepted: number; failed: number };
  responseMs: { p50: number; p99: number };
  peakMiB: number;
  drainSeconds: number;
  ledger: SoakLedger;
  growth: Growth[];
  samples: Sample[];
  faults: string[];
}

const machine = thisMachine();
const resources = await createResources();
await resources.run(async () => {
  const report = await soak();
  if (options.json) console.log(JSON.stringify(report, null, 2));
  else print(report);
  return report.faults.length === 0;
});

async function soak(): Promise<SoakReport> {
  const peers = await resources.start(async () =>
    startBenchmarkProcess<PeersRequest, PeersResponse>(new URL('soak/peers.ts', import.meta.url)),
  );
  const { port } = await peers.request({ kind: 'counts' });
  const dns = await resources.start(startBenchmarkDns);
  publishPeers(dns);
  const hook = await resources.start(startHook);
  const mxPort = await freePort();
  const dataDir = mkdtempSync(join(tmpdir(), 'data-'));
  const daemon = await resources.start(() =>
    startDaemon({
      'data.dir': dataDir,
      'dns.resolvers': [dns.address],
      'dns.timeoutMs': 2000,
      'delivery.port': port,
      'delivery.allowPrivateNetworks': true,
      // The end of a fault has an effect within its cycle.
      'delivery.retry.first': '2s',
      'delivery.retry.greylisted': '2s',
      'delivery.retry.max': '15s',
      'mx.listen': `127.0.0.1:${mxPort}`,
      'log.level': 'error',
    }),
  );
  const pid = findChild('dist/main.js', 'serve');
  await verifiedDomain(daemon, dns, 'sender.example');
  const events = ['email_bounced'];
  const webhook = await daemon.api.post('/web-setup/webhooks', { url: hook.url, events });
  if (webhook.status >= 300) throw new Error(webhook.text);
  const load = await resources.start(async () =>
    startBenchmarkProcess<LoadJob | LoadBound, LoadReport>(new URL('load.ts', import.meta.url)),
  );

  let accepted = 0;
  const failures: string[] = [];
  /** Sends the next `count` messages, `perSecond` or as fast as they are accepted. */
  const send = async (count: number, perSecond: number | null): Promise<LoadReport> => {
    const first = accepted;
    const began = performance.now();
    const pace = setInterval(() => {
      const due = perSecond === null ? count : ((performance.now() - began) * perSecond) / 1000;
      load.notify({ kind: 'bound', upTo: Math.min(count, Math.floor(due)) });
    }, PACE_INTERVAL_MS);
    try {
      const report = await load.request(jobOf(daemon, first, count));
      accepted += count;
      for (const [status, n] of Object.entries(report.failed))
        failures.push(`${n} requests were answered ${status}: ${report.firstFailure}`);
      return report;
    } finally {
      clearInterval(pace);
    }
  };
  const untilDelivered = () =>
    untilIdle(daemon, async () => (await peers.request({ kind: 'counts' })).messages, MAX_DRAIN_SECONDS);

  await send(WARM_UP, null);
  await untilDelivered();
  const startedAt = performance.now();
  await send(options.peak, null);
  await untilDelivered();
  const peakPerSecond = options.peak / ((performance.now() - startedAt) / 1000);
  const perSecond = options.rate || Math.max(1, Math.floor((peakPerSecond * options.share) / 100));
  progress(`peak ${peakPerSecond.toFixed(0)}/s; sending ${perSecond}/s for ${options.minutes} minutes`);

  const seconds = options.minutes * 60;
  const cycle = Math.min(CYCLE_SECONDS, seconds / 2);
  const samples: Sample[] = [];
  const reporter = createReporter(mxPort);
  const waiting: { at: number; messages: [string, string][] }[] = [];
  let reporting: Promise<void> = Promise.resolve();
  /** Sends the bounces of messages that were accepted long enough ago. */
  const reportBounces = async (minAgeMs: number) => {
    const { reportable = [] } = await peers.request({ kind: 'reportable' });
    waiting.push({ at: performance.now(), messages: reportable });
    const due = waiting.filter(({ at }) => performance.now() - at >= minAgeMs);
    waiting.splice(0, due.length);
    const messages = due.flatMap((one) => one.messages);
    reporting = reporting.then(() => reporter.report(messages));
    // Awaited at the end; without a handler now, a failure would end the process without a report.
    reporting.catch(() => {});
  };
  const failedLookups: Partial<Record<FaultName, number>> = {};
  let asked = 0;
  let dnsFault: FaultName | null = null;
  const setFaults = async (active: readonly FaultName[]) => {
    const all = UNRESOLVABLE.reduce((sum, domain) => sum + dns.asked(domain), 0);
    if (dnsFault !== null) failedLookups[dnsFault] = (failedLookups[dnsFault] ?? 0) + all - asked;
    asked = all;
    dnsFault = active.find((fault) => fault === 'servfail' || fault === 'silent DNS') ?? null;
    await peers.request({ kind: 'faults', active });
    applyDnsFaults(dns, active);
    hook.fail(active);
  };

  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 1000;
  const sent = new AbortController();
  const sending = send(Math.floor(perSecond * seconds), perSecond).finally(() => {
    sent.abort();
  });
  sending.catch(() => {});
  let active = '';
  for (let sampledAt = Number.NEGATIVE_INFINITY; !sent.signal.aborted; ) {
    const now = faultsAt((elapsed() % cycle) / cycle);
    if (now.join() !== active) await setFaults(now);
    active = now.join();
    await reportBounces(BOUNCE_DELAY_MS);
    if (performance.now() - sampledAt >= SAMPLE_INTERVAL_MS) {
      sampledAt = performance.now();
      const sample = await takeSample(daemon, pid, elapsed());
      samples.push(sample);
      if (samples.length % 12 === 1) progress(lineOf(sample));
    }
    await sleep(TURN_MS);
  }
  const { p50, p99 } = await sending;
  await setFaults([]);
  await peers.request({ kind: 'release' });
  const drainBegan = performance.now();
  const isEmpty = await untilDelivered();
  const drainSeconds = (performance.now() - drainBegan) / 1000;
  if (!isEmpty) failures.push(`the queue was not empty ${drainSeconds.toFixed(0)} s after the last message`);
  await reportBounces(0);
  await reporting;
  await sleep(BOUNCE_DELAY_MS);
  const { received = '', injected } = await peers.request({ kind: 'received' });
  const { peakMiB } = processCost(pid);
  await resources.stop(daemon);

  const ledger = compareSoak(dataDir, accepted, Buffer.from(received, 'base64'), reporter.reported);
  const growth = growthOf(samples);
  const calls = { accepted: hook.accepted(), failed: hook.failed() };
  if (calls.accepted < ledger.webhookCalls.succeeded)
    failures.push(
      `${ledger.webhookCalls.succeeded} webhook calls succeeded, but the endpoint accepted ${calls.accepted}`,
    );
  const bounces = ledger.bouncedLater + ledger.rejected;
  const deliveries = ledger.webhookCalls.succeeded + ledger.webhookCalls.pending;
  if (deliveries !== bounces)
    failures.push(`${bounces} messages bounced, but there are ${deliveries} webhook deliveries`);
  return {
    machine,
    peakPerSecond,
    perSecond,
    minutes: options.minutes,
    injected: { ...injected, ...failedLookups, 'webhook errors': calls.failed },
    webhook: calls,
    responseMs: { p50, p99 },
    peakMiB,
    drainSeconds,
    ledger,
    growth,
    samples,
    faults: [
      ...failures,
      ...[...reporter.refusals].map((reply) => `a bounce was refused: ${reply}`),
      ...ledger.faults,
      ...(options.counts ? [] : growthFaults(growth)),
    ],
  };
}

function jobOf({ baseUrl, api }: RunningDaemon, first: number, count: number): LoadJob {
  return {
    kind: 'run',
    port: Number(new URL(baseUrl).port),
    path: '/transactional/send',
    headers: { 'X-Api-Key': api.keys.transactional, 'X-Id': api.accountId },
    body: { from: 'Shop <news@sender.example>', subject: SUBJECT, html: htmlOf(10_240) },
    domains: [...SOAK_DOMAINS],
    connections: 32,
    first,
    count,
    bound: 0,
  };
}

/**
 * Waits until the queue is empty. Resolves with false if it is not empty after `maxSeconds`, or if nothing arrived for
 * NO_ARRIVAL_MS.
 */
async function untilIdle(
  daemon: RunningDaemon,
  arrived: () => Promise<number>,
  maxSeconds: number,
): Promise<boolean> {
  const began = performance.now();
  let last = { messages: -1, at: began };
  for (;;) {
    if ((await daemon.metric('postrider_queue_messages')) === 0) return true;
    const messages = await arrived();
    const now = performance.now();
    if (messages > last.messages) last = { messages, at: now };
    if (now - began > maxSeconds * 1000 || now - last.at > NO_ARRIVAL_MS) return false;
    await sleep(100);
  }
}

function growthFaults(growth: readonly Growth[]): string[] {
  return growth
    .filter(({ rise, limit }) => rise > limit)
    .map(
      ({ name, unit, rise, limit }) =>
        `${name} grew by ${rise.toFixed(1)}${unit} in the second half, at most ${limit.toFixed(1)}${unit} allowed`,
    );
}

function progress(text: string): void {
  console.error(text);
}

function lineOf({ seconds, rssMiB, descriptors, handles, walMiB, queued }: Sample): string {
  return `${seconds.toFixed(0).padStart(5)} s: RSS ${rssMiB.toFixed(0)} MiB, ${descriptors} descriptors, ${handles} handles, WAL ${walMiB.toFixed(1)} MiB, ${queued} queued`;
}

function print(report: SoakReport): void {
  const { ledger, injected, webhook, growth } = report;
  const { cores, cpu, node, load } = report.machine;
  console.log(`${cores} × ${cpu}, Node ${node}, load before ${load}`);
  console.log(
    `${report.perSecond} messages/s for ${report.minutes} minutes (peak ${report.peakPerSecond.toFixed(0)}/s), responses p50 ${report.responseMs.p50.toFixed(0)} ms, p99 ${report.responseMs.p99.toFixed(0)} ms`,
  );
  console.log(
    `faults: ${Object.entries(injected)
      .map(([fault, n]) => `${fault} ${n}`)
      .join(', ')}`,
  );
  console.log(
    `accepted ${ledger.accepted}: delivered ${ledger.delivered}, delivered and bounced later ${ledger.bouncedLater}, rejected ${ledger.rejected}, repeated ${ledger.repeated}`,
  );
  console.log(
    `webhook: ${webhook.accepted} events at the endpoint, ${ledger.webhookCalls.succeeded} succeeded, ${ledger.webhookCalls.pending} pending, ${webhook.failed} calls failed`,
  );
  for (const { name, unit, firstHalf, mean, max, rise, limit } of growth)
    console.log(
      `${name.padEnd(18)} first half ${firstHalf.toFixed(1)}${unit}, second half ${mean.toFixed(1)}${unit} (max ${max.toFixed(1)}${unit}), rise ${rise.toFixed(1)}${unit}, limit ${limit.toFixed(1)}${unit}`,
    );
  console.log(
    `peak memory ${report.peakMiB.toFixed(0)} MiB; waited ${report.drainSeconds.toFixed(0)} s for the empty queue`,
  );
  for (const fault of report.faults) console.log(`FAULT: ${fault}`);
}
