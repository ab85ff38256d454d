import { readdirSync, readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { ComplianceTemplateFilter } from '../../src/store/compliance-templates.ts';
import type { Database } from '../../src/store/database/database.ts';
import { type EventFilter, eventFeed } from '../../src/store/messages/event-feed.ts';
import { type MessageFilter, messageList } from '../../src/store/messages/message-list.ts';
import type { QueueFilter } from '../../src/store/messages/queue-list.ts';
import { MAX_SCANNED_ROWS } from '../../src/store/rows/page.ts';
import {
  SUPPRESSION_REASONS,
  SUPPRESSION_STREAMS,
  type SuppressionFilter,
} from '../../src/store/suppressions.ts';
import { createTables, prepareTables, type Tables } from '../../src/store/tables.ts';
import { combinations } from '../support/combinations.ts';
import { enqueue, startStore } from '../support/store.ts';

/*
 * No statement may read a table from one end to the other, or sort it, if that table grows with the mail, the people
 * or the callers of an installation. SQLite's plan is examined for every statement of src/store. There are no
 * statistics (sqlite_stat1), as in production: a plan depends on nothing but the schema and the statement.
 */
const BOUNDED: Record<string, string> = {
  account_imports: 'imports of accounts that run or were interrupted',
  account_moves: 'at most one per account',
  sequences: 'at most 100 per account',
  segments: 'at most 500 per account',
  sunset_rules: 'at most one per account',
  inbound_routes: 'at most 1000 per account',
  media: 'at most 10,000 per account',
  media_contents: 'at most 10,000 per account, and uploads in progress',
  media_parts: 'at most 20 per content',
  hygiene_runs: 'a few of each account: older ones are deleted',
  sequence_versions: 'at most 50 per sequence',
  sequence_counts: 'at most 50 steps of each version',
  sequence_ends: 'a few per sequence',
  site_limits: 'at most 10,000 rows',
  unclassified_replies: 'at most 1000 rows',
  account_limits: 'one row per account',
  account_numbers: 'one row per account',
  accounts: 'created by the operator',
  api_key_uses: 'one row per key',
  attention_seen: 'at most one row per person and account',
  api_keys: 'at most 500 valid keys per account',
  background_imports: 'at most 50 per account',
  campaign_mails: 'at most one per campaign',
  archived_campaigns: 'one row per campaign and group',
  campaign_providers: 'at most 101 rows per campaign',
  campaign_variants: 'at most four rows per campaign',
  campaign_sends: 'at most one per campaign',
  campaign_numbers: 'created one by one',
  campaigns: 'created one by one',
  certificates: 'one row per host name',
  compliance_templates: 'limited per account',
  contact_counts: 'one row per account',
  stored_bytes: 'two rows per account',
  suppression_counts: 'one row per account',
  contact_imports: 'imports that run or were interrupted',
  dkim_keys: 'a few per domain',
  domain_checks: 'one row per domain',
  domain_groups: 'fewer than domains',
  people: 'at most 10,000',
  memberships: 'at most 500 per account and per person',
  notice_mails: 'at most ten per person',
  passkeys: 'at most 20 per person',
  saved_views: 'at most 100 per person',
  external_identities: 'at most one per person and provider',
  platform_keys: 'a few',
  public_pages: 'one row per account',
  zone_changes: 'one row',
  domain_numbers: 'limited per account; those of deleted domains are searched by number or id only',
  domains: 'limited per account',
  failure_notices: 'at most one per domain and webhook',
  egress_health: 'at most 500 addresses and providers',
  egress_warmup: 'at most 1000 providers per entry',
  erasures: 'people who are being erased',
  kept_mail: 'at most 1000 rows in each of 7 boxes',
  kept_mail_reads: 'at most one row per received mail',
  queue_controls: 'at most 500',
  queue_reroutes: 'at most 100',
  sending_limits: 'at most 200 per account',
  settings: 'a few names',
  sts_policies: 'at most 20,000',
  subscription_group_numbers: 'created one by one',
  subscription_groups: 'created one by one',
  partials: 'at most 200 per account',
  template_versions: 'at most 10 per template',
  templates: 'limited per account',
  token_keys: 'at most one per account',
  webhook_secrets: 'a few per webhook',
  webhooks: 'limited per account',
};

const GROWING = new Set([
  'account_changes',
  'inbound_mails',
  'inbound_parts',
  'inbound_sources',
  'hygiene_findings',
  'segment_changes',
  'segment_chunks',
  'segment_columns',
  'attempts',
  'audit_records',
  'campaign_contacts',
  'campaign_counts',
  'campaign_links',
  'closed_sign_ups',
  'consents',
  'console_sessions',
  'contact_engagement',
  'contact_search',
  'contacts',
  'contents',
  'delay_notices',
  'dmarc_reports',
  'egress_counts',
  'dmarc_sources',
  'events',
  'group_opt_outs',
  'hourly_counts',
  'tag_counts',
  'idempotency',
  'message_counts',
  'message_tags',
  'messages',
  'moved_messages',
  'queue',
  'reputation_counts',
  'sequence_people',
  'sequence_sends',
  'shared_contents',
  'sign_in_links',
  'spam_rates',
  'strikes',
  'subscriptions',
  'suppression_removals',
  'suppressions',
  'tls_failures',
  'tls_reports',
  'tls_session_failures',
  'tls_sessions',
  'webhook_deliveries',
]);

/** Statements that may read or sort such a table, and why. At least one statement needs each exception. */
const EXCEPTIONS: { statement: RegExp; reason: string }[] = [
  {
    statement: /^DELETE FROM moved_messages WHERE message_key IN \( SELECT message_key .* LIMIT/,
    reason: 'the limit bounds it',
  },
  {
    statement: /^DELETE FROM account_changes WHERE .* LIMIT/,
    reason: 'the limit bounds it',
  },
  {
    statement:
      /(?:m\.seq < @beforeSeq AND m\.seq > @afterSeq|e\.seq > @afterSeq AND e\.seq < @beforeSeq) AND /,
    reason:
      'the range ends at the last row that the page may examine: see the tests of lists with a low maxScanned',
  },
  {
    statement:
      /INDEXED BY events_without_message WHERE e\.account = @accountId AND e\.message_seq IS NULL AND/,
    reason: 'the partial index has only events without a message, and the limit bounds it',
  },
  {
    statement: /INDEXED BY inbound_mails_unparsed .*LIMIT/,
    reason: 'the partial index has only mail that waits for the parser, and the limit bounds it',
  },
  {
    statement: /INDEXED BY contacts_by_erasure_request LEFT JOIN/,
    reason: 'the partial index has only contacts that asked to be erased, and the limit bounds it',
  },
  {
    statement: /INDEXED BY contacts_by_pause WHERE paused_until IS NOT NULL AND paused_until <= \? LIMIT/,
    reason: 'the partial index has only paused contacts, and the limit bounds it',
  },
  {
    statement: /FROM \w+ WHERE seq >= @from AND seq < @to AND/,
    reason: 'the numbers of one portion of what is deleted by age',
  },
  {
    statement: /^SELECT slot, messages FROM message_counts WHERE account_id = \? AND slot > \?/,
    reason: 'the last day of an account has 289 slots',
  },
  { statement: /^SELECT \* FROM events ORDER BY seq DESC LIMIT 1$/, reason: 'reads one row' },
  {
    statement:
      /^UPDATE queue AS q SET ready = 1, due_at = @now WHERE q\.seq > @afterSeq AND q\.seq <= @lastSeq/,
    reason: 'the numbers of one portion of the queue',
  },
  {
    statement: /\b(?:contact_)?seq BETWEEN \? AND \?/,
    reason: 'the numbers of the contacts of one chunk of the copies for segments',
  },
  {
    statement:
      /FROM contacts INDEXED BY contacts_by_account WHERE account_id = \? AND seq > \? AND email IS NOT NULL/,
    reason: 'one portion of all contacts of an account, which are examined in the background',
  },
  {
    statement:
      /^SELECT chunk FROM segment_chunks WHERE account_id = '' AND copied IS NOT NULL ORDER BY chunk$/,
    reason: 'a row for each 4096 contacts and account, read in the background',
  },
  {
    statement: /^SELECT contact_seq \/ 4096 AS chunk FROM segment_changes GROUP BY chunk HAVING/,
    reason:
      'changes since the last copies, read in the background, which copies chunks with many changes again',
  },
  {
    statement: /FROM group_opt_outs o INDEXED BY group_opt_outs_by_recipient .* ORDER BY o\.created_at/,
    reason: 'the groups from which one recipient has unsubscribed',
  },
  {
    statement: /^SELECT kind, at FROM strikes WHERE account_id = \? AND recipient_hash = \? ORDER BY at/,
    reason: 'what happened with one recipient',
  },
  {
    statement: /^SELECT max\(seq\) FROM contacts WHERE account_id = \? AND seq < \?$/,
    reason: 'reads one entry',
  },
  {
    statement: /WHERE (?:ready = 0|state = 'waiting') AND due_at <= \? ORDER BY due_at LIMIT/,
    reason: 'the partial index has only waiting rows, and the limit bounds it',
  },
  {
    statement: /FROM shared_contents WHERE copies = 0 AND created_at < \? LIMIT/,
    reason: 'the partial index has only rows without a copy, and the limit bounds it',
  },
  {
    statement:
      /(?:UPDATE queue SET due_before_hold = .{1,120}, due_at = \d+, ready = 0, held = 0, lease = NULL|FROM queue) WHERE seq > \? AND seq <= \?/,
    reason: 'the numbers of one portion of what a restore holds',
  },
  {
    statement: /WHERE state = 'waiting' AND due_at < \d+ LIMIT/,
    reason: 'the partial index has only waiting deliveries, and the limit bounds it; runs once in a restore',
  },
  {
    statement:
      /(?:queue_due|webhook_deliveries_due) .*\.due_at = \d+ GROUP BY .* ORDER BY (?:messages|deliveries) DESC$/,
    reason: 'an overview for the operator of what a restore holds, which only a command reads',
  },
  {
    statement: /^DELETE FROM message_counts WHERE account_id = \? AND slot < \?$/,
    reason: 'runs once in five minutes for an account: a few rows are older than a day',
  },
  {
    statement: /^SELECT min\(due_at\) FROM queue WHERE seq > 0 .* NOT IN \(SELECT value/,
    reason: 'walks the queue in a reader thread, as the totals do, and only while mail waits for a warm-up',
  },
  {
    statement: /^UPDATE queue SET lease = NULL WHERE lease IS NOT NULL$/,
    reason: 'once, before the daemon starts',
  },
  {
    statement: /^SELECT count\(\*\) AS n FROM queue$/,
    reason: 'reads the smallest index of the queue, which the limit of queued messages bounds',
  },
  {
    statement: /FROM \(SELECT domain, count\(\*\) AS messages FROM queue GROUP BY domain\) d GROUP BY 1/,
    reason: 'reads the smallest index of the queue in a reader thread, and only while the queue is full',
  },
  {
    statement: /^SELECT min\(due_at\) FROM \(SELECT due_at, ready, lease FROM queue ORDER BY seq LIMIT/,
    reason: 'the limit bounds it',
  },
  {
    statement: /^SELECT count\(\*\) FROM queue WHERE held = 1$/,
    reason: 'the partial index has only held messages; runs on a reader thread',
  },
  {
    statement: /^WITH RECURSIVE held\(domain\) AS .* min\(q\.domain\) /,
    reason: 'reads one entry of each domain in the index of held messages',
  },
  {
    statement: /^SELECT q\.seq FROM queue q .*q\.scheduled_at IS q\.due_at/,
    reason: 'after a jump of the clock all waiting messages are read, in portions',
  },
  {
    statement:
      /^SELECT (destination|account), count\(\*\) AS messages, .* FROM queue q (?:WHERE q\.account = \? )?GROUP BY \1/,
    reason: 'a command of the operator, in a separate process or on a reader thread',
  },
  {
    statement:
      /^SELECT (?:m\.seq, m\.message_key, .*, q\.destination|count\(\*\) AS messages|q\.seq, m\.message_key).* FROM queue q CROSS JOIN messages m /,
    reason:
      'commands of the operator, in a separate process or on a reader thread: they read the whole queue',
  },
  {
    statement: /^SELECT count\(\*\) FROM queue WHERE domain = /,
    reason: 'a command of the operator, in a separate process',
  },
  {
    statement: /^SELECT \* FROM suppressions WHERE account_id = \S+ AND recipient_hash = /,
    reason: 'one person has at most one suppression for each stream and reason',
  },
  {
    statement: /^SELECT s\.\*, g\.subscription_group_id FROM subscriptions s /,
    reason: 'the groups of one contact',
  },
  {
    statement: /^SELECT DISTINCT field\.key FROM contacts, json_each/,
    reason: 'the distinct fields of a portion of contacts, among a few names',
  },
  {
    statement: /^DELETE FROM (?:dmarc|tls)_reports WHERE seq IN \( SELECT seq .* count\(\*\) OVER/,
    reason: 'the reports about one name, which report-shares limits to 3000',
  },
  {
    statement:
      /FROM (?:dmarc_reports r JOIN dmarc_sources|tls_reports r JOIN tls_failures|tls_reports WHERE host) .* GROUP BY/,
    reason: 'sums over the reports about one name, which report-shares limits to 3000',
  },
  {
    statement: /FROM campaign_counts WHERE campaign_id = @campaignId AND hour >= @from .* GROUP BY start/,
    reason: 'the hours of one campaign',
  },
  {
    statement: /^SELECT count\(\*\) FROM \(SELECT 1 FROM spam_rates WHERE account_id = \? LIMIT/,
    reason: 'at most 40,000 rows of an account, once for 100 new ones',
  },
  {
    statement: /FROM hourly_counts WHERE hour = @hour .*GROUP BY name, outcome_code, class$/,
    reason: 'the rows of one hour; a command of the operator, in a separate process',
  },
  {
    statement: /^SELECT count\(\*\) AS messages, coalesce\(sum\(ready = 1 .* FROM queue WHERE seq > 0$/,
    reason: 'walks the queue, which the limit of queued messages bounds, in a reader thread',
  },
  {
    statement: /^SELECT destination, count\(\*\) \* @step AS messages, /,
    reason: 'walks the queue, which the limit of queued messages bounds, in a reader thread; sorts a sample',
  },
  {
    statement: /^SELECT url, clicks FROM campaign_links WHERE campaign_id = \? ORDER BY clicks DESC, rowid/,
    reason: 'at most 1000 links of one campaign; only those with equally many clicks are sorted',
  },
];

const MESSAGE_ID = 'msg_one';
const RECIPIENT = emailIdentifier('ada@example.net');
const FUTURE = 8e15;

type Run = () => void;

/** Runs every method that composes a statement of the filters which are set, with every combination of filters. */
const COMPOSED: Record<string, (db: Database, tables: Tables) => Run> = {
  'messages/message-list.ts': (db) => {
    const filters = combinations<Omit<MessageFilter, 'accountId' | 'limit' | 'beforeSeq' | 'statuses'>>({
      recipientHash: [RECIPIENT],
      domainId: ['domain_one'],
      campaignId: ['campaign_one'],
      jobId: ['job_one'],
      tag: ['gold'],
      status: ['queued', 'delivered'],
      recipientPart: ['@shop'],
      sender: ['shop'],
      subject: ['hello'],
      from: [0],
      to: [FUTURE],
    });
    // With one row per page every index has more candidates, otherwise none has.
    const lists = [1, MAX_SCANNED_ROWS].map((maxScanned) => messageList(db, maxScanned));
    return () => {
      for (const { list, setOf, statusCounts } of lists) {
        for (const filter of filters) {
          for (const accountId of ['acct_one', null]) list({ accountId, ...filter, limit: 1 });
          setOf({ accountId: 'acct_one', ...filter }, MAX_SCANNED_ROWS);
          statusCounts({ accountId: 'acct_one', ...filter });
        }
      }
    };
  },
  'messages/event-feed.ts': (db) => {
    const filters = combinations<Omit<EventFilter, 'accountId' | 'limit' | 'afterSeq'>>({
      messageId: [MESSAGE_ID],
      recipientHash: [RECIPIENT],
      domainId: ['domain_one'],
      campaignId: ['campaign_one'],
      jobId: ['job_one'],
      tag: ['gold'],
      status: ['queued', 'delivered'],
      kind: ['email_sent', 'email_bounced'],
      from: [0],
      to: [FUTURE],
    });
    const feeds = [0, MAX_SCANNED_ROWS].map((messages) => eventFeed(db, 1, messages));
    feeds.push(eventFeed(db, MAX_SCANNED_ROWS, 0), eventFeed(db));
    return () => {
      for (const { feed } of feeds)
        for (const filter of filters) feed({ accountId: 'acct_one', ...filter, afterSeq: 0, limit: 1 });
    };
  },
  'suppressions.ts': (_, { suppressions }) => {
    const filters = combinations<Pick<SuppressionFilter, 'recipientHash' | 'stream' | 'reason'>>({
      recipientHash: [RECIPIENT],
      stream: SUPPRESSION_STREAMS,
      reason: SUPPRESSION_REASONS,
    });
    return () => {
      for (const filter of filters)
        suppressions.list({ accountId: 'acct_one', ...filter, beforeSeq: null, limit: 1 });
    };
  },
  'compliance-templates.ts': (_, { complianceTemplates }) => {
    const filters = combinations<Pick<ComplianceTemplateFilter, 'type' | 'domain'>>({
      type: ['unsubscribe'],
      domain: ['example.com'],
    });
    return () => {
      for (const beforeSeq of [null, 1])
        for (const filter of filters)
          complianceTemplates.list({ accountId: 'acct_one', ...filter, beforeSeq, limit: 1 });
    };
  },
  'messages/queue-list.ts': (_, { queue }) => {
    const filters = combinations<QueueFilter>({
      accountId: ['acct_one'],
      destination: ['example.net'],
      domainId: ['domain_one'],
      campaignId: ['campaign_one'],
    });
    return () => {
      for (const filter of filters) {
        queue.list(filter, 1);
        queue.counts(filter);
        for (const deferred of [true, false]) queue.waiting(filter, { deferred, afterSeq: 0, limit: 1 });
      }
    };
  },
};

interface Statement {
  sql: string;
  plan: string[];
}

interface Statements {
  statements: Statement[];
  /** Statements that a second use prepares again. */
  preparedAgain: string[];
}

let collected: Statements | null = null;

/** Every statement that is prepared: when the tables are created, and when their filters are used. */
function collect(): Statements {
  collected ??= prepareAll();
  return collected;
}

function prepareAll(): Statements {
  const { db, tables: seed, clock } = startStore();
  const columns = { job_id: 'job_one', campaign_id: 'campaign_one' };
  for (const message_id of [MESSAGE_ID, 'msg_two', 'msg_three'])
    enqueue(seed, clock.now(), { ...columns, message_id });
  const prepare = vi.spyOn(db, 'prepare');
  const tables = createTables(db);
  prepareTables(tables);
  const runs = Object.values(COMPOSED).map((compose) => compose(db, tables));
  for (const run of runs) run();
  const first = prepare.mock.calls.map(([sql]) => sql);
  prepare.mockClear();
  for (const run of runs) run();
  const preparedAgain = prepare.mock.calls.map(([sql]) => sql);
  prepare.mockRestore();
  const statements = Array.from(new Set(first), (sql) => ({
    sql: sql.replaceAll(/\s+/g, ' ').trim(),
    plan: planOf(db, sql),
  }));
  return { statements, preparedAgain };
}

function planOf(db: Database, sql: string): string[] {
  if (!/^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/i.test(sql)) return [];
  const blanks: unknown[] = Array.from(sql.matchAll(/\?/g), () => null);
  const names = Array.from(sql.matchAll(/@(\w+)/g), ([, name]) => [name, null]);
  if (names.length > 0) blanks.push(Object.fromEntries(names));
  const steps = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...blanks);
  return steps.map(({ detail }) => detail);
}

/** What a statement does to tables that grow. */
function violations({ sql, plan }: Statement): string[] {
  const tables = Array.from(
    sql.matchAll(
      /\b(?:FROM|JOIN|UPDATE|INTO)\s+"?(\w+)"?(?:\s+(?:AS\s+)?(?!(?:NOT|INDEXED|WHERE|SET|ON|USING|LEFT|CROSS|JOIN|ORDER|GROUP|LIMIT|VALUES|SELECT)\b)(\w+))?/gi,
    ),
    ([, table = '', alias]) => ({ table, alias: alias ?? table }),
  );
  const grows = (name: string) =>
    tables.some(({ table, alias }) => (alias === name || table === name) && GROWING.has(table)) ||
    GROWING.has(name);
  return plan.flatMap((step) => {
    const [, verb, name = '', how = ''] = /^(SCAN|SEARCH) (\w+)(.*)$/.exec(step) ?? [];
    if (step.startsWith('USE TEMP B-TREE'))
      return tables.some(({ table }) => GROWING.has(table)) ? ['sorts'] : [];
    if (how.includes('AUTOMATIC')) return ['builds an index'];
    if (!grows(name) || how.includes('VIRTUAL TABLE')) return [];
    if (verb === 'SCAN') return [`reads all of ${name}`];
    return isWide(how) && !isPage(sql, how) ? [`reads all rows of an account in ${name}`] : [];
  });
}

/** A search by the account only, or by nothing, and possibly by a range of numbers. */
function isWide(how: string): boolean {
  const [, terms] = /\((.*)\)$/.exec(how) ?? [];
  const equal = terms?.split(' AND ').filter((term) => /^(?:\w+|<expr>)=\?$/.test(term));
  return equal?.every((term) => term === 'account_id=?' || term === 'account=?') ?? false;
}

/** The index answers every condition, so that the limit bounds what is read. */
function isPage(sql: string, how: string): boolean {
  const [, conditions = ''] = /WHERE ((?:(?!WHERE).)*) ORDER BY (?:(?!WHERE).)* LIMIT/.exec(sql) ?? [];
  return conditions.split(' AND ').length === how.split(' AND ').length && conditions !== '';
}

it('no statement reads or sorts a whole table that grows', () => {
  const { statements } = collect();
  expect(statements.length).toBeGreaterThan(1000);
  const found = statements.map((statement) => ({ ...statement, violations: violations(statement) }));
  const violating = found.filter((one) => one.violations.length > 0);
  const isException = (sql: string) => EXCEPTIONS.some(({ statement }) => statement.test(sql));
  expect(violating.filter(({ sql }) => !isException(sql))).toEqual([]);
  const unused = EXCEPTIONS.filter(({ statement }) => !violating.some(({ sql }) => statement.test(sql)));
  expect(unused).toEqual([]);
});

/*
 * For `(a, b) > (?, ?)` SQLite seeks to the first entry that is equal to the bound and reads all equal ones: with an index
 * whose entries share these columns that is a whole queue key. Here few entries do.
 */
const FEW_EQUAL = new Map([
  ['FROM hygiene_findings', 'the columns are a part of its primary key: at most one row is equal'],
  ['FROM accounts', 'the id of an account is unique'],
  ['FROM api_keys', 'the id of a key is unique'],
  ['FROM domain_groups', 'the id of a group is unique'],
  ['FROM idempotency', 'the columns are a part of its primary key: at most one row is equal'],
  ['FROM tls_sessions', 'the policies of one domain on one day'],
]);

it('no statement passes by all entries that are equal to the bound of a row value', () => {
  const bounded = collect().statements.filter(({ sql }) => /\([\w., ]+\) > \(/.test(sql));
  const unused = new Set(FEW_EQUAL.keys());
  const others = bounded.filter(({ sql }) => {
    const table = [...FEW_EQUAL.keys()].find((name) => sql.includes(name));
    if (table !== undefined) unused.delete(table);
    return table === undefined;
  });
  expect(others).toEqual([]);
  expect([...unused]).toEqual([]);
});

it('no limit is a bare parameter, whose value SQLite would plan for by preparing the statement again', () => {
  const { statements } = collect();
  expect(statements.filter(({ sql }) => /\b(?:LIMIT|OFFSET) [?@]/.test(sql)).map(({ sql }) => sql)).toEqual(
    [],
  );
});

it('every table is declared to grow or to be bounded', () => {
  const { db } = startStore();
  const tables = db
    .prepare<[], string>(`
      SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        AND name NOT LIKE 'contact\\_search\\_%' ESCAPE '\\' ORDER BY name`)
    .pluck()
    .all();
  expect([...Object.keys(BOUNDED), ...GROWING].toSorted()).toEqual(tables);
});

it('every module that composes statements is examined, and prepares each of them once', () => {
  const store = new URL('../../src/store/', import.meta.url);
  const composing = readdirSync(store, { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      file.endsWith('.ts') &&
      file !== 'database/database.ts' &&
      readFileSync(new URL(file, store), 'utf8').includes('preparedByText'),
  );
  expect(Object.keys(COMPOSED).toSorted()).toEqual(composing.toSorted());
  expect(collect().preparedAgain).toEqual([]);
});
