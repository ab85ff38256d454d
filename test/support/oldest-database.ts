import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DATABASE_FILE, openConnection } from '../../src/store/database/connection.ts';
import { type Database, openDatabase } from '../../src/store/database/database.ts';
import { migrateDatabase } from '../../src/store/migrate/migrate.ts';
import { knownMigrations } from '../../src/store/migrate/migrations.ts';
import { createTables } from '../../src/store/tables.ts';

/* A database of the first release (schema 1) with data, and its content before and after a migration. */

const STATUSES = ['delivered', 'delivered', 'delivered', 'bounced', 'deferred', 'queued'];
const START = Date.UTC(2026, 0, 1);
/** Rows of one read. */
const PAGE_ROWS = 5000;

/** With `messages` messages, each with an event and an attempt; every sixth is deferred and every sixth queued. */
export function createOldestDatabase(dir: string, messages: number): string {
  mkdirSync(dir, { recursive: true });
  const file = join(dir, DATABASE_FILE);
  migrateDatabase({ file, migrations: knownMigrations().filter(({ version }) => version === 1) });
  const db = openConnection(file, {});
  db.exec('PRAGMA synchronous = OFF');
  const rows = `WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${messages})`;
  const status = `CASE x % ${STATUSES.length} ${STATUSES.map((name, at) => `WHEN ${at} THEN '${name}'`).join(' ')} END`;
  const id = (kind: string) => `'${kind}_' || (${START} + x) || '_' || printf('%012d', x)`;
  db.exec(`
    INSERT INTO accounts VALUES ('acct_old', 'Old', 'active', 'Old Ltd', NULL, NULL, NULL, 1, 1);
    INSERT INTO domain_groups VALUES ('dgroup_old', 'acct_old', 'Default', NULL, NULL, NULL, 1, 1, 1);
    INSERT INTO domains (domain_id, account_id, group_id, name, use_case, region, status, alt_domain_id, alt_status,
      next_check_at, created_at, updated_at)
      VALUES ('domain_old', 'acct_old', 'dgroup_old', 'old.example', 'tx', 'local', 'SUCCESS', 'alt', 'ACTIVE', 1, 1, 1);
    INSERT INTO contents (body, created_at) VALUES ('{"subject":"Hello"}', 1);
    ${rows} INSERT INTO messages (message_id, account_id, content_id, use_case, domain_id, job_id, from_address,
        recipient, recipient_hash, role, subject, status, attempts, simulated, track_clicks, track_opens, created_at,
        updated_at, expires_at, sent_at, final_at)
      SELECT ${id('msg')}, 'acct_old', 1, iif(x % 3 = 0, 'mk', 'tx'), 'domain_old', iif(x % 7 = 0, ${id('job')}, NULL),
        'shop@old.example', 'user' || x || '@d' || (x % 100) || '.example', 'email_' || printf('%032x', x), 'to',
        'Order ' || x, ${status}, 1, 0, x % 2, 0, ${START} + x, ${START} + x, ${START} + x + 172800000,
        ${START} + x, iif(x % 6 < 4, ${START} + x, NULL) FROM n;
    INSERT INTO queue (seq, lane, account_id, domain_id, destination, due_at, ready)
      SELECT seq, iif(use_case = 'mk', 1, 0), account_id, domain_id, substr(recipient, instr(recipient, '@') + 1),
        expires_at, iif(status = 'queued', 1, 0) FROM messages WHERE status IN ('queued', 'deferred');
    INSERT INTO attempts SELECT seq, 1, created_at, 'primary',
      json_object('conclusion', 'replied', 'reply', '250 2.0.0 ok ' || seq, 'sessions', json('[]'))
      FROM messages WHERE status <> 'queued';
    INSERT INTO events (event_id, account_id, kind, at, message_seq, domain_id, data)
      SELECT 'evt_' || created_at || '_' || printf('%012d', seq), account_id, 'email_sent', created_at, seq, domain_id, '{}'
      FROM messages;
    INSERT INTO suppressions SELECT 'acct_old', recipient_hash, 'all', 'hard_bounce', recipient, seq, created_at
      FROM messages WHERE status = 'bounced'`);
  db.close();
  return file;
}

/** A digest of the content of an old database, in the terms of the current program. */
export function digestOfOldest(file: string): string {
  const db = openConnection(file, { fileMustExist: true });
  const hash = createHash('sha256');
  const attempts = db.prepare<[number], { attempt: number; at: number; lane: string; report: string }>(
    'SELECT attempt, at, lane, report FROM attempts WHERE message_seq = ? ORDER BY attempt',
  );
  const events = db.prepare<[number], { event_id: string; kind: string; at: number; data: string }>(
    'SELECT event_id, kind, at, data FROM events WHERE message_seq = ? ORDER BY seq',
  );
  const queued = db.prepare<[number], QueueColumns>(
    'SELECT lane AS priority, account_id, domain_id, destination, due_at, ready FROM queue WHERE seq = ?',
  );
  const page = db.prepare<[number], ContentRow>(
    `SELECT * FROM messages WHERE seq > ? ORDER BY seq LIMIT ${PAGE_ROWS}`,
  );
  for (let rows = page.all(0); rows.length > 0; rows = page.all(rows.at(-1)?.seq ?? 0)) {
    for (const row of rows)
      hash.update(contentText(row, attempts.all(row.seq), events.all(row.seq), queued.get(row.seq) ?? null));
  }
  hash.update(suppressionsText(db));
  db.close();
  return hash.digest('hex');
}

/** The same digest of a migrated database, read by the tables of the program. */
export function digestOfMigrated(dir: string): string {
  const db = openDatabase(dir);
  const tables = createTables(db);
  const hash = createHash('sha256');
  for (const seq of db.prepare<[], number>('SELECT seq FROM messages ORDER BY seq').pluck().all()) {
    const message = tables.messages.bySeq(seq);
    if (message === null) throw new Error(`there is no message ${seq}`);
    hash.update(
      contentText(
        message,
        tables.messages.attemptsOf(seq),
        tables.events.ofMessage(seq),
        tables.queue.get(seq),
      ),
    );
  }
  hash.update(suppressionsText(db));
  db.close();
  return hash.digest('hex');
}

function suppressionsText(db: Database): string {
  const rows = db.prepare(`
    SELECT account_id, recipient_hash, stream, reason, email, message_seq, created_at FROM suppressions
    ORDER BY account_id, recipient_hash`);
  return JSON.stringify(rows.all());
}

interface ContentRow {
  seq: number;
  message_id: string;
  [column: string]: unknown;
}

interface QueueColumns {
  priority: number;
  account_id: string;
  domain_id: string;
  destination: string;
  due_at: number;
  ready: number;
}

const COLUMNS =
  `message_id account_id content_id use_case domain_id job_id campaign_id subscription_group_id from_address
  recipient recipient_hash role subject status attempts simulated track_clicks track_opens created_at updated_at
  expires_at sent_at final_at`.split(/\s+/);

function contentText(
  message: object,
  attempts: readonly { attempt: number; at: number; lane: string; report: string }[],
  events: readonly { event_id: string; kind: string; at: number; data: string }[],
  queued: QueueColumns | null,
): string {
  const values = new Map(Object.entries(message));
  return JSON.stringify([
    COLUMNS.map((name) => values.get(name) ?? null),
    attempts.map(({ attempt, at, lane, report }) => [attempt, at, lane, JSON.parse(report)]),
    events.map(({ event_id, kind, at, data }) => [event_id, kind, at, JSON.parse(data)]),
    queued === null
      ? null
      : [
          queued.priority,
          queued.account_id,
          queued.domain_id,
          queued.destination,
          queued.due_at,
          queued.ready,
        ],
  ]);
}
