import { expect, it } from 'vitest';
import { readPersonalData } from '../../src/audience/personal-data.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { EXPORT_OF_TABLE } from '../../src/store/data-policies.ts';
import type { Database } from '../../src/store/database/database.ts';
import { granted } from '../support/refusal.ts';
import { startAudience } from './setup.ts';

/*
 * Every table that refers to a contact, by the schema: the export of a person has its rows, and an erasure leaves none. A
 * new table fails here until it has an example, a section of the export or a reason, and a step of the erasure.
 */
const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);
const AT = Date.UTC(2026, 0, 15);

/** A row about the contact in each table, as SQL with its number, and what the export has of it. */
const EXAMPLES: Readonly<Record<string, { sql?: (seq: number) => string; exported: object | null }>> = {
  consents: { exported: { consents: [{ method: 'web_form' }] } },
  subscriptions: { exported: { memberships: [{ isActive: true }] } },
  contact_engagement: {
    sql: (seq) =>
      `INSERT INTO contact_engagement (contact_seq, received_at, clicked_at, unanswered) VALUES (${seq}, ${AT}, ${AT}, 0)`,
    exported: {
      engagement: { receivedAt: '2026-01-15T00:00:00.000Z', clickedAt: '2026-01-15T00:00:00.000Z' },
    },
  },
  campaign_contacts: {
    sql: (seq) => `INSERT INTO campaign_contacts VALUES (1, ${seq}, 3)`,
    exported: {
      engagement: {
        campaigns: [{ campaignId: 'campaign_one', received: true, opened: true, clicked: false }],
      },
    },
  },
  sequence_people: {
    sql: (seq) => `INSERT INTO sequence_people
      (sequence_seq, contact_seq, occurrence, version, state, step, due_at, properties, entered_at)
      VALUES (1, ${seq}, 'once', 1, 'active', 2, ${AT}, '{"plan":"gold"}', ${AT})`,
    exported: {
      sequences: [{ sequenceId: 'seq_one', state: 'active', step: 2, properties: { plan: 'gold' } }],
    },
  },
  hygiene_findings: {
    sql: (seq) => `INSERT INTO hygiene_findings VALUES ('hygiene_one', 'typo', ${seq}, 'example.com', NULL)`,
    exported: { hygiene: [{ hygieneId: 'hygiene_one', kind: 'typo', detail: 'example.com' }] },
  },
  // Which contacts changed since their copy: nothing about the person but the number.
  segment_changes: {
    sql: (seq) => `INSERT OR REPLACE INTO segment_changes VALUES (${seq}, 1)`,
    exported: null,
  },
};

/** What the examples refer to. */
const OTHERS = [
  `INSERT INTO campaigns (seq, campaign_id, account_id, name, status, created_at, updated_at)
    VALUES (1, 'campaign_one', 'acct_one', 'Spring', 'sent', ${AT}, ${AT})`,
  `INSERT INTO sequences (seq, sequence_id, account_id, name, status, version, trigger_kind, trigger_key, offset_days, created_at, updated_at)
    VALUES (1, 'seq_one', 'acct_one', 'Welcome', 'active', 1, 'event', 'bought', 0, ${AT}, ${AT})`,
  `INSERT INTO hygiene_runs VALUES ('hygiene_one', 'acct_one', NULL, 'completed', '{}', ${AT}, ${AT})`,
];

/** Tables with a column that has the number of a contact. */
function referringTables(db: Database): { name: string; column: string }[] {
  return db
    .prepare<[], { name: string; column: string }>(`
      SELECT t.name, c.name AS "column" FROM pragma_table_list t JOIN pragma_table_info(t.name) c
      WHERE t.schema = 'main' AND t.type = 'table'
        AND (c.name LIKE '%contact_seq' OR EXISTS (
          SELECT 1 FROM pragma_foreign_key_list(t.name) f WHERE f."table" = 'contacts' AND f."from" = c.name))
      ORDER BY 1, 2`)
    .all();
}

it('has everything that refers to a contact in the export, and nothing of it after the erasure', async () => {
  const { db, add, subscriptions, groupId, reader, clock, erasure } = await startAudience();
  const contact = await add(ADA, { consent: { method: 'web_form' } });
  granted(
    await subscriptions.add(
      'acct_one',
      groupId,
      { contactIdentifier: ADA_ID, isActive: true },
      {
        by: 'key_one',
        ipAddress: null,
        userAgent: null,
      },
    ),
  );
  for (const sql of OTHERS) db.exec(sql);
  const tables = referringTables(db);
  expect([...new Set(tables.map(({ name }) => name))]).toEqual(Object.keys(EXAMPLES).toSorted());
  for (const { sql } of Object.values(EXAMPLES)) if (sql !== undefined) db.exec(sql(contact.seq));
  const counts = () =>
    tables.map(({ name, column }) => [
      name,
      db
        .prepare<[number], number>(`SELECT count(*) FROM "${name}" WHERE "${column}" = ?`)
        .pluck()
        .get(contact.seq),
    ]);
  expect(counts().filter(([, count]) => count === 0)).toEqual([]);

  const filter = { accountId: 'acct_one', identifier: ADA_ID, after: null, limit: 10 };
  const { data } = granted(await readPersonalData(reader, filter, clock.now()));
  for (const [table, { exported }] of Object.entries(EXAMPLES)) {
    if (exported === null) continue;
    expect(data, table).toMatchObject(exported);
    expect(EXPORT_OF_TABLE, table).toHaveProperty(table, Object.keys(exported)[0]);
  }

  granted(await erasure.erase('acct_one', ADA_ID));
  expect(counts().filter(([, count]) => count !== 0)).toEqual([]);
});
