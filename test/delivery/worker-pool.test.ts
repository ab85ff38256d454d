import { describe, expect, it, onTestFinished } from 'vitest';
import { monotonicClock } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import type { Runtime } from '../../src/core/runtime.ts';
import type { AttemptReport, DeliveryJob } from '../../src/delivery/worker/protocol.ts';
import { createWorkerPool, type WorkerPoolOptions } from '../../src/delivery/worker-pool.ts';
import { job, jsonContent } from './worker/setup.ts';

/**
 * A worker whose behavior depends on the recipient: `die@` ends the thread when its job begins, `hang@` is never
 * reported, all others are reported immediately. Marketing mail begins after all other of its message.
 */
const SCRIPT = `
import { parentPort, workerData } from 'node:worker_threads';
const begun = new Int32Array(workerData.begun);
const isMarketing = ({ copy }) => copy.kind === 'marketing';
parentPort.on('message', (message) => {
  if (message.kind === 'stop') {
    parentPort.postMessage({ kind: 'stopped' });
    parentPort.close();
    return;
  }
  const jobs = [...message.jobs.filter((job) => !isMarketing(job)), ...message.jobs.filter(isMarketing)];
  for (const job of jobs) {
    Atomics.add(begun, isMarketing(job) ? 1 : 0, 1);
    const to = job.envelope.to;
    if (to.startsWith('die@')) process.exit(1);
    if (to.startsWith('hang@')) continue;
    const { id, content } = job;
    const reply = { code: 250, enhanced: null, text: String(content.bytes.byteLength) };
    parentPort.postMessage({ kind: 'reports', reports: [{ id, conclusion: 'replied', phase: 'dot', reply, sessions: [] }] });
  }
});
parentPort.postMessage({ kind: 'ready' });
`;
const script = (code: string) => new URL(`data:text/javascript,${encodeURIComponent(code)}`);

function start(changes: Partial<WorkerPoolOptions> = {}, runtime: Partial<Runtime> = {}) {
  const reports: AttemptReport[] = [];
  const lost: number[] = [];
  const returned: number[] = [];
  const unsendable: number[] = [];
  const log = createLog({ level: 'silent', hashAddresses: true });
  const pool = createWorkerPool(
    { monotonic: monotonicClock, log, ...runtime },
    { script: script(SCRIPT), workers: 1, idleConnections: 10, ...changes },
  );
  onTestFinished(() => pool.stop(100));
  const sendJob = (each: DeliveryJob) =>
    void pool.send(0, each).then((end) => {
      if (end.kind === 'report') reports.push(end.report);
      else ({ lost, returned, unsendable })[end.kind].push(each.id);
    });
  const send = (...users: string[]): number[] =>
    users.map((user) => {
      const each = to(user);
      sendJob(each);
      return each.id;
    });
  const reported = () => reports.map(({ id }) => id);
  return { pool, reports, reported, lost, returned, unsendable, send, sendJob };
}

function to(user: string): DeliveryJob {
  return job([], { envelope: { from: '', to: `${user}@example.test` } });
}

describe('a job', () => {
  it('transfers the memory of its content to the worker', async () => {
    const { sendJob, reports } = start();
    const each = job([], { content: jsonContent('0123456789') });
    sendJob(each);
    await expect.poll(() => reports.length).toBe(1);
    expect(reports[0]?.reply?.text).toBe('10');
    expect(each.content).toHaveProperty('bytes.byteLength', 0);
  });

  it('reports a job that cannot be cloned, and sends the others of its batch', async () => {
    const { sendJob, reported, unsendable, send } = start();
    const before = send('a');
    const bad = Object.assign(to('bad'), { toString: () => 'a function cannot be cloned' });
    sendJob(bad);
    const after = send('b');
    await expect.poll(reported).toEqual([...before, ...after]);
    expect(unsendable).toEqual([bad.id]);
  });
});

describe('a worker that dies', () => {
  it('loses the jobs it had begun and returns the others', async () => {
    const { lost, returned, reported, send } = start();
    const [done, hanging, fatal, ...others] = send('a', 'hang', 'die', 'b', 'c');
    await expect.poll(() => lost.length).toBe(2);
    expect(reported()).toEqual([done]);
    expect(lost).toEqual([hanging, fatal]);
    expect(returned).toEqual(others);
  });

  it('separates begun jobs from others although marketing mail begins last', async () => {
    const { sendJob, lost, returned } = start();
    const copy = { ...job([]).copy, kind: 'marketing' as const };
    const marketing = { ...to('b'), copy };
    const hanging = to('hang');
    const fatal = to('die');
    for (const each of [marketing, hanging, fatal]) sendJob(each);
    await expect.poll(() => lost.length).toBe(2);
    expect(lost).toEqual([hanging.id, fatal.id]);
    expect(returned).toEqual([marketing.id]);
  });

  it('is replaced, and the next one runs the jobs that were sent meanwhile', async () => {
    const { pool, lost, reported, send } = start();
    const [fatal] = send('die');
    await expect.poll(() => lost).toEqual([fatal]);
    expect(pool.running()).toBe(0);
    const ids = send('a', 'b', 'c');
    await expect.poll(reported).toEqual(ids);
    expect(lost).toEqual([fatal]);
  });

  it('before it has reported anything is replaced more slowly each time', async () => {
    const pauses: number[] = [];
    const log = createLog(
      { level: 'error', hashAddresses: true },
      {
        write: (line) => {
          const { restartMs } = JSON.parse(line);
          if (restartMs !== undefined) pauses.push(restartMs);
        },
      },
    );
    start({ script: script('process.exit(1)') }, { log });
    await expect.poll(() => pauses.length).toBeGreaterThanOrEqual(4);
    expect(pauses.slice(0, 4)).toEqual([200, 400, 800, 1600]);
  });
});

describe('a stop', () => {
  it('directly after the death of a worker ends and returns the jobs that waited for the next one', async () => {
    const { pool, lost, returned, send } = start();
    send('die');
    await expect.poll(() => lost.length).toBe(1);
    const ids = send('a', 'b');
    await pool.stop(60_000);
    expect(returned).toEqual(ids);
    expect(pool.running()).toBe(0);
  });

  it('returns jobs that no host was offered', async () => {
    const { pool, lost, returned, reported, send } = start();
    const [hanging, done] = send('hang', 'a');
    await expect.poll(reported).toEqual([done]);
    await pool.stop(60_000);
    expect(returned).toEqual([hanging]);
    expect(lost).toEqual([]);
  });

  it('terminates a thread that does not reply; the jobs it had begun are lost', async () => {
    const deaf = SCRIPT.replace("message.kind === 'stop'", 'false');
    const { pool, lost, send, reported } = start({
      script: script(deaf.replaceAll('of message.jobs', 'of message.jobs ?? []')),
    });
    const [hanging, done] = send('hang', 'a');
    await expect.poll(reported).toEqual([done]);
    await pool.stop(1);
    expect(lost).toEqual([hanging]);
    expect(pool.running()).toBe(0);
  });
});

it('terminates a thread that exceeds the time limit of a job', async () => {
  let now = 0;
  const { pool, lost, send, reported } = start({}, { monotonic: { now: () => now } });
  const [hanging, done] = send('hang', 'a');
  await expect.poll(reported).toEqual([done]);
  now += 19 * 60_000;
  pool.check();
  expect(pool.running()).toBe(1);
  now += 2 * 60_000;
  pool.check();
  await expect.poll(() => lost).toEqual([hanging]);
});
