import { describe, expect, it } from 'vitest';
import { DEFAULT_WARMUP_SCHEDULE } from '../../src/config/egress-settings.ts';
import { DAY } from '../../src/core/clock.ts';
import {
  complaintFault,
  deferralFault,
  positionOf,
  reservedForTransactional,
} from '../../src/delivery/warmup.ts';
import {
  createTestEgress,
  DAY_ONE,
  DELIVERED,
  marketing,
  THROTTLED,
  transactional,
  UNKNOWN_USER,
} from './source-addresses.ts';

const ENTRY = '{ name = "new", address = "192.0.2.1", warmup = { started = 2026-12-01, days = 30 } }';
const WARM = '{ name = "warm", address = "192.0.2.2" }';
const ROW = { entry: 'new', started: '2026-12-01', finished: 0, changed_at: DAY_ONE } as const;

describe('the position of a warm-up', () => {
  const at = (day: number, days = 30, schedule: readonly number[] = DEFAULT_WARMUP_SCHEDULE, shift = 0) =>
    positionOf(
      { started: '2026-12-01', days },
      schedule,
      [{ shift, finished: 0, reason: '' }],
      DAY_ONE + (day - 1) * DAY,
    );

  it.each([
    [0, 0, 0],
    [1, 1, 50],
    [2, 2, 100],
    [14, 14, 20_000],
    [30, 30, 2_000_000],
    [31, 31, null],
  ])('on calendar day %d is day %d with a limit of %j', (calendar, day, cap) => {
    expect(at(calendar)).toMatchObject({ day, cap });
  });

  it('stretches a schedule to more days and ends with its last step', () => {
    const caps = Array.from({ length: 6 }, (_, n) => at(n + 1, 6, [10, 20, 40]).cap);
    expect(caps).toEqual([10, 10, 20, 20, 40, 40]);
    expect(at(7, 6, [10, 20, 40]).cap).toBeNull();
  });

  it('shortens a schedule to fewer days and ends with its last step', () => {
    const caps = Array.from({ length: 3 }, (_, n) => at(n + 1, 3, [1, 2, 3, 4, 5, 6]).cap);
    expect(caps).toEqual([2, 4, 6]);
  });

  it('is never before day 1 after steps back, nor limited when it is ahead of its last day', () => {
    expect(at(5, 30, DEFAULT_WARMUP_SCHEDULE, 20)).toMatchObject({ day: 1, cap: 50 });
    expect(at(5, 30, DEFAULT_WARMUP_SCHEDULE, -26)).toMatchObject({ day: 31, cap: null });
  });
});

describe('the thresholds of a step back', () => {
  const LIMITS = { stepBack: 3, deferralPercent: 10, complaintPercent: 0.3 };
  it.each([
    ['too few attempts', { attempts: 19, throttled: 19, refused: 0 }, false],
    ['as many as allowed', { attempts: 100, throttled: 6, refused: 4 }, false],
    ['more than allowed', { attempts: 100, throttled: 6, refused: 5 }, true],
  ])('applies to deferrals: %s', (_, counts, isFault) => {
    expect(deferralFault(counts, LIMITS) !== null).toBe(isFault);
  });
  it.each([
    ['too few complaints', { delivered: 2, complained: 2 }, false],
    ['as many as allowed', { delivered: 1000, complained: 3 }, false],
    ['more than allowed', { delivered: 1000, complained: 4 }, true],
  ])('applies to complaints: %s', (_, counts, isFault) => {
    expect(complaintFault(counts, LIMITS) !== null).toBe(isFault);
  });
});

it.each([
  [100, 30, 10, 20],
  [100, 90, 10, 40],
  [100, 30, 40, 0],
  [1, 5, 0, 0],
])(
  'keeps of a limit of %d, with %d transactional messages yesterday and %d today, %d',
  (cap, transactionalBefore, today, kept) => {
    expect(reservedForTransactional(cap, { transactional: today, transactionalBefore })).toBe(kept);
  },
);

describe('the quota of a day', () => {
  it('is that of the schedule for each provider, and all further mail overflows to the warm address', async () => {
    const env = createTestEgress(`[${ENTRY}, ${WARM}]`);
    const google = await env.sendAll(marketing(), 300);
    expect(google['new']).toBe(50);
    expect(google['warm']).toBe(250);
    expect(await env.sendAll(marketing('Yahoo'), 300)).toMatchObject({ new: 50 });
    expect(env.counts('new')).toMatchObject({ marketing: 50, delivered: 50 });
    expect(env.counts('warm')).toMatchObject({ marketing: 250 });
  });

  it('without a warm address makes mail wait until midnight UTC, and states so', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    expect(await env.sendAll(marketing())).toEqual({ new: 50 });
    expect(env.egress().obstacle('default', marketing())).toEqual({
      kind: 'warmup',
      until: Date.UTC(2026, 11, 2),
      text: "waits for tomorrow's warm-up quota of 192.0.2.1 at Google (50 of 50 used)",
    });
    env.clock.advance(DAY);
    expect(env.egress().obstacle('default', marketing())).toBeNull();
    expect(await env.sendAll(marketing())).toEqual({ new: 100 });
  });

  it('counts messages in flight, and frees what no server saw', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    const tickets = Array.from({ length: 50 }, () => env.take(marketing()));
    expect(tickets).not.toContain(null);
    expect(env.take(marketing())).toBeNull();
    const [first] = tickets;
    if (first) env.egress().release(first);
    expect(env.take(marketing())).not.toBeNull();
  });

  it('is known after a crash, except for the messages in flight', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    await env.sendAll(marketing(), 40);
    for (let n = 0; n < 5; n++) env.take(marketing());
    env.restart();
    expect(await env.sendAll(marketing())).toEqual({ new: 10 });
    expect(env.counts('new')?.marketing).toBe(50);
  });

  it('counts a message that is in flight at midnight to the day before', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    const late = env.take(marketing());
    env.clock.advance(DAY);
    expect(await env.sendAll(marketing())).toEqual({ new: 100 });
    if (late) await env.settle(late, DELIVERED, 'replied');
    expect(env.counts('new')?.marketing).toBe(1);
    expect(env.take(marketing())).toBeNull();
  });

  it('is none before the day on which the warm-up begins', () => {
    const env = createTestEgress(
      '[{ name = "new", address = "192.0.2.1", warmup = { started = "2026-12-24" } }]',
    );
    expect(env.take(transactional())).toBeNull();
    expect(env.egress().obstacle('default', marketing())).toMatchObject({
      until: Date.UTC(2026, 11, 24),
      text: 'waits for the warm-up of 192.0.2.1 at Google (0 of 0 used)',
    });
  });

  it('does not apply to mail over a fixed route', () => {
    const env = createTestEgress(`[${ENTRY}]`);
    const routed = { provider: null, priority: 1, hosts: [] } as const;
    for (let n = 0; n < 60; n++) expect(env.take(routed)).not.toBeNull();
  });
});

describe('transactional mail', () => {
  it('may use twice the quota when no warm address can take it, then waits', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    await env.sendAll(marketing());
    expect(await env.sendAll(transactional())).toEqual({ new: 50 });
    expect(env.counts('new')).toMatchObject({ transactional: 50, marketing: 50 });
  });

  it('waits like marketing mail with transactionalFactor = 1', async () => {
    const env = createTestEgress(`[${ENTRY}]`, { 'delivery.warmup.transactionalFactor': '1' });
    await env.sendAll(marketing());
    expect(env.take(transactional())).toBeNull();
  });

  it('overflows to the warm address without exceeding the quota', async () => {
    const env = createTestEgress(`[${ENTRY}, ${WARM}]`);
    const sent = await env.sendAll(transactional(), 400);
    expect(sent['new']).toBe(50);
  });

  it('is not displaced on the next day, as marketing mail leaves as much as it used before', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    await env.sendAll(transactional(), 30);
    env.clock.advance(DAY);
    expect(await env.sendAll(marketing())).toEqual({ new: 70 });
    expect(env.egress().obstacle('default', marketing())?.text).toContain('30 kept for transactional mail');
    expect(await env.sendAll(transactional(), 30)).toEqual({ new: 30 });
  });
});

describe('a step back', () => {
  it('follows deferrals above the threshold, once a day, takes effect immediately and recovers day by day', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    env.clock.advance(9 * DAY);
    const limit = () => / of (\d+) used/.exec(env.egress().obstacle('default', marketing())?.text ?? '')?.[1];
    await env.sendAll(marketing(), 22, DELIVERED);
    const sent = await env.sendAll(marketing(), 7000, THROTTLED);
    // Day 10 allows 6,500, day 7 allows 2,000.
    expect(sent['new']).toBe(1978);
    expect(limit()).toBe('2000');
    const [row] = env.tables.egressWarmup.all();
    expect(row).toMatchObject({ entry: 'new', provider: 'Google', shift: 3 });
    expect(row?.reason).toMatch(/^3 of 25 messages throttled or refused/);
    env.restart();
    expect(limit()).toBe('2000');
    env.clock.advance(DAY);
    expect(await env.sendAll(marketing(), 4000)).toEqual({ new: 3000 });
    expect(env.egress().obstacle('default', marketing('Yahoo'))).toBeNull();
  });

  it('does not follow recipients that do not exist', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    expect(await env.sendAll(marketing(), 60, UNKNOWN_USER)).toEqual({ new: 50 });
    expect(env.tables.egressWarmup.all()).toEqual([]);
  });

  it('repeats the first day after a step back on it', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    await env.sendAll(marketing(), 50, THROTTLED);
    env.clock.advance(DAY);
    expect(await env.sendAll(marketing())).toEqual({ new: 50 });
    env.clock.advance(DAY);
    expect(await env.sendAll(marketing())).toEqual({ new: 100 });
  });

  it('follows complaints, which are counted by another module', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    env.clock.advance(4 * DAY);
    await env.sendAll(marketing(), 700);
    const key = { day: Date.UTC(2026, 11, 5), entry: 'new', provider: 'Google' };
    await env.writer.run((tx) => tx.egressCounts.add(key, { complained: 3 }));
    await env.egress().refresh();
    expect(env.egress().obstacle('default', marketing())?.text).toContain('700 of 100 used');
    expect(env.tables.egressWarmup.all()[0]?.reason).toBe(
      '3 complaints about 700 delivered messages (limit 0.3 %)',
    );
  });
});

describe('rows that another process writes', () => {
  it('take effect with the next refresh: skipped, reset, and those of an earlier start ignored', async () => {
    const env = createTestEgress(`[${ENTRY}]`);
    await env.sendAll(marketing());
    env.tables.egressWarmup.put({
      ...ROW,
      provider: '',
      shift: 0,
      started: '2026-01-01',
      finished: 1,
      reason: 'x',
    });
    await env.egress().refresh();
    expect(env.take(marketing())).toBeNull();
    env.tables.egressWarmup.put({ ...ROW, provider: '', shift: 0, finished: 1, reason: 'skipped' });
    await env.egress().refresh();
    expect(env.take(marketing())).not.toBeNull();
    env.tables.egressWarmup.removeAll('new');
    env.tables.egressWarmup.put({ ...ROW, provider: 'Google', shift: -4, reason: 'skipped to day 5' });
    await env.egress().refresh();
    expect(await env.sendAll(marketing())).toEqual({ new: 749 });
  });

  it('are noticed once, when the operator wrote them', () => {
    const env = createTestEgress(`[${ENTRY}]`);
    const put = (changed_at: number, reason: string) =>
      env.tables.egressWarmup.put({ ...ROW, provider: '', shift: 0, changed_at, reason });
    const egress = env.egress();
    expect(egress.noticeChange()).toBe(false);
    put(DAY_ONE + 1, '40 of 100 messages throttled or refused (limit 10 %)');
    expect(egress.noticeChange()).toBe(false);
    put(DAY_ONE + 2, 'skipped by the operator on 2026-12-01');
    expect([egress.noticeChange(), egress.noticeChange()]).toEqual([true, false]);
    expect(egress.waitEnds()).toEqual([Date.UTC(2026, 11, 2), Date.UTC(2026, 11, 1)]);
  });
});

it('counts providers above the bound to one shared quota', async () => {
  const env = createTestEgress(`[${ENTRY}]`);
  await env.writer.run((tx) => {
    for (let n = 0; n < 1000; n++)
      tx.egressCounts.add(
        { day: Date.UTC(2026, 11, 1), entry: 'new', provider: `p${n}.example` },
        { marketing: 1 },
      );
  });
  expect(await env.sendAll(marketing('a.example'), 30)).toEqual({ new: 30 });
  expect(await env.sendAll(marketing('b.example'), 30)).toEqual({ new: 20 });
  expect(env.counts('new', 'other')?.marketing).toBe(50);
});
