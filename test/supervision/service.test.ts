import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Notification } from '../../src/supervision/notify.ts';
import {
  createRateMeter,
  createServiceReports,
  STUCK_MS,
  statusText,
  type Vitals,
  watchdogPeriodMs,
} from '../../src/supervision/service.ts';

const HEALTHY: Vitals = { queued: 12_345, delivered: 0, faults: [], pending: [] };

/** Reports to a list; the loop runs every 5 ms, a quarter of the watchdog period. */
function start(env: Readonly<Record<string, string | undefined>> = {}) {
  const sent: Notification[] = [];
  const records: { msg: string }[] = [];
  const log = pino({ base: {} }, { write: (line) => void records.push(JSON.parse(line)) });
  const service = createServiceReports(
    { log },
    { NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '20000', ...env },
    {
      notifier: { send: async (message) => sent.push(message) > 0, close: () => {} },
      monotonicUs: () => 4711n,
      loopDelayMs: () => 0,
    },
  );
  onTestFinished(() => service.close());
  return { service, sent, records };
}

describe('reports to the service manager', () => {
  it('extends the timeout of the start, and then reports readiness, status and the watchdog', async () => {
    const { service, sent } = start();
    service.starting();
    await expect.poll(() => sent.length).toBeGreaterThan(1);
    expect(sent[1]).toEqual({ EXTEND_TIMEOUT_USEC: '20000', STATUS: 'starting' });
    expect(sent.some((message) => 'READY' in message || 'WATCHDOG' in message)).toBe(false);

    await service.ready(async () => HEALTHY);
    const before = sent.length;
    await expect.poll(() => sent.length).toBeGreaterThan(before);
    expect(sent.filter((message) => 'READY' in message)).toEqual([
      { READY: '1', STATUS: '12,345 queued, 0/min delivered', WATCHDOG: '1' },
    ]);
    expect(sent.at(-1)).toEqual({ STATUS: '12,345 queued, 0/min delivered', WATCHDOG: '1' });
  });

  it('reports a reload with its time, and its end also when it fails', async () => {
    const { service, sent } = start();
    await service.ready(async () => HEALTHY);
    sent.length = 0;
    expect(await service.reload(() => 'reloaded')).toBe('reloaded');
    const states = () => sent.filter((message) => !('STATUS' in message));
    expect(states()).toEqual([{ RELOADING: '1', MONOTONIC_USEC: '4711' }, { READY: '1' }]);
    await expect(service.reload(() => Promise.reject(new Error('invalid')))).rejects.toThrow('invalid');
    expect(states().slice(2)).toEqual([{ RELOADING: '1', MONOTONIC_USEC: '4711' }, { READY: '1' }]);
  });

  it('does not report a reload before the start is complete', async () => {
    const { service, sent } = start();
    expect(await service.reload(() => 1)).toBe(1);
    expect(sent).toEqual([]);
  });

  it('pings during a stop, and no longer reads the state of the daemon', async () => {
    const { service, sent } = start();
    let reads = 0;
    await service.ready(async () => ({ ...HEALTHY, queued: reads++ }));
    await service.stopping();
    expect(sent.at(-1)).toEqual({ STOPPING: '1', STATUS: 'completing work in progress' });
    const before = sent.length;
    const readsBefore = reads;
    await expect.poll(() => sent.length).toBeGreaterThan(before + 1);
    expect(sent.at(-1)).toEqual({ WATCHDOG: '1' });
    expect(reads).toBe(readsBefore);
  });

  it('withholds the ping while work is stuck, and logs it once', async () => {
    const { service, sent, records } = start();
    let ms = STUCK_MS - 1;
    await service.ready(async () => ({ ...HEALTHY, pending: [{ work: 'a write to the database', ms }] }));
    expect(sent.at(-1)).toHaveProperty('WATCHDOG');
    ms = STUCK_MS;
    await expect.poll(() => sent.at(-1)).not.toHaveProperty('WATCHDOG');
    const before = sent.length;
    await expect.poll(() => sent.length).toBeGreaterThan(before + 2);
    expect(records.map(({ msg }) => msg)).toEqual(['no progress: waiting to be restarted by the watchdog']);
    ms = 0;
    await expect.poll(() => sent.at(-1)).toHaveProperty('WATCHDOG');
  });

  it.each([
    'database: the disk is full',
    'sends: the disk is nearly full',
    'queue: the queue cannot be read; see the log',
    'outcomes: outcomes have not been recorded for 900 s',
    'mx: the listener is not up',
  ])('is not restarted because of "%s", which is shown', async (fault) => {
    const { service, sent } = start();
    await service.ready(async () => ({ ...HEALTHY, faults: [fault] }));
    expect(sent.at(-1)).toEqual({
      READY: '1',
      STATUS: `12,345 queued, 0/min delivered; ${fault}`,
      WATCHDOG: '1',
    });
  });

  it('does nothing outside of a service', async () => {
    const { service, sent } = start({ NOTIFY_SOCKET: undefined });
    service.starting();
    await service.ready(async () => HEALTHY);
    expect(await service.reload(() => 2)).toBe(2);
    await service.stopping();
    expect(sent).toEqual([]);
  });

  it('sends no pings without a watchdog', async () => {
    const { service, sent } = start({ WATCHDOG_USEC: undefined });
    await service.ready(async () => HEALTHY);
    expect(sent).toEqual([{ READY: '1', STATUS: '12,345 queued, 0/min delivered' }]);
  });
});

describe('the watchdog period', () => {
  it.each([
    [{}, null],
    [{ WATCHDOG_USEC: '60000000' }, 60_000],
    [{ WATCHDOG_USEC: '60000000', WATCHDOG_PID: '77' }, 60_000],
    [{ WATCHDOG_USEC: '60000000', WATCHDOG_PID: '78' }, null],
    [{ WATCHDOG_USEC: '0' }, null],
    [{ WATCHDOG_USEC: 'x' }, null],
  ])('of %j is %s ms', (env, ms) => {
    expect(watchdogPeriodMs(env, 77)).toBe(ms);
  });
});

describe('the status', () => {
  it('shows faults and a slow event loop', () => {
    const vitals = { ...HEALTHY, faults: ['database: the disk is full', 'mx: the listener is not up'] };
    expect(statusText(vitals, 209.6, 1234)).toBe(
      '12,345 queued, 210/min delivered; database: the disk is full; mx: the listener is not up; event loop delayed by 1.2 s',
    );
  });

  it('has the rate of the last minute', () => {
    let now = 0;
    const rate = createRateMeter({ now: () => now });
    expect(rate(1000)).toBe(0);
    now = 15_000;
    expect(rate(1100)).toBe(400);
    now = 60_000;
    expect(rate(1200)).toBe(200);
    now = 75_000;
    expect(rate(1300)).toBe(200);
    now = 400_000;
    expect(rate(1300)).toBe(0);
  });
});
