import { Agent, request } from 'node:http';
import { answerParent, epochNow } from './benchmark-process.ts';

/**
 * A well-behaved caller as a process of its own: sends at a steady rate, whatever the answers take, so that a stall
 * delays all requests that fall into it. Latencies count from the moment at which a request was due.
 */
export interface SteadyJob {
  port: number;
  path: string;
  headers: Record<string, string>;
  /** The JSON body, everything but `to`. */
  body: Record<string, unknown>;
  /** Recipients are spread over these. */
  domains: string[];
  perSecond: number;
  ms: number;
}

export interface SteadyReport {
  /** In ms, ascending; of the requests that were answered with 200. */
  latencies: number[];
  /** Other answers and broken connections, by status or error code. */
  refused: Record<string, number>;
  /** Epoch ms at which the slowest request was due. */
  slowestAt: number;
}

const PATIENCE_MS = 60_000;
let sent = 0;

answerParent((question) => run(question as SteadyJob));

async function run(job: SteadyJob): Promise<SteadyReport> {
  const agent = new Agent({ keepAlive: true });
  const answers: { ms: number; at: number }[] = [];
  const refused: Record<string, number> = {};
  const open: Promise<void>[] = [];
  const began = performance.now();
  const count = Math.floor((job.ms * job.perSecond) / 1000);
  await new Promise<void>((resolve) => {
    let n = 0;
    const timer = setInterval(() => {
      for (; n < count && performance.now() - began >= (n * 1000) / job.perSecond; n++) {
        const due = began + (n * 1000) / job.perSecond;
        open.push(
          send(job, agent).then((status) => {
            const ms = performance.now() - due;
            if (status === '200') answers.push({ ms, at: epochNow() - ms });
            else refused[status] = (refused[status] ?? 0) + 1;
          }),
        );
      }
      if (n < count) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  await Promise.all(open);
  agent.destroy();
  answers.sort((a, b) => a.ms - b.ms);
  return { latencies: answers.map(({ ms }) => ms), refused, slowestAt: answers.at(-1)?.at ?? 0 };
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
        timeout: PATIENCE_MS,
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
