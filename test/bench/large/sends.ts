import { findChild, processCost } from '../../support/process-cost.ts';
import { startCompanion } from '../benchmark-process.ts';
import type { LoadBound, LoadJob, LoadReport } from '../load.ts';
import { htmlOf } from '../message.ts';
import type { Receiver } from '../receiver.ts';
import { faultsOf, measured, type RunResult } from '../result.ts';
import type { SteadyJob, SteadyReport } from '../steady.ts';
import { type Delay, RECIPIENT_DOMAINS, type RunningInstallation } from './installation.ts';
import { percentile } from './requests.ts';

/** Sends as fast as mail leaves, and a steady stream beside other work. */
export interface SendMeasures {
  /** Throughput: no more than a bounded number accepted and not yet delivered. */
  burst(count: number): Promise<RunResult & { delay: Delay }>;
  /** A steady stream as long as `work` lasts. */
  beside(work: Promise<unknown>): Promise<SteadyResult>;
  stop(): Promise<void>;
}

/** Of a steady stream: ms from the moment a request is due to its answer. */
export interface SteadyResult {
  sends: number;
  p50: number;
  p99: number;
  max: number;
  seconds: number;
  delay: Delay;
  refused: Record<string, number>;
}

const SESSIONS = 32;
const IN_FLIGHT = 1000;
const PER_SECOND = 50;
const HTML_BYTES = 10_240;
/** A steady stream is asked for in portions of so long. */
const PORTION_MS = 1000;

export function measureSends(installation: RunningInstallation, receiver: Receiver): SendMeasures {
  const { daemon, probe, accounts } = installation;
  const [owner] = accounts;
  if (owner === undefined) throw new Error('the installation has no account');
  const load = startCompanion<LoadJob | LoadBound, LoadReport>(new URL('../load.ts', import.meta.url));
  const steady = startCompanion<SteadyJob, SteadyReport>(new URL('../steady.ts', import.meta.url));
  const server = findChild('dist/main.js', 'serve');
  const target = {
    port: Number(new URL(daemon.baseUrl).port),
    path: '/transactional/send',
    headers: { 'X-Api-Key': owner.keys.transactional, 'X-Id': owner.accountId },
    body: {
      from: 'Shop <orders@shop.example>',
      subject: 'Your order has left our house',
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
        load.tell({ kind: 'bound', upTo: messages + IN_FLIGHT }),
      );
      const [report, sink] = await Promise.all([
        load.ask({ kind: 'run', ...target, connections: SESSIONS, first, count, bound: IN_FLIGHT }),
        arrived.finally(() => load.tell({ kind: 'bound', upTo: count })),
      ]);
      first += count;
      const after = processCost(server);
      const each = (seconds: number) => (seconds * 1000) / count;
      const result: RunResult = {
        name: 'sends',
        ...measured(report.accepted, { startedAt: report.startedAt, acceptedAt: report.endedAt }, sink),
        cpuMs: {
          server: each(after.cpu - before.server.cpu),
          mainThread: each(after.mainThread - before.server.mainThread),
          load: each(processCost(load.pid).cpu - before.load),
          sink: each(processCost(receiver.pid).cpu - before.sink),
        },
        peakMiB: after.peakMiB,
        answerMs: { p50: report.p50, p99: report.p99 },
        refused: report.refused,
      };
      const [fault] = faultsOf(result);
      if (fault !== undefined) throw new Error(`sends: ${fault} ${report.firstRefusal}`);
      return { ...result, delay: await probe.delay() };
    },
    beside: async (work) => {
      const over = new AbortController();
      const ended = work.finally(() => over.abort());
      // Its failure is thrown below, once the portion under way is over.
      ended.catch(() => {});
      await probe.delay();
      const began = performance.now();
      const latencies: number[] = [];
      const refused: Record<string, number> = {};
      do {
        const report = await steady.ask({ ...target, perSecond: PER_SECOND, ms: PORTION_MS });
        latencies.push(...report.latencies);
        for (const [status, count] of Object.entries(report.refused))
          refused[status] = (refused[status] ?? 0) + count;
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
        refused,
      };
    },
    stop: async () => {
      await load.stop();
      await steady.stop();
    },
  };
}
