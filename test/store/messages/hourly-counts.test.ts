import { describe, expect, it } from 'vitest';
import { HOUR } from '../../../src/core/clock.ts';
import { refuse } from '../../../src/core/refusal.ts';
import { readMessageStats } from '../../../src/events/message-stats.ts';
import { createWriter } from '../../../src/store/database/writer.ts';
import {
  type CountedMessages,
  type CountKey,
  hourlyCountTable,
} from '../../../src/store/messages/hourly-counts.ts';
import { createTables } from '../../../src/store/tables.ts';
import { enqueue, startStore } from '../../support/store.ts';

const NOON = Date.UTC(2026, 0, 15, 12);

function key(fields: Partial<CountKey> = {}): CountKey {
  return {
    hour: NOON,
    accountId: 'acct_one',
    domainId: 'domain_one',
    provider: 'example.net',
    stream: 'tx',
    outcome: 'accepted',
    outcomeClass: '',
    ...fields,
  };
}

const DAY = { by: 'day', from: NOON - 12 * HOUR, to: NOON + 12 * HOUR } as const;

describe('the hourly counts', () => {
  it('are written once for all units of a commit, and reported when the commit is done', async () => {
    const { db, tables } = startStore();
    const reported: (readonly CountedMessages[])[] = [];
    const writer = createWriter(db, tables, { onCounted: (counted) => reported.push(counted) });
    await Promise.all(
      // With so many waiting units only CPU time ends a group.
      Array.from({ length: 20 }, (_, n) =>
        writer.run((tx) => {
          tx.hourlyCounts.add(key());
          if (n === 0) tx.hourlyCounts.add(key({ outcome: 'delivered' }));
        }),
      ),
    );
    expect(reported).toEqual([
      [
        { ...key(), messages: 20 },
        { ...key({ outcome: 'delivered' }), messages: 1 },
      ],
    ]);
    expect(readMessageStats(tables, DAY).total.outcomes).toMatchObject({ accepted: 20, delivered: 1 });
    await writer.close();
  });

  it('are dropped with a unit that throws or is refused', async () => {
    const { tables, writer } = startStore();
    const results = await Promise.allSettled([
      writer.run((tx) => tx.hourlyCounts.add(key(), 1)),
      writer.run((tx) => {
        tx.hourlyCounts.add(key(), 10);
        throw new Error('no');
      }),
      writer.run((tx) => {
        tx.hourlyCounts.add(key(), 100);
        return refuse('INVALID_STATE', 'no');
      }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(readMessageStats(tables, DAY).total.outcomes.accepted).toBe(1);
  });

  it('are dropped with a transaction that fails, and not added to the next one', async () => {
    const { db, tables, writer } = startStore();
    db.exec(
      `CREATE TEMP TRIGGER fails BEFORE INSERT ON hourly_counts BEGIN SELECT raise(ROLLBACK, 'disk full'); END`,
    );
    await expect(writer.run((tx) => tx.hourlyCounts.add(key(), 5))).rejects.toThrow('disk full');
    db.exec('DROP TRIGGER fails');
    await writer.run((tx) => tx.hourlyCounts.add(key(), 2));
    expect(readMessageStats(tables, DAY).total.outcomes.accepted).toBe(2);
  });

  it('have a bounded number of rows for each hour and account', () => {
    const { db } = startStore();
    const counts = hourlyCountTable(db, 5);
    for (let n = 0; n < 20; n++) counts.add(key({ provider: `host${n}.example` }));
    for (let n = 0; n < 3; n++) counts.add(key({ provider: 'host0.example' }));
    counts.add(key({ accountId: 'acct_two' }));
    counts.endUnit(true);
    counts.write();
    const rows = db.prepare<[], number>('SELECT count(*) FROM hourly_counts').pluck().get();
    expect(rows).toBe(5 + 1 + 1);
    const sums = counts.sums({ hour: NOON, accountId: 'acct_one' }, 'provider');
    expect(sums.find(({ name }) => name === 'host0.example')?.messages).toBe(4);
    expect(sums.find(({ name }) => name === 'other')?.messages).toBe(15);
  });

  it('include the hours that contain the limits of a period', async () => {
    const { tables, writer } = startStore();
    await writer.run((tx) => {
      for (const hours of [-2, -1, 0, 1, 2]) tx.hourlyCounts.add(key({ hour: NOON + hours * HOUR }));
    });
    const { rows, from, to } = readMessageStats(tables, { by: 'hour', from: NOON - 1, to: NOON + HOUR + 1 });
    expect(rows.map(({ name }) => (Number(name) - NOON) / HOUR)).toEqual([-1, 0, 1]);
    expect([from, to]).toEqual([NOON - HOUR, NOON + 2 * HOUR]);
  });

  it('count deferred messages of one account', () => {
    const { db, tables, clock } = startStore();
    for (const status of ['deferred', 'deferred', 'delivered'] as const) {
      const { seq } = enqueue(tables, clock.now());
      tables.messages.setState(seq, status, clock.now(), null, null);
    }
    expect(createTables(db).hourlyCounts.deferredNow('acct_one')).toBe(2);
    expect(tables.hourlyCounts.deferredNow('acct_two')).toBe(0);
  });
});
