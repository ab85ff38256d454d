import { parseArgs } from 'node:util';
import { HOSTNAME, startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startCompanion } from './benchmark-process.ts';
import type { LoadJob, LoadReport, LoadStop } from './load.ts';
import { thisMachine } from './machine.ts';
import { htmlOf } from './message.ts';
import { startReceiver } from './receiver.ts';
import { setStage } from './resources.ts';
import type { SteadyJob, SteadyReport } from './steady.ts';

/*
 * How long one account's sends take while other accounts send as much as they can:
 *
 *     npm run build && npm run bench:fairness
 *
 * One account sends at a steady rate, at first alone, then beside three accounts with 60 callers each. Quiet and
 * abused phases alternate, so that other work on the machine meets both. The sink and the callers need the same
 * cores, so compare the ratio, and builds only by runs that alternate.
 */
const MX_HOSTS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'];
const DOMAINS = 20;
/** Requests of each abusive account at most, in a phase. */
const MOST_REQUESTS = 100_000;

const { values } = parseArgs({
  options: {
    accounts: { type: 'string', default: '3' },
    /** Callers of each abusive account at once. */
    connections: { type: 'string', default: '60' },
    /** Bytes of html. */
    size: { type: 'string', default: '30720' },
    /** Of the well-behaved account. */
    rate: { type: 'string', default: '40' },
    /** Of a phase. */
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
  },
});
const whole = (name: Exclude<keyof typeof values, 'json'>): number => {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} must be a whole number`);
  return number;
};

interface Phase {
  sends: number;
  p50: number;
  p99: number;
  max: number;
  slowestAt: number;
  refused: Record<string, number>;
  /** Of the abusive accounts together. */
  abuse: { accepted: number; refused: Record<string, number> } | null;
  /** Seconds of CPU of the server's event loop. */
  mainThread: number;
}

const stage = await setStage();
try {
  const phases = await bench();
  if (values.json) console.log(JSON.stringify({ machine: thisMachine(), phases }, null, 2));
  else print(phases);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await stage.clear();
}

async function bench(): Promise<Phase[]> {
  const receiver = await stage.use(() => startReceiver(MX_HOSTS));
  const dns = await startDnsServer();
  dns.set(HOSTNAME, 'A', ['192.0.2.25']);
  const domains = Array.from({ length: DOMAINS }, (_, n) => `d${String(n).padStart(2, '0')}.example`);
  receiver.hosts.forEach((host, site) => dns.set(`mx${site}.provider${site}.example`, 'A', [host]));
  domains.forEach((domain, n) => {
    const site = n % receiver.hosts.length;
    dns.set(domain, 'MX', [`10 mx${site}.provider${site}.example`]);
  });
  const daemon = await stage.use(() =>
    startDaemon(
      {
        'dns.resolvers': [dns.address],
        'delivery.port': receiver.port,
        'delivery.allowPrivateNetworks': true,
        'log.level': 'warn',
      },
      // A profiler, say.
      { NODE_OPTIONS: process.env['NODE_OPTIONS'] },
    ),
  );
  await verifiedDomain(daemon, dns, 'well.example');
  const server = findChild('dist/main.js', 'serve');
  const port = Number(new URL(daemon.baseUrl).port);
  const path = '/transactional/send';
  const body = (from: string, size: number) => ({
    from: `Shop <news@${from}>`,
    subject: 'Your order has left our house',
    html: htmlOf(size),
  });

  const abusers: Omit<LoadJob, 'first'>[] = [];
  for (let n = 0; n < whole('accounts'); n++) {
    const api = await daemon.account(`Busy ${n}`);
    await verifiedDomain(daemon, dns, `busy${n}.example`, { api });
    abusers.push({
      kind: 'run',
      port,
      path,
      headers: { 'X-Api-Key': api.keys.transactional, 'X-Id': api.accountId },
      body: body(`busy${n}.example`, whole('size')),
      domains,
      connections: whole('connections'),
      count: MOST_REQUESTS,
      bound: null,
    });
  }
  const steady = startCompanion<SteadyJob, SteadyReport>(new URL('steady.ts', import.meta.url));
  await stage.use(() => Promise.resolve(steady));
  const loads = abusers.map(() =>
    startCompanion<LoadJob | LoadStop, LoadReport>(new URL('load.ts', import.meta.url)),
  );
  for (const load of loads) await stage.use(() => Promise.resolve(load));
  const ms = whole('seconds') * 1000;
  const ask = (forMs: number) =>
    steady.ask({
      port,
      path,
      headers: { 'X-Api-Key': daemon.api.keys.transactional, 'X-Id': daemon.api.accountId },
      body: body('well.example', 10_240),
      domains,
      perSecond: whole('rate'),
      ms: forMs,
    });
  await ask(2000);

  let first = 0;
  const phase = async (isAbused: boolean): Promise<Phase> => {
    const before = processCost(server).mainThread;
    const answers = loads.flatMap((load, n) => {
      const job = abusers[n];
      return !isAbused || job === undefined ? [] : [load.ask({ ...job, first: first + n * MOST_REQUESTS })];
    });
    if (isAbused) first += answers.length * MOST_REQUESTS;
    const report = await ask(ms);
    for (const load of loads) load.tell({ kind: 'stop' });
    const ended = await Promise.all(answers);
    const { latencies } = report;
    const at = (part: number) =>
      latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * part))] ?? 0;
    const refused: Record<string, number> = {};
    for (const one of ended)
      for (const [status, count] of Object.entries(one.refused))
        refused[status] = (refused[status] ?? 0) + count;
    return {
      sends: latencies.length,
      p50: at(0.5),
      p99: at(0.99),
      max: latencies.at(-1) ?? 0,
      slowestAt: report.slowestAt,
      refused: report.refused,
      abuse: isAbused ? { accepted: ended.reduce((sum, one) => sum + one.accepted, 0), refused } : null,
      mainThread: processCost(server).mainThread - before,
    };
  };
  const phases: Phase[] = [];
  for (let round = 0; round < whole('rounds'); round++) {
    phases.push(await phase(false));
    phases.push(await phase(true));
    // What the abusive accounts left in the queue is delivered.
    for (let n = 0; n < 30 && (await daemon.metric('postrider_queue_messages')) > 0; n++)
      await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return phases;
}

function print(phases: Phase[]): void {
  for (const { abuse, refused, sends, p50, p99, max, mainThread } of phases) {
    const times = [p50, p99, max].map((ms) => ms.toFixed(0).padStart(6)).join(' ');
    const beside =
      abuse === null ? '' : ` beside ${abuse.accepted} accepted, ${JSON.stringify(abuse.refused)}`;
    console.log(
      `${abuse === null ? 'quiet ' : 'abused'} ${sends} sends, p50 p99 max ms:${times}; event loop ${mainThread.toFixed(1)} s CPU${beside}${Object.keys(refused).length > 0 ? ` REFUSED ${JSON.stringify(refused)}` : ''}`,
    );
  }
  const ratios = phases.flatMap(({ abuse, p99 }, n) =>
    abuse === null ? [] : [p99 / (phases[n - 1]?.p99 ?? p99)],
  );
  console.log(`p99 abused / quiet: ${ratios.map((ratio) => ratio.toFixed(1)).join(', ')}`);
}
