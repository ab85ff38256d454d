import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { createMailParser } from '../../../src/smtp/parser/mail-parser.ts';
import type { JobOrigin } from '../../../src/smtp/parser/parse-queue.ts';
import { dsn } from '../mx/mails.ts';
import { startParser } from '../mx/setup.ts';

const log = createLog({ level: 'silent', hashAddresses: false });

/**
 * A thread that answers every mail except four: it hangs, exits, throws, or allocates memory without end. `workerData`: ms
 * for which it starts.
 */
const FRAGILE = `
const { parentPort, workerData } = require('node:worker_threads');
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, workerData);
parentPort.on('message', ({ raw, ready }) => {
  if (ready) return parentPort.postMessage({ ready });
  const text = Buffer.from(raw).toString();
  if (text === 'hang') for (;;);
  if (text === 'die') process.exit(1);
  if (text === 'throw') throw new Error('broken');
  if (text === 'eat') for (const all = []; ; ) all.push(new Array(1e5).fill(text));
  parentPort.postMessage({ parsed: { kind: text }, fingerprint: new Uint8Array(16) });
});`;

const ORIGIN: JobOrigin = { priority: 'first', caller: '192.0.2.0/24', subject: 'msg_one' };

function jobOf(text: string) {
  return { purpose: 'incoming', raw: Buffer.from(text), opensReports: false } as const;
}

function startParserWith(startThread: () => Worker, timeoutMs?: number) {
  let started = 0;
  let posted = 0;
  const parser = createMailParser(log, {
    startThread: () => {
      started++;
      const thread = startThread();
      const postMessage = thread.postMessage.bind(thread);
      thread.postMessage = (job: object) => {
        if ('raw' in job) posted++;
        postMessage(job);
      };
      return thread;
    },
    timeoutMs,
  });
  onTestFinished(() => parser.stop());
  return {
    read: async (text: string, origin: Partial<JobOrigin> = {}) =>
      parser.parse(jobOf(text), { ...ORIGIN, ...origin }),
    /** Whether one more mail of this origin is refused. */
    isFull: (origin: Partial<JobOrigin> = {}) => parser.parse(jobOf('x'), { ...ORIGIN, ...origin }) === null,
    started: () => started,
    posted: () => posted,
    stop: parser.stop,
  };
}

const fragile = (startMs = 0) =>
  new Worker(FRAGILE, { eval: true, workerData: startMs, resourceLimits: { maxOldGenerationSizeMb: 32 } });

describe('the mail parser', () => {
  it('classifies a mail and derives its fingerprint from the body', async () => {
    const { read } = startParserWith(startParser);
    const mail = dsn();
    const readings = await Promise.all(
      [mail, `Received: by another\r\n${mail}`, `${mail} `].map((text) => read(text)),
    );
    const fingerprints = readings.map((reading) => {
      if (reading === null || 'unreadable' in reading) throw new Error('not read');
      expect(reading.parsed.kind).toBe('dsn');
      return Buffer.from(reading.fingerprint).toString('hex');
    });
    expect(fingerprints[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(fingerprints[1]).toBe(fingerprints[0]);
    expect(fingerprints[2]).not.toBe(fingerprints[0]);
  });

  it('parses mail about our messages before other mail, and that before reports', async () => {
    const { read } = startParserWith(() => fragile());
    const order: string[] = [];
    const noted = (name: string, count: number, turnOf: (n: number) => Partial<JobOrigin>) =>
      Array.from({ length: count }, (_, n) => read(`${name} ${n}`, turnOf(n)).then(() => order.push(name)));
    await Promise.all([
      ...noted('report', 10, () => ({ priority: 'last', subject: 'dmarc' })),
      ...noted('mailbox', 10, () => ({ priority: 'normal', subject: 'postmaster' })),
      ...noted('token', 40, (n) => ({ subject: `msg_${n}` })),
    ]);
    // One report and four other mails were posted already; one job in 16 is of the lowest priority.
    const before = order.slice(0, order.lastIndexOf('token'));
    expect(before.filter((name) => name === 'report').length).toBeLessThanOrEqual(5);
    expect(before.filter((name) => name === 'mailbox').length).toBeLessThanOrEqual(4);
  });

  it('posts at most half a megabyte ahead', async () => {
    const { read, posted } = startParserWith(() => fragile());
    const waiting = Array.from({ length: 30 }, (_, n) => read('x'.repeat(200_000), { subject: `msg_${n}` }));
    expect(posted()).toBe(2);
    await Promise.all(waiting);
    expect(posted()).toBe(30);
  });

  it.each([
    ['hang', 'too-long', 1],
    ['die', 'failed', 2],
    ['throw', 'failed', 2],
    ['eat', 'failed', 2],
  ])(
    'reports a mail at which the thread fails with %s as %s, and parses the next ones',
    async (poison, unreadable, deaths) => {
      const { read, started } = startParserWith(() => fragile(), poison === 'hang' ? 1500 : 60_000);
      const [before, bad, after] = await Promise.all([read('one'), read(poison), read('two')]);
      expect(before).toMatchObject({ parsed: { kind: 'one' } });
      expect(bad).toEqual({ unreadable });
      expect(after).toMatchObject({ parsed: { kind: 'two' } });
      expect(started()).toBe(deaths + 1);
    },
    20_000,
  );

  it('does not count the start of a new thread toward the time limit of a mail', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let starts = 0;
    const { read, started } = startParserWith(() => fragile(starts++ === 0 ? 0 : 300));
    await read('one');
    const [bad, after] = [read('hang'), read('two')];
    vi.advanceTimersByTime(5000);
    expect(await bad).toEqual({ unreadable: 'too-long' });
    // While the second thread starts.
    vi.advanceTimersByTime(30_000);
    expect(await after).toMatchObject({ parsed: { kind: 'two' } });
    expect(started()).toBe(2);
  });

  it.each<[string, Partial<JobOrigin>, number]>([
    ['one message', {}, 8],
    ['the reports of one network', { priority: 'last' }, 30],
  ])('refuses more mail than the share of %s', (_, turn, share) => {
    const { isFull } = startParserWith(() => fragile());
    const full = Array.from({ length: 200 }, () => isFull(turn));
    // Posted jobs no longer wait.
    expect(full.indexOf(true)).toBeGreaterThanOrEqual(share);
    expect(full.indexOf(true)).toBeLessThanOrEqual(share + 32);
    expect(isFull({ ...turn, caller: '198.51.100.0/24', subject: 'msg_two' })).toBe(false);
  });

  it('refuses more mail in total than its limit', () => {
    const { isFull } = startParserWith(() => fragile());
    const full = Array.from({ length: 5100 }, (_, n) => isFull({ caller: `${n}`, subject: `${n}` }));
    expect(full.indexOf(true)).toBeGreaterThan(4000);
  });

  it('parses no mail after stop', async () => {
    const { read, stop } = startParserWith(() => fragile());
    const waiting = [read('hang'), read('one')];
    await stop();
    expect(await Promise.all(waiting)).toEqual([{ unreadable: 'stopping' }, { unreadable: 'stopping' }]);
    expect(await read('two')).toEqual({ unreadable: 'stopping' });
  });
});
