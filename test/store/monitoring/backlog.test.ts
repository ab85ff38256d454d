import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { ReadRejected } from '../../../src/store/database/failure.ts';
import { HELD, HELD_BY_RESTORE, type QueueKey } from '../../../src/store/messages/queue.ts';
import { backlogTable } from '../../../src/store/monitoring/backlog.ts';
import { registerBacklogMetrics } from '../../../src/store/monitoring/backlog-metrics.ts';
import { createLocalReader, type Reader } from '../../../src/store/readers/reads.ts';
import { insertCampaignSend } from '../../support/campaign-sends.ts';
import { limitRow } from '../../support/sending-limits.ts';
import { enqueue, startStore } from '../../support/store.ts';

describe('the backlog', () => {
  it('is empty in an empty database', () => {
    const { tables } = startStore();
    expect(tables.backlog.read()).toEqual({
      queue: { ready: 0, sending: 0, waiting: 0, held: 0, oldestDue: null, destinations: [] },
      webhooks: { ready: 0, waiting: 0, oldest: null },
      limits: { notice: 0, slow: 0, pause: 0 },
      stoppedCampaigns: 0,
      certificates: [],
    });
  });

  it('has the automatic limits in force by level, and the campaigns that were stopped', () => {
    const { tables, clock } = startStore();
    (['pause', 'pause', 'slow', null] as const).forEach((level, n) =>
      tables.sendingLimits.put(limitRow({ limit_id: `limit_${n}`, provider: String(n), level })),
    );
    const now = clock.now();
    insertCampaignSend(tables, { id: 'stopped', status: 'paused', paused_figures: '{}' }, now);
    insertCampaignSend(tables, { id: 'paused', status: 'paused' }, now);
    insertCampaignSend(tables, { id: 'cancelled', status: 'cancelled', paused_figures: '{}' }, now);
    expect(tables.backlog.read()).toMatchObject({
      limits: { notice: 0, slow: 1, pause: 2 },
      stoppedCampaigns: 1,
    });
  });

  it('has the queue by state, its destinations, and the message that has been due longest', () => {
    const { tables, clock } = startStore();
    const now = clock.now();
    enqueue(tables, now, { recipient: 'a@one.example' });
    enqueue(tables, now - MINUTE, { recipient: 'b@one.example' });
    const sending = enqueue(tables, now - 2 * MINUTE, { recipient: 'c@one.example' });
    tables.queue.lease(sending.seq, 1);
    enqueue(tables, now, { recipient: 'd@two.example', dueAt: now + MINUTE });
    const held = enqueue(tables, now, { recipient: 'e@two.example' });
    tables.queue.defer(held.seq, HELD);
    const restored = enqueue(tables, now, { recipient: 'f@two.example' });
    tables.queue.defer(restored.seq, HELD_BY_RESTORE);
    // Of a disabled account or a failed domain.
    const ofDomain = enqueue(tables, now, { recipient: 'g@two.example' });
    tables.queue.hold(ofDomain.seq, now + MINUTE);
    expect(tables.backlog.read().queue).toEqual({
      ready: 2,
      sending: 1,
      waiting: 1,
      held: 3,
      oldestDue: now - MINUTE,
      destinations: [
        { destination: 'two.example', messages: 4, oldestDue: null },
        { destination: 'one.example', messages: 3, oldestDue: now - MINUTE },
      ],
    });
  });

  it('does not count mail as late whose key waits on a schedule', () => {
    const { tables, clock } = startStore();
    const now = clock.now();
    enqueue(tables, now - 3 * MINUTE, { recipient: 'a@one.example' });
    enqueue(tables, now - 2 * MINUTE, { recipient: 'b@two.example' });
    enqueue(tables, now - MINUTE, { recipient: 'c@three.example' });
    const [one, two, three] = ['one', 'two', 'three'].map(
      (name): QueueKey => ({ priority: 0, account_id: 'acct_one', destination: `${name}.example` }),
    );
    if (one === undefined || two === undefined || three === undefined) throw new Error('three keys');
    const oldest = (...keys: QueueKey[]) => tables.backlog.read(keys).queue.oldestDue;
    expect(oldest()).toBe(now - 3 * MINUTE);
    expect(oldest(one)).toBe(now - 2 * MINUTE);
    expect(oldest(one, two)).toBe(now - MINUTE);
    expect(oldest(one, two, three)).toBeNull();
    // The other priority, and another account.
    expect(oldest({ ...one, priority: 1 }, { ...one, account_id: 'acct_two' })).toBe(now - 3 * MINUTE);
    expect(tables.backlog.read([one, two, three]).queue.ready).toBe(3);
  });

  it('estimates the destinations of a long queue from a sample', () => {
    const { db, tables, clock } = startStore();
    for (let n = 0; n < 3000; n++)
      enqueue(tables, clock.now(), { recipient: `user@${n % 3 === 0 ? 'small' : 'large'}.example` });
    const { queue } = backlogTable(db, 300).read();
    expect(queue.ready).toBe(3000);
    expect(queue.destinations.map(({ destination }) => destination)).toEqual([
      'large.example',
      'small.example',
    ]);
    const [large, small] = queue.destinations;
    expect(large?.messages).toBeGreaterThan(1400);
    expect(large?.messages).toBeLessThan(2600);
    expect(small?.messages).toBeGreaterThan(600);
    expect(small?.messages).toBeLessThan(1400);
  });
});

describe('the metrics of the backlog', () => {
  it('share one read, and keep their values while reads are rejected', async () => {
    const { tables, clock } = startStore();
    enqueue(tables, clock.now() - MINUTE);
    const local = createLocalReader(tables);
    let reads = 0;
    let isBusy = false;
    let now = 0;
    const reader: Reader = {
      ...local,
      table: (...args) => {
        reads++;
        return isBusy ? Promise.reject(new ReadRejected('busy', 'too many queries')) : local.table(...args);
      },
    };
    const registry = new Registry();
    registerBacklogMetrics({ registry, reader, clock }, { now: () => now });
    const value = async (name: string) =>
      new RegExp(`^${name} (\\S+)$`, 'm').exec(await registry.metrics())?.[1];

    expect(await value('postrider_queue_oldest_due_seconds')).toBe('60');
    expect(reads).toBe(1);
    now += 1000;
    expect(await value('postrider_backlog_age_seconds')).toBe('1');
    expect(reads).toBe(1);
    isBusy = true;
    now += 600_000;
    expect(await value('postrider_backlog_age_seconds')).toBe('601');
    expect(await value('postrider_queue_oldest_due_seconds')).toBe('60');
    isBusy = false;
    now += 10_000;
    expect(await value('postrider_backlog_age_seconds')).toBe('0');
  });
});
