import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSegmentCopies } from '../../src/audience/segments/copies.ts';
import { countSelected, NOTHING_EXCLUDED } from '../../src/audience/segments/evaluate.ts';
import type { SegmentFilter } from '../../src/audience/segments/filter.ts';
import { DAY } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { openWriteAheadLog } from '../../src/store/database/write-ahead-log.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import { createTables } from '../../src/store/tables.ts';
import { readOptions } from './options.ts';
import { percentile } from './result.ts';

/*
 * CPU time in which segments are counted:
 *
 *     npm run build && npm run bench:segments -- --contacts 1000000
 *
 * Fills a database with contacts of one account, half of them members of a group, copies them by column, and counts typical
 * filters, each several times, also while contacts are changed. Runs on one thread as a reader thread does. Exits with 1 when
 * the 95th percentile of the CPU time is 300 ms or more.
 */
const LIMIT_MS = 300;
const ROUNDS = 5;
const ACCOUNT = 'acct_bench';
const CAMPAIGN = 'campaign_bench';
const GROUP = 'sgroup_bench';
/** Contacts that change before each round. */
const CHANGED = 1000;

const { contacts: CONTACTS } = readOptions({
  command: 'npm run bench:segments',
  summary: `CPU time in which segments are counted. Exits with 1 when the 95th percentile is ${LIMIT_MS} ms or more. Build first
(npm run build).`,
  options: { contacts: { integer: 1_000_000, help: 'contacts of the account' } },
});

const is = (field: string, value: string): SegmentFilter => ({
  field: `customFields.${field}`,
  op: 'is',
  value,
});
const FILTERS: Record<string, SegmentFilter> = {
  'a custom field': is('plan', 'gold'),
  'members of a group': { group: GROUP },
  'address contains': { field: 'email', op: 'contains', value: '@provider3' },
  'opened in 30 days': { opened: { withinDays: 30 } },
  'number and date': {
    all: [
      { field: 'customFields.visits', op: 'greaterThan', value: 40 },
      { field: 'customFields.renewal', op: 'before', value: '2026-06-01' },
    ],
  },
  'members, gold, reading, not clicking': {
    all: [
      { group: GROUP },
      is('plan', 'gold'),
      { opened: { withinDays: 90 } },
      { not: { clicked: { withinDays: 90 } } },
    ],
  },
  'received a campaign, not opened': {
    all: [{ received: { campaignId: CAMPAIGN } }, { not: { opened: { campaignId: CAMPAIGN } } }],
  },
  'sleeping or new': { any: [{ received: { notWithinDays: 180 } }, { joined: { withinDays: 7 } }] },
};

const dir = mkdtempSync(join(tmpdir(), 'postrider-segments-'));
const db = openDatabase(dir, { busyTimeoutMs: 0 });
const tables = createTables(db);
const wal = openWriteAheadLog(db, {
  script: new URL('../../dist/store/database/flush-thread.js', import.meta.url),
});
const writer = createWriter(db, tables, { writeAheadLog: wal });
const now = Date.now();

try {
  fill();
  const log = createLog({ level: 'warn', hashAddresses: true });
  const copies = createSegmentCopies({ tables, writer, log, reader: createLocalReader(tables) });
  const copied = await cpuMs(copies.run);
  const { bytes } = db
    .prepare<[], { bytes: number }>('SELECT sum(octet_length(data)) AS bytes FROM segment_columns')
    .get() ?? { bytes: 0 };
  console.log(
    `${CONTACTS} contacts copied: ${copied.toFixed(0)} ms CPU, ${(bytes / 2 ** 20).toFixed(0)} MiB`,
  );
  const all: number[] = [];
  for (const [name, filter] of Object.entries(FILTERS)) {
    const times: number[] = [];
    let count = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await change(round);
      const selection = {
        ...NOTHING_EXCLUDED,
        accountId: ACCOUNT,
        filters: [JSON.stringify(filter)],
        now,
      };
      times.push(
        await cpuMs(async () => {
          ({ count } = countSelected.run(tables, selection, 10));
        }),
      );
    }
    all.push(...times);
    times.sort((one, two) => one - two);
    console.log(`${name}: ${count} contacts, median ${percentile(times, 0.5).toFixed(0)} ms CPU`);
    await copies.run();
  }
  all.sort((one, two) => one - two);
  const p95 = percentile(all, 0.95);
  console.log(`p95 ${p95.toFixed(0)} ms CPU`);
  process.exitCode = p95 < LIMIT_MS ? 0 : 1;
} finally {
  await writer.close();
  await wal.close();
  db.close();
  rmSync(dir, { recursive: true });
}

/** The CPU time of this process for some work, ms. */
async function cpuMs(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Changes contacts as opens and imports do, at random places. */
async function change(round: number): Promise<void> {
  await writer.run((tx) => {
    for (let n = 0; n < CHANGED; n++) {
      const contact_seq = 1 + ((n * 7919 + round * 104_729) % CONTACTS);
      tx.engagement.record({ contact_seq, received_at: now, opened_at: now, clicked_at: null });
    }
  });
}

/** Inserts the rows by SQL, without the search index, which segments do not use. */
function fill(): void {
  db.transaction(() => {
    const account = db.prepare<[string, number, number]>(`
      INSERT INTO accounts (account_id, name, status, created_at, updated_at) VALUES (?, 'Bench', 'active', ?, ?)`);
    account.run(ACCOUNT, now, now);
    const group = db.prepare<[string, string, number, number]>(`
      INSERT INTO subscription_groups (subscription_group_id, account_id, name, is_active, tags, created_at, updated_at)
      VALUES (?, ?, 'News', 1, '[]', ?, ?)`);
    group.run(GROUP, ACCOUNT, now, now);
    const campaign = db.prepare<[string, string, number, number]>(`
      INSERT INTO campaigns (campaign_id, account_id, name, status, created_at, updated_at)
      VALUES (?, ?, 'Spring', 'sent', ?, ?)`);
    campaign.run(CAMPAIGN, ACCOUNT, now, now);
    const values = { account: ACCOUNT, contacts: CONTACTS, now, day: DAY };
    const numbers =
      'WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < @contacts)';
    const insert = (sql: string) => db.prepare<[typeof values]>(sql).run(values);
    insert(`
      INSERT INTO contacts (account_id, user_id, email, email_hash, first_name, last_name, custom_fields, global_status,
        source, added_by, created_at, updated_at, search_text)
      ${numbers} SELECT @account, 'u' || n, 'person' || n || '@provider' || (n % 7) || '.example', 'email_' || n,
        'First' || (n % 1009), 'Last' || (n % 9973),
        json_object('plan', CASE n % 5 WHEN 0 THEN 'gold' WHEN 1 THEN 'silver' ELSE 'free' END, 'visits', (n * 31) % 100,
          'renewal', date('2026-01-01', '+' || (n % 365) || ' days'), 'city', 'City ' || (n % 500)),
        'active', 'import', 'import', @now - (n % 1000) * @day, @now, ''
      FROM numbers`);
    insert(`
      INSERT INTO subscriptions (group_seq, contact_seq, is_active, source, consent_method, joined_at, updated_at)
      SELECT 1, seq, seq % 10 < 9, 'import', 'import', @now - (seq % 900) * @day, @now FROM contacts
      WHERE seq % 2 = 0 AND account_id = @account AND @contacts > 0`);
    insert(`
      INSERT INTO contact_engagement (contact_seq, received_at, opened_at, clicked_at)
      SELECT seq, @now - (seq % 300) * @day, CASE WHEN seq % 3 = 0 THEN @now - (seq % 300) * @day END,
        CASE WHEN seq % 11 = 0 THEN @now - (seq % 300) * @day END
      FROM contacts WHERE seq % 4 <> 1 AND account_id = @account AND @contacts > 0`);
    insert(`
      INSERT INTO campaign_contacts (campaign_seq, contact_seq, bits)
      SELECT 1, seq, CASE WHEN seq % 3 = 0 THEN 3 ELSE 1 END FROM contacts
      WHERE seq % 2 = 0 AND account_id = @account AND @contacts > 0 AND @now > 0 AND @day > 0`);
  })();
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}
