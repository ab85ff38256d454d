import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { DOMAIN_EVENT_KINDS, MESSAGE_EVENT_KINDS } from '../../../src/events/event-types.ts';
import { presentEvent } from '../../../src/events/feed.ts';
import { messageHistory, presentMessage, presentTimeline } from '../../../src/events/message-view.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { openConnection } from '../../../src/store/database/connection.ts';
import { type Database, openDatabase } from '../../../src/store/database/database.ts';
import type { EventRow } from '../../../src/store/messages/events.ts';
import {
  type AttemptRow,
  type ListedMessage,
  MESSAGE_STATUSES,
} from '../../../src/store/messages/messages.ts';
import { migrateDatabase } from '../../../src/store/migrate/migrate.ts';
import { knownMigrations, migrationsFrom } from '../../../src/store/migrate/migrations.ts';
import { idNumbers } from '../../../src/store/rows/id-numbers.ts';
import { createTables } from '../../../src/store/tables.ts';
import { startStore, temporaryDir } from '../../support/store.ts';

/*
 * A database of schema 16 is migrated, which rebuilds it with compact rows. The rows that are read before and after must be
 * the same. Before, they are read with the statements of schema 16, which are in this file; after, through the store.
 */
const T = Date.UTC(2026, 0, 15, 12);
const ACCOUNTS = ['acct_one', 'acct_0123456789ab'];
const DOMAINS = [`domain_${T}_0123456789ab`, 'domain_one', 'domain_deleted'];
const JOBS = [null, `job_${T - 5}_aaaaaaaaaaaa`, 'job_odd'];
const CAMPAIGNS = [null, `campaign_${T}_0123456789ab`, 'campaign_deleted'];
const RECIPIENTS = ['ada@example.net', 'grace@example.org', 'edsger@xn--bcher-kva.example'];
const FIELDS: Record<string, unknown> = {
  email_sent: {},
  email_delivered: {
    smtpCode: 250,
    enhancedCode: '2.0.0',
    diagnostic: 'OK 123 gsmtp',
    remoteHost: 'mx.example.net',
    tls: 'TLSv1.3',
  },
  email_delayed: {
    attempt: 1,
    nextAttemptAt: new Date(T + 600_000).toISOString(),
    classification: 'greylisted',
    smtpCode: 450,
    enhancedCode: null,
    diagnostic: 'später',
  },
  email_clicked: { url: 'https://shop.example/?a=b&c="d"', ip: '192.0.2.1', userAgent: null, isBot: false },
};

function insertInto(db: Database, table: string, row: Record<string, unknown>): void {
  const columns = Object.keys(row);
  const names = columns.map((name) => `@${name}`);
  db.prepare<Record<string, unknown>>(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${names.join(', ')})`,
  ).run(row);
}

/** A domain, a job and a campaign belong to one account. */
function own<Id extends string | null>(id: Id, account: string): Id | string {
  return id === null || account === 'acct_one' ? id : `${id}_other`;
}

/** Inserts every kind of row whose form changes. */
function fillOld(db: Database): void {
  for (const [index, account_id] of ACCOUNTS.entries()) {
    insertInto(db, 'accounts', { account_id, name: 'A', status: 'active', created_at: T, updated_at: T });
    insertInto(db, 'subscription_groups', {
      subscription_group_id: `sgroup_${index}`,
      account_id,
      name: 'G',
      is_active: 1,
      tags: '[]',
      created_at: T,
      updated_at: T,
    });
  }
  insertInto(db, 'domain_groups', {
    group_id: 'dgroup_one',
    account_id: 'acct_one',
    name: 'D',
    is_default: 1,
    created_at: T,
    updated_at: T,
  });
  for (const domain_id of DOMAINS.slice(0, 2)) {
    insertInto(db, 'domains', {
      domain_id,
      account_id: 'acct_one',
      group_id: 'dgroup_one',
      name: `${domain_id.length}.example`,
      use_case: 'tx',
      region: 'local',
      status: 'SUCCESS',
      dkim_enabled: 1,
      spf_configured: 1,
      dmarc_configured: 1,
      mx_configured: 1,
      return_path: 'customer',
      alt_domain_id: `alt_${domain_id}`,
      alt_status: 'PENDING',
      alt_provisioned: 0,
      alt_dkim_enabled: 0,
      alt_spf_configured: 0,
      alt_dmarc_configured: 0,
      next_check_at: T,
      check_count: 0,
      created_at: T,
      updated_at: T,
    });
  }
  insertInto(db, 'campaigns', {
    campaign_id: CAMPAIGNS[1],
    account_id: 'acct_one',
    name: 'C',
    status: 'sent',
    created_at: T,
    updated_at: T,
  });
  insertInto(db, 'webhooks', {
    webhook_id: 'webhook_one',
    account_id: 'acct_one',
    name: 'W',
    url: 'https://hook.example/',
    events: '["*"]',
    is_active: 1,
    created_at: T,
    updated_at: T,
  });
  insertInto(db, 'contacts', {
    account_id: 'acct_one',
    user_id: '01a20264-f6b0-755c-baaf-d4bf6ada61a1',
    email: 'ada@example.net',
    email_hash: emailIdentifier('ada@example.net'),
    custom_fields: '{}',
    global_status: 'active',
    source: 'api',
    added_by: 'key_one',
    created_at: T,
    updated_at: T,
    search_text: 'ada@example.net',
  });
  for (let n = 0; n < 120; n++) fillMessage(db, n);
  // As retention leaves it: an event can be younger than its message.
  db.exec('DELETE FROM events WHERE seq IN (3, 4); DELETE FROM messages WHERE seq = 19');
  for (const [index, kind] of DOMAIN_EVENT_KINDS.entries())
    fillEvent(db, {
      kind,
      n: index,
      message_seq: null,
      domain_id: DOMAINS[index] ?? null,
      data: { domain: 'x.example' },
    });
  for (const kind of ['email_unsubscribed', 'email_complained', 'email_suppressed'])
    fillEvent(db, {
      kind,
      n: 7,
      message_seq: null,
      domain_id: null,
      data: { contactIdentifier: emailIdentifier('ada@example.net'), campaignId: CAMPAIGNS[1], reason: 'ü' },
    });
  insertInto(db, 'kept_mail', {
    box: 'bounce',
    kind: 'dsn',
    recipient: 'b-x@example.com',
    sender: '',
    remote_address: '192.0.2.1',
    message_seq: 5,
    size: 1,
    received_at: T,
    raw: Buffer.from('x'),
  });
}

function fillMessage(db: Database, n: number): void {
  const content = db.prepare<[string, number]>('INSERT INTO contents (body, created_at) VALUES (?, ?)');
  const content_id = Number(content.run(JSON.stringify({ n }), T).lastInsertRowid);
  const pick = <Value>(values: readonly Value[], step = 1): Value => {
    const value = values[Math.floor(n / step) % values.length];
    if (value === undefined) throw new Error('there is no value');
    return value;
  };
  const status = pick(MESSAGE_STATUSES);
  const address = pick(RECIPIENTS);
  const recipient_hash = n === 13 ? 'email_odd' : emailIdentifier(address);
  const isFinal = !['queued', 'sending', 'deferred'].includes(status);
  const account_id = pick(ACCOUNTS, 5);
  const row = {
    message_id: n === 17 ? 'msg_odd' : `msg_${T + n}_${String(n).padStart(12, 'z')}`,
    account_id,
    content_id,
    use_case: pick(['tx', 'mk'], 3),
    domain_id: own(pick(DOMAINS), account_id),
    job_id: own(pick(JOBS, 2), account_id),
    campaign_id: own(pick(CAMPAIGNS, 4), account_id),
    subscription_group_id: pick([null, 'sgroup_0', 'sgroup_deleted'], 7),
    from_address: 'Größe <news@sender.example>',
    recipient: n % 11 === 0 ? recipient_hash : address,
    recipient_hash,
    role: pick(['to', 'cc', 'bcc'], 2),
    subject: n % 11 === 0 ? '' : `Bestellung ${n}`,
    status,
    attempts: n % 3,
    simulated: pick([0, 1], 8),
    track_clicks: n % 2,
    track_opens: 1,
    essential: pick([0, 1], 9),
    visits: n % 16,
    created_at: T + n,
    updated_at: T + 2 * n,
    expires_at: T + 86_400_000,
    sent_at: status === 'queued' ? null : T + n + 1,
    final_at: isFinal ? T + 2 * n : null,
  };
  insertInto(db, 'messages', row);
  const message_seq = n + 1;
  for (let attempt = 1; attempt <= n % 3; attempt++) {
    insertInto(db, 'attempts', {
      message_seq,
      attempt,
      at: T + n + attempt,
      lane: pick(['primary', 'secondary', 'simulator']),
      report: JSON.stringify({
        conclusion: 'replied',
        action: 'defer',
        ...(attempt === 1 ? {} : { classification: 'greylisted' }),
        reply: { code: 450, enhanced: null, text: `später ${n}` },
        sessions: [
          { host: 'mx.example', address: '2001:db8::1', startedAt: T + n, endedAt: T + n + attempt },
        ],
        other: [1.5, -1, true, null],
      }),
    });
  }
  if (!isFinal)
    insertInto(db, 'queue', {
      seq: message_seq,
      lane: n % 2,
      account_id,
      domain_id: row.domain_id,
      destination: 'example.net',
      due_at: T + n,
      ready: pick([0, 1], 3),
      lease: null,
      campaign_seq: null,
    });
  const kind = pick(MESSAGE_EVENT_KINDS);
  fillEvent(db, { kind: 'email_sent', n, message_seq, domain_id: null, data: {}, account_id });
  fillEvent(db, {
    kind,
    n,
    message_seq,
    domain_id: null,
    data: FIELDS[kind] ?? { reason: 'cancelled' },
    account_id,
  });
}

interface OldEvent {
  kind: string;
  n: number;
  message_seq: number | null;
  domain_id: string | null;
  data: unknown;
  account_id?: string;
}

function fillEvent(db: Database, { n, data, account_id = 'acct_one', ...row }: OldEvent): void {
  const time = n % 4 === 0 ? T + n - 1 : T + n;
  const event_id = n === 19 ? 'evt_odd' : `evt_${time}_${String(n).padStart(12, '0')}`;
  insertInto(db, 'events', { ...row, event_id, account_id, at: T + n, data: JSON.stringify(data) });
  const event_seq = db.prepare<[], number>('SELECT max(seq) FROM events').pluck().get() ?? 0;
  insertInto(db, 'webhook_deliveries', {
    webhook: 1,
    event_seq,
    delivery_id: `whd_${event_seq}`,
    state: 'ready',
    attempts: 0,
    failures: 0,
    due_at: T,
    created_at: T,
  });
}

/** Creates a database of schema 16 in `dir`. */
function createOldDatabase(dir: string): void {
  const file = join(dir, 'postrider.db');
  migrateDatabase({ file, migrations: knownMigrations().filter(({ version }) => version <= 16) });
  const db = openConnection(file, { fileMustExist: true });
  db.transaction(() => fillOld(db))();
  db.close();
}

/** The rows that the store returned with schema 16. */
function readOld(dir: string) {
  const db = openConnection(join(dir, 'postrider.db'), { fileMustExist: true });
  const messages = db
    .prepare<[], ListedMessage & { visits: number }>(
      'SELECT m.*, q.due_at, NULL AS hold_reason FROM messages m LEFT JOIN queue q USING (seq) ORDER BY m.seq',
    )
    .all();
  const events = db
    .prepare<[], EventRow>(`
      SELECT e.seq, e.event_id, e.account_id, e.kind, e.at, e.message_seq,
        coalesce(m.domain_id, e.domain_id) AS domain_id, e.data, m.message_id, m.job_id, m.campaign_id,
        m.subscription_group_id, m.use_case, m.from_address, m.recipient, m.recipient_hash, m.subject, m.simulated
      FROM events e LEFT JOIN messages m ON m.seq = e.message_seq ORDER BY e.seq`)
    .all();
  const attempts = db.prepare<[], AttemptRow>('SELECT * FROM attempts ORDER BY message_seq, attempt').all();
  const queue = db.prepare<[], { seq: number }>('SELECT * FROM queue ORDER BY seq').all();
  const sequences = db.prepare('SELECT name, seq FROM sqlite_sequence ORDER BY name').all();
  db.close();
  return { messages: messages.map(({ visits: _visits, ...row }) => row), events, attempts, queue, sequences };
}

function migrate(dir: string) {
  createOldDatabase(dir);
  const old = readOld(dir);
  const db = openDatabase(dir);
  return { dir, db, old, tables: createTables(db) };
}

let migrated: ReturnType<typeof migrate> | null = null;

/** One migrated database for all tests, which only read it. */
function upToDate() {
  migrated ??= migrate(mkdtempSync(join(tmpdir(), 'postrider-')));
  return migrated;
}

afterAll(() => {
  migrated?.db.close();
  if (migrated !== null) rmSync(migrated.dir, { recursive: true });
});

/** A column that an event without a message has in its data. */
function namedIn({ message_seq, data }: EventRow, column: string): unknown {
  if (message_seq !== null) return null;
  const fields: Record<string, unknown> = JSON.parse(data);
  return { campaign_id: fields['campaignId'], recipient_hash: fields['contactIdentifier'] }[column] ?? null;
}

const canonical = (json: string) => JSON.stringify(JSON.parse(json));

/** The whole catalog, in the order of its rows, and the properties of the file that are set before the first table. */
function catalogOf(db: Database): unknown {
  return {
    catalog: db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid').all(),
    format: ['user_version', 'auto_vacuum', 'page_size', 'encoding', 'application_id'].map((pragma) =>
      db.prepare(`PRAGMA ${pragma}`).get(),
    ),
  };
}

describe('a new database', () => {
  const versions = knownMigrations()
    .map(({ version }) => version)
    .filter((version) => version <= 16);

  it.each(versions)('has the same catalog as a migrated one of schema %i', (version) => {
    const dir = temporaryDir();
    const file = join(dir, 'postrider.db');
    migrateDatabase({ file, migrations: knownMigrations().filter((known) => known.version <= version) });
    const upgraded = openDatabase(dir);
    const created = openDatabase(temporaryDir());
    onTestFinished(() => {
      upgraded.close();
      created.close();
    });
    expect(catalogOf(upgraded)).toEqual(catalogOf(created));
  });
});

describe('a migrated database of schema 16', () => {
  it('is migrated to schema 21 by the rebuild only', () => {
    const steps = migrationsFrom(16, knownMigrations());
    expect(steps[0]).toMatchObject({ kind: 'rebuild', version: 21 });
    expect(steps.slice(1).filter(({ version }) => version <= 21)).toEqual([]);
  });

  it('has the same messages, found by number and by id', () => {
    const { old, tables } = upToDate();
    expect(old.messages.length).toBeGreaterThan(100);
    for (const { due_at, hold_reason, ...message } of old.messages) {
      expect(tables.messages.bySeq(message.seq)).toEqual(message);
      expect(tables.messages.byId(message.message_id)).toEqual({ ...message, due_at, hold_reason });
      expect(JSON.stringify(presentMessage(tables.messages.byId(message.message_id) ?? fail()))).toBe(
        JSON.stringify(presentMessage({ ...message, due_at, hold_reason })),
      );
    }
  });

  it('has the same events and attempts', () => {
    const { old, tables } = upToDate();
    for (const event of old.events) {
      expect(tables.events.bySeq(event.seq)).toEqual(event);
      expect(JSON.stringify(presentEvent(tables.events.bySeq(event.seq) ?? fail()))).toBe(
        JSON.stringify(presentEvent(event)),
      );
    }
    for (const { seq, message_id: id } of old.messages) {
      const attempts = old.attempts.filter(({ message_seq }) => message_seq === seq);
      expect(tables.messages.attemptsOf(seq)).toEqual(
        attempts.map((row) => ({ ...row, report: canonical(row.report) })),
      );
      const events = old.events.filter(({ message_seq }) => message_seq === seq);
      expect(tables.events.ofMessage(seq)).toEqual(events);
      expect(presentTimeline(messageHistory.run(tables, id) ?? fail())).toHaveLength(
        attempts.length + events.length,
      );
    }
  });

  const filters: [name: string, column: keyof ListedMessage & keyof EventRow, values: readonly string[]][] = [
    ['domainId', 'domain_id', DOMAINS],
    ['jobId', 'job_id', JOBS.filter((id) => id !== null)],
    ['campaignId', 'campaign_id', CAMPAIGNS.filter((id) => id !== null)],
    ['recipientHash', 'recipient_hash', [...RECIPIENTS.map(emailIdentifier), 'email_odd']],
  ];
  it.each(filters)('lists the same messages and events by %s', (name, column, values) => {
    const { old, tables } = upToDate();
    for (const accountId of ACCOUNTS) {
      for (const id of values) {
        const value = column === 'recipient_hash' ? id : own(id, accountId);
        const listed = tables.messages.list({ accountId, [name]: value, limit: 1000 });
        expect(listed.rows).toEqual(
          old.messages.filter((row) => row.account_id === accountId && row[column] === value).toReversed(),
        );
        const fed = tables.events.feed({ accountId, afterSeq: 0, [name]: value, limit: 1000 });
        expect(fed.rows).toEqual(
          old.events.filter(
            (row) => row.account_id === accountId && (row[column] ?? namedIn(row, column)) === value,
          ),
        );
      }
    }
  });

  it.each(MESSAGE_STATUSES)('lists the same %s messages', (status) => {
    const { old, tables } = upToDate();
    for (const accountId of ACCOUNTS) {
      expect(tables.messages.list({ accountId, status, limit: 1000 }).rows).toEqual(
        old.messages.filter((row) => row.account_id === accountId && row.status === status).toReversed(),
      );
    }
  });

  it('feeds the same events of every kind', () => {
    const { old, tables } = upToDate();
    for (const accountId of ACCOUNTS) {
      const own = old.events.filter(({ account_id }) => account_id === accountId);
      expect(tables.events.feed({ accountId, afterSeq: 0, limit: 1000 }).rows).toEqual(own);
      for (const kind of [...MESSAGE_EVENT_KINDS, ...DOMAIN_EVENT_KINDS])
        expect(tables.events.feed({ accountId, kind, afterSeq: 0, limit: 1000 }).rows).toEqual(
          own.filter((event) => event.kind === kind),
        );
    }
    const identifier = emailIdentifier('ada@example.net');
    const about = tables.erasures.eventsAbout('acct_one', identifier, {
      after: 0,
      before: 10_000,
      limit: 10,
    });
    expect(about).toHaveLength(3);
  });

  it('has the same queue, deliveries, numbers and other rows', () => {
    const { dir, db, old, tables } = upToDate();
    expect(old.queue.length).toBeGreaterThan(10);
    // The column is `lane`; the row has it as `priority`.
    for (const { lane, ...row } of old.queue as { seq: number; lane: number }[])
      expect(tables.queue.get(row.seq)).toEqual({
        ...row,
        priority: lane,
        held: 0,
        secondary: 0,
        reroute: null,
      });
    const listed = tables.webhookDeliveries.list({ webhook: 1, states: [], beforeSeq: 10_000, limit: 1000 });
    for (const { event_seq, event_id, kind } of listed.rows) {
      const event = old.events.find(({ seq }) => seq === event_seq);
      expect({ event_id, kind }).toEqual({ event_id: event?.event_id ?? null, kind: event?.kind ?? null });
    }
    const sequences = db.prepare('SELECT name, seq FROM sqlite_sequence ORDER BY name').all();
    expect(sequences).toEqual(expect.arrayContaining(old.sequences));
    expect(db.prepare('SELECT search_text FROM contacts').pluck().all()).toEqual([null]);
    expect(tables.erasures.keptMailAfter(0, 10)).toMatchObject([{ account_id: old.messages[4]?.account_id }]);
    expect(db.prepare('PRAGMA integrity_check').pluck().all()).toEqual(['ok']);
    expect(readdirSync(dir).some((name) => name.includes('.before-'))).toBe(true);
  });

  it('takes less than half the bytes for messages, events and attempts', () => {
    const { dir, db } = upToDate();
    const payload = (of: Database) =>
      of
        .prepare<[], number>(
          "SELECT sum(payload) FROM dbstat WHERE name IN ('messages', 'events', 'attempts') OR name LIKE 'messages_by%'",
        )
        .pluck()
        .get() ?? 0;
    const copy = readdirSync(dir).find((name) => name.includes('.before-')) ?? fail();
    const before = openConnection(join(dir, copy), { fileMustExist: true });
    const bytes = payload(before);
    before.close();
    expect(payload(db)).toBeLessThan(0.55 * bytes);
  });
});

describe('numbers of ids', () => {
  it('are not cached when the unit that assigned them was rolled back', () => {
    const { db } = startStore();
    const { account } = idNumbers(db);
    const assigned: unknown[] = [];
    expect(() =>
      db.transaction(() => {
        assigned.push(
          account.assign('acct_a'),
          account.find('acct_a'),
          account.id(Number(account.find('acct_a'))),
        );
        throw new Error('undone');
      })(),
    ).toThrow('undone');
    db.transaction(() => account.assign('acct_b'))();
    // The number was assigned to another account.
    expect(account.find('acct_b')).toBe(assigned[0]);
    expect(account.id(Number(account.find('acct_b')))).toBe('acct_b');
    expect(account.find('acct_a')).toBe('acct_a');
  });

  it('include numbers that another process assigned', () => {
    const { db, dir } = startStore();
    const other = openDatabase(dir);
    const { domain } = idNumbers(db);
    expect(domain.find('domain_two')).toBe('domain_two');
    const number = other.transaction(() => idNumbers(other).domain.assign('domain_two'))();
    other.close();
    expect(domain.find('domain_two')).toBe(number);
    expect(domain.id(Number(number))).toBe('domain_two');
  });

  it('are correct with more ids than the cache holds', () => {
    const { db } = startStore();
    const { campaign } = idNumbers(db);
    const ids = Array.from({ length: 10_050 }, (_, n) => `campaign_${n}`);
    db.transaction(() => {
      for (const id of ids) campaign.assign(id);
    })();
    for (let round = 0; round < 2; round++)
      for (const [index, id] of ids.entries()) {
        expect(campaign.find(id)).toBe(BigInt(index + 1));
        expect(campaign.id(index + 1)).toBe(id);
      }
  });

  it('throw for a number that was never assigned', () => {
    const { db } = startStore();
    expect(() => idNumbers(db).account.id(4711)).toThrow('account number 4711 is not assigned');
  });
});

function fail(): never {
  throw new Error('there is none');
}
