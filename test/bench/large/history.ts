import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { searchKeys } from '../../../src/audience/search-key.ts';
import type { MessageContent } from '../../../src/mail/content.ts';
import { contactSearchIndex } from '../../../src/store/contacts/contact-search.ts';
import { DATABASE_FILE } from '../../../src/store/database/database.ts';
import { MESSAGE_STATUSES } from '../../../src/store/messages/messages.ts';
import { migrateDatabase } from '../../../src/store/migrate/migrate.ts';
import { knownMigrations } from '../../../src/store/migrate/migrations.ts';
import { packJson } from '../../../src/store/rows/packed-json.ts';
import {
  codeOfKind,
  keyOfEvent,
  keyOfId,
  keyOfRecipient,
  STATUS_CODES,
} from '../../../src/store/rows/row-keys.ts';
import { htmlOf, SUBJECT } from '../message.ts';
import { RECIPIENT_DOMAINS } from '../receiver.ts';
import { CAMPAIGNS, type Installation, writeInstallation } from './installation.ts';

/**
 * Writes the history of a large installation with SQL.
 *
 * Per 5 million messages over 90 days: 12 million events, 1 million contacts, 200,000 suppressions, 2 million webhook
 * deliveries, contents for the last 7 days. The first of five accounts owns 40 %. All values are computed from the row
 * number: two databases of the same size have the same history.
 */
export interface HistoryOptions {
  messages: number;
  /** People of all accounts; all are contacts. Default: PEOPLE_SHARE of the messages. */
  people?: number | undefined;
  /** The end of the history, epoch ms. */
  now: number;
  onProgress?(done: string): void;
}

/** Tables with rows that the product created; copied to the new database. */
const COPIED = [
  'account_numbers',
  'domain_numbers',
  'campaign_numbers',
  'subscription_group_numbers',
  'accounts',
  'api_keys',
  'settings',
  'domain_groups',
  'domains',
  'dkim_keys',
  'webhooks',
  'webhook_secrets',
  'subscription_groups',
  'campaigns',
] as const;

export const DAYS = 90;
export const DAY_MS = 86_400_000;
export const HOUR_MS = DAY_MS / 24;
const BODY_DAYS = 7;
const BODY_BYTES = 10_240;
const PEOPLE_SHARE = 0.2;
const SUPPRESSED_SHARE = 0.2;
/** Percent of the messages and people, by account. */
const ACCOUNT_SHARES = [40, 25, 15, 10, 10];
const CHUNK = 100_000;
/** Contacts per transaction when the search index is filled. */
const INDEX_BATCH_SIZE = 20_000;

/** Address of person `number`, the same in contacts and messages. */
export function personAddress(number: number): string {
  return `person${number}@${RECIPIENT_DOMAINS[number % RECIPIENT_DOMAINS.length]}`;
}

/** The job id of an account's marketing messages during a campaign. */
export function jobIdOf(now: number, { campaign, account }: { campaign: number; account: number }): string {
  return `job_${now - DAYS * DAY_MS}_${(campaign * 10 + account).toString(16).padStart(12, '0')}`;
}

/** Number of people of the first account, who have the numbers from 0 on. */
export function peopleOf(messages: number, people = peopleTotal(messages)): number {
  return Math.floor((people * (ACCOUNT_SHARES[0] ?? 0)) / 100);
}

/** Members of the first account's group: half of its people. */
export function membersOf(messages: number, people?: number): number {
  return Math.floor(peopleOf(messages, people) / 2);
}

function peopleTotal(messages: number): number {
  return Math.max(100, Math.round(messages * PEOPLE_SHARE));
}

/** Creates `dataDir` as a copy of `preparedDir` with a history. */
export function buildHistory(
  preparedDir: string,
  dataDir: string,
  installation: Installation,
  options: HistoryOptions,
): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(preparedDir))
    if (!name.startsWith(DATABASE_FILE) && name !== 'daemon.lock')
      copyFileSync(join(preparedDir, name), join(dataDir, name));
  writeInstallation(dataDir, { ...installation, history: { messages: options.messages, now: options.now } });
  const file = join(dataDir, DATABASE_FILE);
  if (existsSync(file)) throw new Error(`${file} already exists`);
  migrateDatabase({ file, migrations: knownMigrations() });
  const db = new Sqlite(file);
  try {
    db.exec('PRAGMA journal_mode = OFF');
    db.exec('PRAGMA synchronous = OFF');
    db.exec('PRAGMA foreign_keys = OFF');
    db.exec('PRAGMA recursive_triggers = OFF');
    db.exec('PRAGMA temp_store = MEMORY');
    db.exec('PRAGMA cache_size = -524288');
    copyPrepared(db, join(preparedDir, DATABASE_FILE));
    fill(db, installation, options);
    db.exec('PRAGMA journal_mode = WAL');
  } finally {
    db.close();
  }
  chmodSync(file, 0o600);
}

function copyPrepared(db: Sqlite.Database, prepared: string): void {
  db.prepare('ATTACH ? AS prepared').run(prepared);
  for (const table of COPIED) db.exec(`INSERT INTO main.${table} SELECT * FROM prepared.${table}`);
  db.exec('DETACH prepared');
}

function fill(db: Sqlite.Database, installation: Installation, options: HistoryOptions): void {
  const { messages, people = peopleTotal(messages), now, onProgress = () => {} } = options;
  const indexes = dropIndexes(db);
  db.function('md5', { deterministic: true }, (text) => createHash('md5').update(String(text)).digest('hex'));
  createFunctions(db);
  createShares(db, installation, people);
  createPeople(db, people);
  onProgress('people');
  fillContacts(db, installation, options);
  onProgress('contacts');
  for (let first = 1; first <= messages; first += CHUNK) {
    const last = Math.min(messages, first + CHUNK - 1);
    db.transaction(() => fillChunk(db, installation, { first, last, messages, now }))();
    onProgress(`messages up to ${last}`);
  }
  db.transaction(() => fillRest(db, installation, options))();
  for (const sql of indexes) db.exec(sql);
  onProgress('indexes');
  indexContacts(db);
  onProgress('contact search');
}

const CODES_OF_STATUSES = new Map<string, number>(
  MESSAGE_STATUSES.map((status) => [status, STATUS_CODES.code(status)]),
);

/** The forms in which rows have their values (store/rows). */
function createFunctions(db: Sqlite.Database): void {
  const functions = {
    id_key: (kind: string, id: string | null) => (id === null ? null : keyOfId(kind, id)),
    event_key: (id: string, at: number) => keyOfEvent(id, at),
    recipient_key: (identifier: unknown) => keyOfRecipient(String(identifier)),
    packed_json: (json: unknown, at: unknown) => packJson(JSON.parse(String(json)), Number(at)),
    status_code: (status: unknown) => CODES_OF_STATUSES.get(String(status)) ?? null,
    kind_code: (kind: unknown) => codeOfKind(String(kind)),
  };
  for (const [name, call] of Object.entries(functions))
    db.function(name, { deterministic: true, varargs: true }, call);
}

/** Drops the indexes of the large tables, which are faster to create afterwards; returns their definitions. */
function dropIndexes(db: Sqlite.Database): string[] {
  const indexes = db
    .prepare<[], { name: string; sql: string }>(`
      SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL
        AND tbl_name IN ('messages', 'events', 'queue', 'contents', 'contacts', 'subscriptions', 'suppressions', 'webhook_deliveries')`)
    .all();
  for (const { name } of indexes) db.exec(`DROP INDEX ${name}`);
  return indexes.map(({ sql }) => sql);
}

/** One row per percent of the messages: its account, domains and recipients. */
function createShares(db: Sqlite.Database, { accounts, domains }: Installation, total: number): void {
  db.exec(`CREATE TEMP TABLE shares (
    percent INTEGER PRIMARY KEY, account INTEGER, account_id TEXT, tx_domain TEXT, mk_domain TEXT, rare_domain TEXT,
    first_person INTEGER, people INTEGER)`);
  const insert = db.prepare('INSERT INTO shares VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
  let percent = 0;
  accounts.forEach(({ accountId }, account) => {
    const share = ACCOUNT_SHARES[account] ?? 0;
    const own = (kind: 'tx' | 'mk' | 'rare') =>
      account === 0 ? domains[kind].domainId : `domain_1700000000000_${kind.padEnd(8, '0')}000${account}`;
    const first = Math.floor((percent * total) / 100);
    const people = Math.floor(((percent + share) * total) / 100) - first;
    for (const end = percent + share; percent < end; percent++)
      insert.run(percent, account, accountId, own('tx'), own('mk'), own('rare'), first, people);
  });
  db.exec(`
    INSERT OR IGNORE INTO account_numbers (id) SELECT DISTINCT account_id FROM shares;
    INSERT OR IGNORE INTO domain_numbers (id) SELECT tx_domain FROM shares UNION SELECT mk_domain FROM shares
      UNION SELECT rare_domain FROM shares`);
}

function createPeople(db: Sqlite.Database, total: number): void {
  db.function('person_address', { deterministic: true }, (number) => personAddress(Number(number)));
  db.exec(`CREATE TEMP TABLE people (number INTEGER PRIMARY KEY, address TEXT, hash TEXT, percent INTEGER)`);
  db.prepare(`
    WITH RECURSIVE range (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM range WHERE n + 1 < ?),
      addressed AS MATERIALIZED (SELECT n, person_address(n) AS address FROM range)
    INSERT INTO people SELECT n, address, 'email_' || md5(address), n * 100 / ? FROM addressed`).run(
    BigInt(total),
    BigInt(total),
  );
}

/** All people are contacts; half of the first account's people are members of its group. */
function fillContacts(
  db: Sqlite.Database,
  installation: Installation,
  { messages, people, now }: HistoryOptions,
): void {
  db.function('search_keys', { deterministic: true }, (email, first, last) =>
    JSON.stringify(
      searchKeys({ email: String(email), phone: null, first_name: String(first), last_name: String(last) }),
    ),
  );
  const begin = now - DAYS * DAY_MS;
  db.prepare(`
    WITH named AS MATERIALIZED (
      SELECT p.number, p.address, p.hash, s.account_id, 'First' || (p.number % 1009) AS first_name,
        'Last' || (p.number % 9973) AS last_name
      FROM people p JOIN shares s USING (percent)),
    keyed AS MATERIALIZED (SELECT *, search_keys(address, first_name, last_name) AS keys FROM named)
    INSERT INTO contacts (seq, account_id, user_id, email, email_hash, first_name, last_name, custom_fields, global_status,
      consent_n, source, added_by, email_key, name_key, last_name_key, search_text, created_at, updated_at)
    SELECT number + 1, account_id,
      printf('%08x-%04x-7%03x-8%03x-%012x', (@begin + number) >> 16, (@begin + number) & 65535, number % 4096,
        (number * 31) % 4096, number * 2654435761),
      address, hash, first_name, last_name, '{"plan":"gold","city":"Berlin"}',
      CASE number % 100 WHEN 7 THEN 'unsubscribed' WHEN 8 THEN 'bounced' ELSE CASE number % 5000 WHEN 9 THEN 'complained' ELSE 'active' END END,
      1, 'import', 'import', keys ->> 'email_key', keys ->> 'name_key', keys ->> 'last_name_key', keys ->> 'search_text',
      @begin + number, @begin + number
    FROM keyed ORDER BY number`).run({ begin: BigInt(begin) });
  db.prepare(`
    INSERT INTO consents (contact_seq, n, action, method, recorded_at, recorded_by)
    SELECT seq, 1, 'given', 'imported', created_at, 'import' FROM contacts ORDER BY seq`).run();
  const members = membersOf(messages, people);
  db.prepare(`
    INSERT INTO subscriptions (group_seq, contact_seq, is_active, source, consent_method, joined_at, updated_at)
    SELECT ?, seq, 1, 'import', 'imported', created_at, created_at FROM contacts WHERE seq <= ? ORDER BY seq`).run(
    installation.group.seq,
    members,
  );
  db.prepare(
    'UPDATE subscription_groups SET total_subscribers = ?, active_subscribers = ? WHERE seq = ?',
  ).run(members, members, installation.group.seq);
}

interface Chunk {
  first: number;
  last: number;
  messages: number;
  now: number;
}

/** Reproducible pseudo-random values: three draws below 2^24 from a message's number. */
const DRAWS = `
  drawn AS (SELECT n, ((n * 2654435761) & 4294967295) >> 8 AS r1 FROM range),
  mixed AS (SELECT n, r1, ((r1 * 40503 + 12829) >> 4) & 16777215 AS r2, ((r1 * 69069 + 7919) >> 3) & 16777215 AS r3 FROM drawn)`;

function fillChunk(
  db: Sqlite.Database,
  installation: Installation,
  { first, last, messages, now }: Chunk,
): void {
  const begin = now - DAYS * DAY_MS;
  const span = DAYS * DAY_MS;
  const content = JSON.stringify(contentAt(now));
  // better-sqlite3 binds numbers as floating-point values, for which SQLite's division does not round.
  const at = {
    first: BigInt(first),
    last: BigInt(last),
    messages: BigInt(messages),
    begin: BigInt(begin),
    span: BigInt(span),
  };
  const { campaignIds } = installation;
  db.exec('CREATE TEMP TABLE IF NOT EXISTS campaign_ids (number INTEGER PRIMARY KEY, campaign_id TEXT)');
  campaignIds.forEach((id, number) => {
    db.prepare('INSERT OR REPLACE INTO campaign_ids VALUES (?, ?)').run(number, id);
    db.prepare('INSERT OR IGNORE INTO campaign_numbers (id) VALUES (?)').run(id);
  });
  db.prepare('INSERT OR IGNORE INTO subscription_group_numbers (id) VALUES (?)').run(
    installation.group.subscriptionGroupId,
  );
  db.exec(`
    CREATE TEMP TABLE IF NOT EXISTS sends (seq INTEGER PRIMARY KEY, message_id, account_id, use_case, domain_id, job_id,
      campaign_id, subscription_group_id, from_address, recipient, recipient_hash, subject, status, created_at);
    DELETE FROM sends`);
  // State: 1 % of the newest messages wait in the queue.
  db.prepare(`
    WITH RECURSIVE range (n) AS (SELECT @first UNION ALL SELECT n + 1 FROM range WHERE n < @last), ${DRAWS},
    timed AS (SELECT *, @begin + CAST((n - 1) * 1.0 / @messages * @span AS INTEGER) AS at, r2 % 10000 AS state FROM mixed)
    INSERT INTO sends
    SELECT n, printf('msg_%d_%012x', at, n), s.account_id,
      CASE WHEN r3 % 4 = 0 THEN 'mk' ELSE 'tx' END,
      CASE WHEN r3 % 4 = 0 THEN s.mk_domain WHEN r3 % 2000 = 1 THEN s.rare_domain ELSE s.tx_domain END,
      CASE WHEN r3 % 4 = 0 THEN printf('job_%d_%012x', @begin, n * ${CAMPAIGNS} / @messages * 10 + s.account) END,
      CASE WHEN r3 % 4 = 0 AND s.account = 0 THEN c.campaign_id END,
      CASE WHEN r3 % 4 = 0 AND s.account = 0 THEN @group END,
      CASE WHEN r3 % 4 = 0 THEN 'news@news.example' ELSE 'orders@shop.example' END,
      p.address, p.hash,
      CASE WHEN r3 % 4 = 0 THEN 'News of the week' ELSE 'Your order ' || n || ' was shipped' END,
      CASE WHEN n > @messages * 0.98 AND r1 % 2 = 0 THEN 'deferred' WHEN state < 400 THEN 'bounced' WHEN state < 500 THEN 'failed'
        WHEN state < 520 THEN 'complained' WHEN state < 521 THEN 'cancelled' ELSE 'delivered' END,
      at
    FROM timed JOIN shares s ON s.percent = r1 % 100 JOIN people p ON p.number = s.first_person + (r2 % s.people)
      LEFT JOIN campaign_ids c ON c.number = n * ${CAMPAIGNS} / (@messages + 1)
    ORDER BY n`).run({ ...at, group: installation.group.subscriptionGroupId });
  db.prepare(`
    INSERT INTO messages (seq, message_key, account, content_id, use_case_code, domain, job_key, campaign,
      subscription_group, from_address, recipient, recipient_key, role_code, subject, status_code, attempts, simulated,
      track_clicks, track_opens, created_at, updated_at, expires_at, sent_time, final_time, essential)
    SELECT seq, id_key('msg', message_id), a.number, seq, use_case = 'mk', d.number, id_key('job', job_id), c.number,
      g.number, from_address, recipient, recipient_key(recipient_hash), 0, subject, status_code(status), 1, 0,
      use_case = 'mk', use_case = 'mk', created_at, created_at + 1500, created_at + 172800000, created_at + 300,
      iif(status = 'deferred', -created_at, created_at + 1500), 0
    FROM sends JOIN account_numbers AS a ON a.id = account_id JOIN domain_numbers AS d ON d.id = domain_id
      LEFT JOIN campaign_numbers AS c ON c.id = campaign_id
      LEFT JOIN subscription_group_numbers AS g ON g.id = subscription_group_id
    ORDER BY seq`).run();
  db.prepare(`
    INSERT INTO attempts (message_seq, attempt, at, lane_code, report)
    SELECT seq, 1, created_at + 1500, 0, packed_json(CASE status
      WHEN 'delivered' THEN printf('${DELIVERED}', seq, seq % 4, seq % 4, seq % 4 + 1, seq, created_at + 300, created_at + 1500)
      ELSE printf('${REFUSED}', CASE status WHEN 'deferred' THEN 'defer' ELSE 'bounce' END, seq % 4, seq % 4, seq % 4 + 1, created_at + 300, created_at + 1500) END,
      created_at + 1500)
    FROM sends ORDER BY seq`).run();
  fillEvents(db, begin + Math.floor((last / messages) * span));
  db.prepare(`
    INSERT INTO contents (content_id, body, size, created_at)
    SELECT seq, ?, ?, created_at FROM sends WHERE created_at >= ? ORDER BY seq`).run(
    content,
    Buffer.byteLength(content),
    now - BODY_DAYS * DAY_MS,
  );
}

/** All messages of the history have the same content. */
function contentAt(date: number): MessageContent {
  return {
    from: { name: 'Shop', address: 'orders@shop.example' },
    to: [{ name: '', address: personAddress(0) }],
    cc: [],
    replyTo: null,
    subject: SUBJECT,
    html: htmlOf(BODY_BYTES),
    text: null,
    headers: [],
    attachments: [],
    messageId: 'history@shop.example',
    date,
  };
}

const REPLY = '{"code":250,"enhanced":"2.0.0","text":"Ok: queued as %08X"}';
const TLS =
  '{"protocol":"TLSv1.3","cipher":"TLS_AES_256_GCM_SHA384","verified":true,"policy":"opportunistic"}';
const SESSION = `"host":"mx%d.provider%d.example","address":"127.0.1.%d","port":25,"localAddress":"192.0.2.25","tls":${TLS}`;
const DELIVERED = `{"conclusion":"replied","action":"deliver","reply":${REPLY},"sessions":[{${SESSION},"stage":"dot","reply":${REPLY},"error":null,"startedAt":%d,"endedAt":%d}]}`;
const REFUSAL =
  '{"code":550,"enhanced":"5.1.1","text":"The email account that you tried to reach does not exist"}';
const REFUSED = `{"conclusion":"replied","action":"%s","classification":"invalid-recipient","reply":${REFUSAL},"sessions":[{${SESSION},"stage":"rcpt","reply":${REFUSAL},"error":null,"startedAt":%d,"endedAt":%d}]}`;

/** 2.4 events per message, in the order of their time, and a webhook delivery for those that the webhook subscribes to. */
function fillEvents(db: Sqlite.Database, end: number): void {
  db.prepare(`
    WITH chosen AS (SELECT seq, account_id, status, created_at, seq * 7919 % 100 AS draw FROM sends),
    happened (message_seq, account_id, kind, at, data) AS (
      SELECT seq, account_id, 'email_sent', created_at + 300, '{}' FROM chosen
      UNION ALL
      SELECT seq, account_id, CASE status WHEN 'deferred' THEN 'email_delayed' WHEN 'bounced' THEN 'email_bounced'
          WHEN 'failed' THEN 'email_failed' WHEN 'cancelled' THEN 'email_failed' ELSE 'email_delivered' END, created_at + 1500,
        CASE status
          WHEN 'bounced' THEN '{"bounceType":"hard","classification":"invalid-recipient","smtpCode":550,"enhancedCode":"5.1.1","diagnostic":"The email account that you tried to reach does not exist","source":"smtp","suppressed":true}'
          WHEN 'deferred' THEN '{"attempt":1,"nextAttemptAt":"2026-02-01T12:05:03.000Z","classification":"mailbox-full","smtpCode":452,"enhancedCode":"4.2.2","diagnostic":"Mailbox full"}'
          WHEN 'failed' THEN '{"reason":"expired","attempts":1,"classification":"mailbox-full","smtpCode":452,"enhancedCode":"4.2.2","diagnostic":"Mailbox full","lastDiagnostic":"Mailbox full"}'
          WHEN 'cancelled' THEN '{"reason":"cancelled"}'
          ELSE printf('{"smtpCode":250,"enhancedCode":"2.0.0","diagnostic":"Ok: queued as %08X","remoteHost":"mx%d.provider%d.example","tls":"TLSv1.3"}', seq, seq % 4, seq % 4) END
      FROM chosen
      UNION ALL
      SELECT seq, account_id, 'email_opened', created_at + 60000 + draw * 30000, '{"isMachine":false,"userAgent":"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)"}'
      FROM chosen WHERE status IN ('delivered', 'complained') AND draw < 33
      UNION ALL
      SELECT seq, account_id, 'email_clicked', created_at + 90000 + draw * 30000, '{"url":"https://shop.example/orders/4711","isMachine":false}'
      FROM chosen WHERE status IN ('delivered', 'complained') AND draw < 8
      UNION ALL
      SELECT seq, account_id, 'email_complained', created_at + 3600000, '{"source":"arf","verified":true,"suppressed":true}'
      FROM chosen WHERE status = 'complained')
    INSERT INTO events (event_key, account, kind_code, at, message_seq, data)
    SELECT event_key(printf('evt_%d_%012x', at, row_number() OVER (ORDER BY min(at, @end), message_seq)), min(at, @end)),
      number, kind_code(kind), min(at, @end), message_seq, iif(data = '{}', NULL, packed_json(data, min(at, @end)))
    FROM happened JOIN account_numbers ON id = account_id ORDER BY min(at, @end), message_seq`).run({ end });
}

/** Rows that depend on all messages. */
function fillRest(db: Sqlite.Database, installation: Installation, { messages, now }: HistoryOptions): void {
  const { accounts, webhook, campaignIds } = installation;
  const accountId = accounts[0]?.accountId;
  // Due late, so that only the benchmark's sends are delivered. The daemon shortens delays far above a day.
  db.prepare(`
    INSERT INTO queue (seq, lane, account, domain, destination, due_at, ready)
    SELECT seq, use_case_code, account, domain, substr(recipient, instr(recipient, '@') + 1), ? + seq, 0
    FROM messages WHERE status_code = status_code('deferred') ORDER BY seq`).run(now + 20 * HOUR_MS);
  db.prepare(`UPDATE messages SET expires_at = ? WHERE status_code = status_code('deferred')`).run(
    now + 730 * DAY_MS,
  );
  db.prepare(`
    INSERT INTO webhook_deliveries (webhook, event_seq, delivery_id, state, attempts, failures, due_at, attempted_at,
      response_code, response_body, created_at)
    SELECT ?, seq, printf('whd_%d_%012x', at, seq), CASE WHEN seq % 1000 = 1 THEN 'failed' ELSE 'succeeded' END, 1, 0, at, at + 40,
      CASE WHEN seq % 1000 = 1 THEN 500 ELSE 200 END, 'ok', at
    FROM events WHERE account = (SELECT number FROM account_numbers WHERE id = ?) AND kind_code IN (
      kind_code('email_delivered'), kind_code('email_bounced'), kind_code('email_failed'), kind_code('email_complained'))
    ORDER BY seq`).run(webhook.number, accountId);

  db.prepare(`
    INSERT OR IGNORE INTO suppressions (account_id, recipient_hash, stream, reason, email, message_seq, created_at)
    SELECT account_id, hash, CASE number % 20 WHEN 3 THEN 'tx' WHEN 4 THEN 'mk' ELSE 'all' END,
      CASE WHEN number % 20 = 4 THEN 'unsubscribe' WHEN number % 500 = 5 THEN 'complaint' WHEN number % 10 = 6 THEN 'manual' ELSE 'hard_bounce' END,
      address, NULL, ? + number
    FROM people JOIN shares USING (percent) WHERE number * 7919 % 1000 < ? ORDER BY number * 40503 % 65536`).run(
    now - DAYS * DAY_MS,
    SUPPRESSED_SHARE * 1000,
  );
  db.prepare(`
    INSERT INTO campaign_counts (campaign_id, hour, queued, sent, delivered, deferred, bounced, complained, failed)
    SELECT id, created_at - created_at % 3600000, count(*), count(*),
      sum(status_code IN (status_code('delivered'), status_code('complained'))), sum(status_code = status_code('deferred')),
      sum(status_code = status_code('bounced')), sum(status_code = status_code('complained')),
      sum(status_code = status_code('failed'))
    FROM messages JOIN campaign_numbers ON number = campaign GROUP BY 1, 2`).run();
  const sent = db.prepare(`UPDATE campaigns SET status = 'sent' WHERE campaign_id = ?`);
  for (const id of campaignIds.slice(0, CAMPAIGNS)) sent.run(id);
  db.prepare(`UPDATE domains SET next_check_at = ?`).run(now + 365 * DAY_MS);
  if (messages === 0) throw new Error('a history needs messages');
}

/** Fills the index of the contact search, which SQL alone cannot. */
function indexContacts(db: Sqlite.Database): void {
  const index = contactSearchIndex(db);
  const next = db.prepare<[number, number], Parameters<typeof index.add>[0]>(
    'SELECT seq, account_id, user_id, email_hash, phone_hash, search_text FROM contacts WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  for (let after = 0; ; ) {
    const rows = next.all(after, INDEX_BATCH_SIZE);
    if (rows.length === 0) return;
    db.transaction(() => {
      for (const row of rows) index.add(row);
    })();
    after = rows.at(-1)?.seq ?? after;
  }
}
