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
});
