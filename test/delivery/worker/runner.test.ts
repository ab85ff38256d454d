import { describe, expect, it } from 'vitest';
import { attempt } from '../../../src/delivery/worker/attempt.ts';
import type { Client } from '../../../src/delivery/worker/client.ts';
import type {
  AttemptReport,
  DeliveryJob,
  FromWorker,
  ToWorker,
} from '../../../src/delivery/worker/protocol.ts';
import { createRunner } from '../../../src/delivery/worker/runner.ts';
import { client, job, message, sink, sinks, summary } from './setup.ts';

type Run = (job: DeliveryJob) => Promise<AttemptReport | null>;

function runner(by: Client, run: Run = (each) => attempt(each, () => Promise.resolve(message(each)), by)) {
  const sent: FromWorker[] = [];
  let exit = () => {};
  const exited = new Promise<void>((resolve) => {
    exit = resolve;
  });
  const receive: (message: ToWorker) => void = createRunner(by, {
    run,
    send: (message) => void sent.push(message),
    exit,
  });
  const reports = () => sent.flatMap((each) => (each.kind === 'reports' ? each.reports : []));
  return { receive, sent, exited, reports };
}

const report = ({ id }: DeliveryJob): AttemptReport => ({
  id,
  conclusion: 'replied',
  phase: 'dot',
  reply: { code: 250, enhanced: null, text: '' },
  sessions: [],
});

describe('jobs', () => {
  it('run concurrently, each in its slot', async () => {
    const to = await sink({ script: { dot: { reply: '250 taken', delayMs: 2000 } } });
    const { receive, reports } = runner(client());
    const jobs = Array.from({ length: 20 }, (_, index) => job(to, { slot: `slot ${index}` }));
    receive({ kind: 'jobs', jobs });
    await expect.poll(() => reports().length).toBe(20);
    expect(new Set(reports().map(({ id }) => id))).toEqual(new Set(jobs.map(({ id }) => id)));
    expect(to.peak).toBe(20);
  });

  it('that end in the same turn are reported together', async () => {
    const to = await sink();
    const { receive, sent, reports } = runner(client(), (each) => Promise.resolve(report(each)));
    receive({ kind: 'jobs', jobs: Array.from({ length: 4 }, () => job(to)) });
    await expect.poll(() => reports().length).toBe(4);
    expect(sent).toHaveLength(1);
  });

  it('start in batches so that sockets are read in between', async () => {
    const to = await sink();
    let started = 0;
    const { receive, reports } = runner(client(), (each) => {
      started++;
      return Promise.resolve(report(each));
    });
    receive({ kind: 'jobs', jobs: Array.from({ length: 50 }, () => job(to)) });
    receive({ kind: 'jobs', jobs: Array.from({ length: 50 }, () => job(to)) });
    expect(started).toBeLessThan(50);
    await expect.poll(() => reports().length).toBe(100);
  });

  it('of transactional mail start before waiting ones of marketing mail', async () => {
    const to = await sink();
    const { receive, reports } = runner(client(), (each) => Promise.resolve(report(each)));
    const { copy } = job(to);
    const marketing = Array.from({ length: 20 }, () => job(to, { copy: { ...copy, kind: 'marketing' } }));
    const transactional = job(to);
    receive({ kind: 'jobs', jobs: marketing });
    receive({ kind: 'jobs', jobs: [transactional] });
    await expect.poll(() => reports().length).toBe(21);
    // The first turn has begun before.
    expect(reports().findIndex(({ id }) => id === transactional.id)).toBeLessThan(5);
  });

  it('with a large content start alone, so that sockets are read in between', async () => {
    const to = await sink();
    let started = 0;
    const { receive, reports } = runner(client(), (each) => {
      started++;
      return Promise.resolve(report(each));
    });
    const content = { ...job(to).content, size: 1_000_000 };
    receive({ kind: 'jobs', jobs: Array.from({ length: 10 }, () => job(to, { content })) });
    expect(started).toBe(1);
    await expect.poll(() => reports().length).toBe(10);
  });

  it('that fail with an internal error are reported as unanswered, together with the error', async () => {
    const to = await sink();
    const { receive, sent, reports } = runner(client(), () => Promise.reject(new Error('a bug')));
    const broken = job(to);
    receive({ kind: 'jobs', jobs: [broken] });
    await expect.poll(() => reports().map(summary)).toEqual(['unanswered dot']);
    expect(sent[0]).toMatchObject({
      kind: 'fault',
      id: broken.id,
      error: expect.stringMatching(/^Error: a bug\n/),
    });
  });
});

describe('stop', () => {
  it('ends immediately without jobs', async () => {
    const to = await sink();
    const by = client();
    const { receive, sent, exited, reports } = runner(by);
    receive({ kind: 'jobs', jobs: [job(to)] });
    await expect.poll(() => reports().length).toBe(1);
    receive({ kind: 'stop', graceMs: 60_000 });
    await exited;
    expect(sent.at(-1)).toEqual({ kind: 'stopped' });
    expect(to.sessions[0]?.commands.at(-1)).toBe('QUIT');
    expect(by.open.size).toBe(0);
  });

  it('lets a job in progress end and reports it first', async () => {
    const to = await sink({ script: { dot: { reply: '250 2.0.0 taken', delayMs: 100 } } });
    const { receive, sent, exited, reports } = runner(client());
    receive({ kind: 'jobs', jobs: [job(to)] });
    await expect.poll(() => to.sessions[0]?.commands.length).toBe(4);
    receive({ kind: 'stop', graceMs: 60_000 });
    await exited;
    expect(reports().map(summary)).toEqual(['replied dot 250']);
    expect(sent.map(({ kind }) => kind)).toEqual(['reports', 'stopped']);
    expect(to.sessions[0]?.commands.at(-1)).toBe('QUIT');
    expect(to.count).toBe(1);
  });

  it('aborts a message that is not sent after the grace period, without a report and without another host', async () => {
    const [one, two] = await sinks({ script: { rcpt: 'silent' } }, {});
    const { receive, sent, exited } = runner(client());
    receive({ kind: 'jobs', jobs: [job([one!, two!])] });
    await expect.poll(() => one?.sessions[0]?.commands.length).toBe(3);
    receive({ kind: 'stop', graceMs: 20 });
    await exited;
    expect(sent).toEqual([{ kind: 'stopped' }]);
    expect(two?.sessions).toHaveLength(0);
  });

  it('begins no session for a message that is composed after the grace period', async () => {
    const to = await sink();
    const by = client();
    const each = job(to);
    by.abort();
    expect(await attempt(each, () => Promise.resolve(message(each)), by)).toBeNull();
    expect([by.open.size, to.sessions.length]).toEqual([0, 0]);
  });

  it('reports a message whose final dot was sent when the grace period ends', async () => {
    const [one, two] = await sinks({ script: { dot: 'silent' } }, {});
    const { receive, exited, reports } = runner(client());
    receive({ kind: 'jobs', jobs: [job([one!, two!])] });
    await expect.poll(() => one?.sessions[0]?.commands.length).toBe(4);
    receive({ kind: 'stop', graceMs: 20 });
    await exited;
    expect(reports()).toMatchObject([
      { conclusion: 'unanswered', sessions: [{ error: 'the delivery worker was stopped' }] },
    ]);
    expect(two?.sessions).toHaveLength(0);
  });

  it('starts no waiting job, and none that arrives later', async () => {
    const to = await sink();
    const started: number[] = [];
    const { receive, exited } = runner(client(), (each) => {
      started.push(each.id);
      return Promise.resolve(report(each));
    });
    receive({ kind: 'jobs', jobs: Array.from({ length: 50 }, () => job(to)) });
    const before = started.length;
    receive({ kind: 'stop', graceMs: 60_000 });
    receive({ kind: 'jobs', jobs: [job(to)] });
    await exited;
    expect(started).toHaveLength(before);
  });
});
