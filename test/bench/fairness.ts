import { startDaemon } from '../support/daemon.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startBenchmarkProcess } from './benchmark-process.ts';
import type { LoadJob, LoadReport, LoadStop } from './load.ts';
import { thisMachine } from './machine.ts';
import { htmlOf, SUBJECT } from './message.ts';
import { readOptions } from './options.ts';
import { publishRecipients, RECIPIENT_DOMAINS, startBenchmarkDns, startReceiver } from './receiver.ts';
import { createResources } from './resources.ts';
import { addCounts, percentile } from './result.ts';
import type { SteadyJob, SteadyReport } from './steady.ts';

/*
 * Response times of one account's sends while other accounts send at the maximum rate:
 *
 *     npm run build && npm run bench:fairness
 *
 * One account sends at a constant rate, first alone, then together with three accounts with 60 clients each. Quiet and
 * busy phases alternate, so that other load on the machine affects both. The sink and the clients use the same cores:
 * compare the ratio, and compare builds by alternating runs only.
 */
/** Limit of requests of each busy account in a phase. */
const MAX_REQUESTS = 100_000;

const values = readOptions({
  command: 'npm run bench:fairness',
  summary: `Response times of one account's sends, alone and while other accounts send at the maximum rate.
Build first (npm run build).`,
  options: {
    accounts: { integer: 3, help: 'busy accounts' },
    connections: { integer: 60, help: 'clients of each busy account' },
    size: { integer: 30_720, help: 'bytes of html of the busy accounts' },
    rate: { integer: 40, help: 'requests per second of the steady account' },
    seconds: { integer: 8, help: 'duration of a phase' },
    rounds: { integer: 2, help: 'quiet and busy phases' },
    json: { flag: 'print the result as JSON' },
  },
});

interface Phase {
  sends: number;
  p50: number;
  p99: number;
  max: number;
  slowestAt: number;
  failed: Record<string, number>;
  /** Totals of the busy accounts; null in a quiet phase. */
  busy: { accepted: number; failed: Record<string, number> } | null;
  /** Seconds of CPU of the server's event loop. */
  mainThread: number;
}

const resources = await createResources();
await resources.run(async () => {
  const phases = await bench();
  if (values.json) console.log(JSON.stringify({ machine: thisMachine(), phases }, null, 2));
  else print(phases);
  return true;
});

async function bench(): Promise<Phase[]> {
  const receiver = await resources.start(() => startReceiver());
  const dns = await resources.start(startBenchmarkDns);
  publishRecipients(dns);
  const daemon = await resources.start(() =>
    startDaemon(
      {
        'dns.resolvers': [dns.address],
        'delivery.port': receiver.port,
        'delivery.allowPrivateNetworks': true,
        'log.level': 'warn',
      },
      // Options of a profiler.
      { NODE_OPTIONS: process.env['NODE_OPTIONS'] },
    ),
  );
  await verifiedDomain(daemon, dns, 'steady.example');
  const server = findChild('dist/main.js', 'serve');
  const port = Number(new URL(daemon.baseUrl).port);
  const path = '/transactional/send';
  const body = (from: string, size: number) => ({
    from: `Shop <news@${from}>`,
    subject: SUBJECT,
    html: htmlOf(size),
  });

  const jobs: Omit<LoadJob, 'first'>[] = [];
  for (let n = 0; n < values.accounts; n++) {
    const api = await daemon.account(`Busy ${n}`);
    await verifiedDomain(daemon, dns, `busy${n}.example`, { api });
    jobs.push({
      kind: 'run',
      port,
      path,
      headers: { 'X-Api-Key': api.keys.transactional, 'X-Id': api.accountId },
      body: body(`busy${n}.example`, values.size),
      domains: RECIPIENT_DOMAINS,
      connections: values.connections,
      count: MAX_REQUESTS,
      bound: null,
    });
  }
  const steady = startBenchmarkProcess<SteadyJob, SteadyReport>(new URL('steady.ts', import.meta.url));
  await resources.start(() => Promise.resolve(steady));
  const loads = jobs.map(() =>
    startBenchmarkProcess<LoadJob | LoadStop, LoadReport>(new URL('load.ts', import.meta.url)),
  );
  for (const load of loads) await resources.start(() => Promise.resolve(load));
  const phaseMs = values.seconds * 1000;
  const sendSteadily = (ms: number) =>
    steady.request({
      port,
      path,
      headers: { 'X-Api-Key': daemon.api.keys.transactional, 'X-Id': daemon.api.accountId },
      body: body('steady.example', 10_240),
      domains: RECIPIENT_DOMAINS,
      perSecond: values.rate,
      ms,
    });
  await sendSteadily(2000);

  let first = 0;
  const runPhase = async (isBusy: boolean): Promise<Phase> => {
    const before = processCost(server).mainThread;
    const runs = loads.flatMap((load, n) => {
      const job = jobs[n];
      return !isBusy || job === undefined ? [] : [load.request({ ...job, first: first + n * MAX_REQUESTS })];
    });
    if (isBusy) first += runs.length * MAX_REQUESTS;
    const report = await sendSteadily(phaseMs);
    for (const load of loads) load.notify({ kind: 'stop' });
    const reports = await Promise.all(runs);
    const { latencies } = report;
    const failed: Record<string, number> = {};
    for (const busy of reports) addCounts(failed, busy.failed);
    return {
      sends: latencies.length,
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
      max: latencies.at(-1) ?? 0,
      slowestAt: report.slowestAt,
      failed: report.failed,
      busy: isBusy ? { accepted: reports.reduce((sum, { accepted }) => sum + accepted, 0), failed } : null,
      mainThread: processCost(server).mainThread - before,
    };
  };
  const phases: Phase[] = [];
  for (let round = 0; round < values.rounds; round++) {
    phases.push(await runPhase(false));
    phases.push(await runPhase(true));
    // The messages of the busy accounts are delivered before the next quiet phase.
    for (let n = 0; n < 30 && (await daemon.metric('postrider_queue_messages')) > 0; n++)
      await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return phases;
}

function print(phases: Phase[]): void {
  for (const { busy, failed, sends, p50, p99, max, mainThread } of phases) {
    const times = [p50, p99, max].map((ms) => ms.toFixed(0).padStart(6)).join(' ');
    const others =
      busy === null
        ? ''
        : `; other accounts: ${busy.accepted} accepted, failed ${JSON.stringify(busy.failed)}`;
    const faults = Object.keys(failed).length > 0 ? ` FAILED ${JSON.stringify(failed)}` : '';
    console.log(
      `${busy === null ? 'quiet' : 'busy '} ${sends} sends, p50 p99 max ms:${times}; event loop ${mainThread.toFixed(1)} s CPU${others}${faults}`,
    );
  }
  const ratios = phases.flatMap(({ busy, p99 }, n) =>
    busy === null ? [] : [p99 / (phases[n - 1]?.p99 ?? p99)],
  );
  console.log(`p99 busy / quiet: ${ratios.map((ratio) => ratio.toFixed(1)).join(', ')}`);
}
