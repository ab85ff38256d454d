import { expect, it, vi } from 'vitest';
import { startStore } from '../../support/store.ts';

it('prepares each statement once, for any number of records and portions', async () => {
  const { db, writer } = startStore();
  const prepare = vi.spyOn(db, 'prepare');
  const use = (campaign: string) =>
    writer.run((tx) => {
      const { importedRecords } = tx;
      const record = { campaign_id: campaign, sends: [] };
      expect(importedRecords.conflict('campaign', record, 'acct_two')).toBeNull();
      expect(importedRecords.hasJob('job_one', 'acct_two')).toBe(false);
      expect(importedRecords.removeSome(tx, 'acct_two', 10)).toBe(0);
    });
  await use('campaign_one');
  expect(prepare).toHaveBeenCalled();
  prepare.mockClear();
  await use('campaign_two');
  expect(prepare).not.toHaveBeenCalled();
});

it('finds what a difference replaces about a recipient by indexes', async () => {
  const { db, writer } = startStore();
  const prepare = vi.spyOn(db, 'prepare');
  await writer.run((tx) =>
    tx.importedRecords.clearChanged(tx, 'acct_one', 'recipient', `email_${'0'.repeat(32)}`),
  );
  const texts = prepare.mock.calls
    .map(([text]) => text)
    .filter((text) => /DELETE[^]*recipient_hash = \?/.test(text));
  prepare.mockRestore();
  expect(texts).toHaveLength(3);
  for (const text of texts) {
    const plan = db
      .prepare<string[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all('acct_one', 'email');
    expect(plan.map(({ detail }) => detail).filter((detail) => detail.startsWith('SCAN'))).toEqual([]);
  }
});
