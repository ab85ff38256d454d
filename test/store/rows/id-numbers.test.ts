import { describe, expect, it } from 'vitest';
import { openForReading } from '../../../src/store/database/database.ts';
import { idNumbers } from '../../../src/store/rows/id-numbers.ts';
import { startStore } from '../../support/store.ts';

describe('numbers of ids', () => {
  it('are looked up once on a read-only connection, although all its reads are in transactions', async () => {
    const { db, writer } = startStore();
    const number = await writer.run(() => Number(idNumbers(db).domain.assign('domain_1')));
    const readonly = openForReading(db.name);
    try {
      const { domain } = idNumbers(readonly);
      readonly.exec('BEGIN');
      expect(domain.id(number)).toBe('domain_1');
      readonly.exec('COMMIT');
      // The database no longer has the number.
      await writer.run(() => db.exec('DELETE FROM domain_numbers'));
      readonly.exec('BEGIN');
      expect(domain.id(number)).toBe('domain_1');
      expect(domain.find('domain_1')).toBe(BigInt(number));
      readonly.exec('COMMIT');
    } finally {
      readonly.close();
    }
  });

  it('are not cached while the transaction that assigned them can be rolled back', () => {
    const { db } = startStore();
    const { domain } = idNumbers(db);
    db.exec('BEGIN');
    const lost = domain.assign('domain_lost');
    expect(domain.id(Number(lost))).toBe('domain_lost');
    db.exec('ROLLBACK');
    db.exec('BEGIN');
    expect(domain.assign('domain_next')).toBe(lost);
    expect(domain.id(Number(lost))).toBe('domain_next');
    db.exec('COMMIT');
  });

  it('are looked up once although all lookups are in transactions', async () => {
    const { db, writer } = startStore();
    const { domain } = idNumbers(db);
    const number = await writer.run(() => domain.assign('domain_1'));
    await writer.run(() => domain.find('domain_1'));
    // The database no longer has the number.
    await writer.run(() => db.exec('DELETE FROM domain_numbers'));
    expect(await writer.run(() => domain.find('domain_1'))).toBe(number);
    expect(await writer.run(() => domain.id(Number(number)))).toBe('domain_1');
  });

  it('are not cached when the unit of work that assigned them is rolled back', async () => {
    const { db, writer } = startStore();
    const { domain } = idNumbers(db);
    const failed = writer.run(() => {
      const lost = domain.assign('domain_lost');
      domain.find('domain_lost');
      throw new Error(`the unit that assigned ${lost} failed`);
    });
    const next = writer.run(() => domain.assign('domain_next'));
    await expect(failed).rejects.toThrow('failed');
    const number = await next;
    expect(await writer.run(() => domain.find('domain_lost'))).toBe('domain_lost');
    expect(await writer.run(() => domain.id(Number(number)))).toBe('domain_next');
  });
});
