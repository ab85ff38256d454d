import { findChild, processCost } from '../../support/process-cost.ts';
import { startBenchmarkProcess } from '../benchmark-process.ts';
import type { LoadBound, LoadJob, LoadReport } from '../load.ts';
import { htmlOf, SUBJECT } from '../message.ts';
import { RECIPIENT_DOMAINS, type Receiver } from '../receiver.ts';
import { addCounts, deliveryResult, faultsOf, percentile, type RunResult } from '../result.ts';
import type { SteadyJob, SteadyReport } from '../steady.ts';
import type { Delay, RunningInstallation } from './installation.ts';

/** Measures the throughput of sends, and response times at a constant rate. */
export interface SendMeasures {
  /** Throughput with at most IN_FLIGHT messages that are accepted and not yet delivered. */
  burst(count: number): Promise<RunResult & { delay: Delay }>;
  /** Sends at a constant rate until `work` has ended. */
  during(work: Promise<unknown>): Promise<SteadyResult>;
  stop(): Promise<void>;
}

/** Times in ms from the time at which a request is due to its response. */
export interface SteadyResult {
  sends: number;
  p50: number;
  p99: number;
  max: number;
  seconds: number;
  delay: Delay;
  failed: Record<string, number>;
}

const SESSIONS = 32;
const IN_FLIGHT = 1000;
const PER_SECOND = 50;
const HTML_BYTES = 10_240;
/** Duration of one request to the process that sends at a constant rate. */
const PORTION_MS = 1000;

export function measureSends(installation: RunningInstallation, receiver: Receiver): SendMeasures {
  const { daemon, probe, accounts } = installation;
  const [owner] = accounts;
  if (owner === undefined) throw new Error('the installation has no account');
  const load = startBenchmarkProcess<LoadJob | LoadBound, LoadReport>(new URL('../load.ts', import.meta.url));
  const steady = startBenchmarkProcess<SteadyJob, SteadyReport>(new URL('../steady.ts', import.meta.url));
  const server = findChild('dist/main.js', 'serve');
  const target = {
    port: Number(new URL(daemon.baseUrl).port),
    path: '/transactional/send',
    headers: { 'X-Api-Key': owner.keys.transactional, 'X-Id': owner.accountId },
    body: {
      from: 'Shop <orders@shop.example>',
      subject: SUBJECT,
      html: htmlOf(HTML_BYTES),
    },
    domains: RECIPIENT_DOMAINS,
  };
  let first = 0;
  return {
    burst: async (count) => {
      await receiver.reset();
      await probe.delay();
      const before = {
        server: processCost(server),
        load: processCost(load.pid).cpu,
        sink: processCost(receiver.pid).cpu,
      };
      const arrived = receiver.waitFor(count, ({ messages }) =>
        load.notify({ kind: 'bound', upTo: messages + IN_FLIGHT }),
      );
      const [report, sink] = await Promise.all([
        load.request({ kind: 'run', ...target, connections: SESSIONS, first, count, bound: IN_FLIGHT }),
        arrived.finally(() => load.notify({ kind: 'bound', upTo: count })),
      ]);
      first += count;
      const after = processCost(server);
      const each = (seconds: number) => (seconds * 1000) / count;
      const result: RunResult = {
        name: 'sends',
        ...deliveryResult(report.accepted, { startedAt: report.startedAt, acceptedAt: report.endedAt }, sink),
        cpuMs: {
          server: each(after.cpu - before.server.cpu),
          mainThread: each(after.mainThread - before.server.mainThread),
          load: each(processCost(load.pid).cpu - before.load),
          sink: each(processCost(receiver.pid).cpu - before.sink),
        },
        peakMiB: after.peakMiB,
        responseMs: { p50: report.p50, p99: report.p99 },
        failed: report.failed,
      };
      const [fault] = faultsOf(result);
      if (fault !== undefined) throw new Error(`sends: ${fault} ${report.firstFailure}`);
      return { ...result, delay: await probe.delay() };
    },
    during: async (work) => {
      const over = new AbortController();
      const ended = work.finally(() => over.abort());
      // `await ended` throws its error after the current portion.
      ended.catch(() => {});
      await probe.delay();
      const began = performance.now();
      const latencies: number[] = [];
      const failed: Record<string, number> = {};
      do {
        const report = await steady.request({ ...target, perSecond: PER_SECOND, ms: PORTION_MS });
        latencies.push(...report.latencies);
        addCounts(failed, report.failed);
      } while (!over.signal.aborted);
      await ended;
      const seconds = (performance.now() - began) / 1000;
      const delay = await probe.delay();
      latencies.sort((a, b) => a - b);
      return {
        sends: latencies.length,
        p50: percentile(latencies, 0.5),
        p99: percentile(latencies, 0.99),
        max: latencies.at(-1) ?? 0,
        seconds,
        delay,
        failed,
      };
    },
    stop: async () => {
      await load.stop();
      await steady.stop();
    },
  };
}
