import { Agent, request } from 'node:http';
import { epochNow, serveParent } from './benchmark-process.ts';

/**
 * A client in a separate process that sends at a constant rate, independent of response times, so that a stall delays
 * all requests that are due during it. Latencies count from the time at which a request is due.
 */
export interface SteadyJob {
  port: number;
  path: string;
  headers: Record<string, string>;
  /** The JSON body without `to`. */
  body: Record<string, unknown>;
  /** Domains of the recipients. */
  domains: string[];
  perSecond: number;
  ms: number;
}

export interface SteadyReport {
  /** In ms, ascending; of the requests answered with 200. */
  latencies: number[];
  /** Number of other responses and connection errors, by status or error message. */
  failed: Record<string, number>;
  /** Epoch ms at which the slowest request was due. */
  slowestAt: number;
}

const RESPONSE_TIMEOUT_MS = 60_000;
let sent = 0;

// Sound: the benchmarks send this type.
serveParent((message) => run(message as SteadyJob));

async function run(job: SteadyJob): Promise<SteadyReport> {
  const agent = new Agent({ keepAlive: true });
  const responses: { ms: number; at: number }[] = [];
  const failed: Record<string, number> = {};
  const pending: Promise<void>[] = [];
  const began = performance.now();
  const count = Math.floor((job.ms * job.perSecond) / 1000);
  await new Promise<void>((resolve) => {
    let n = 0;
    const timer = setInterval(() => {
      for (; n < count && performance.now() - began >= (n * 1000) / job.perSecond; n++) {
        const due = began + (n * 1000) / job.perSecond;
        pending.push(
          send(job, agent).then((status) => {
            const ms = performance.now() - due;
            if (status === '200') responses.push({ ms, at: epochNow() - ms });
            else failed[status] = (failed[status] ?? 0) + 1;
          }),
        );
      }
      if (n < count) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  await Promise.all(pending);
  agent.destroy();
  responses.sort((a, b) => a.ms - b.ms);
  return { latencies: responses.map(({ ms }) => ms), failed, slowestAt: responses.at(-1)?.at ?? 0 };
}

function send(job: SteadyJob, agent: Agent): Promise<string> {
  const number = sent++;
  const domain = job.domains[number % job.domains.length];
  const body = Buffer.from(JSON.stringify({ to: `steady${number}@${domain}`, ...job.body }));
  return new Promise((resolve) => {
    const req = request(
      {
        host: '127.0.0.1',
        port: job.port,
        method: 'POST',
        path: job.path,
        agent,
        timeout: RESPONSE_TIMEOUT_MS,
        headers: { ...job.headers, 'Content-Type': 'application/json', 'Content-Length': body.length },
      },
      (res) => {
        res.resume();
        res.once('end', () => resolve(String(res.statusCode)));
      },
    );
    req.once('timeout', () => req.destroy(new Error('timeout')));
    req.once('error', (error) => resolve(error.message));
    req.end(body);
  });
}
