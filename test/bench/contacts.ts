import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSource } from '../../src/audience/import/source.ts';
import { presentContact, presentSubscriber } from '../../src/audience/present.ts';
import { contactSearch } from '../../src/audience/search.ts';
import { createAudience } from '../../src/audience/service.ts';
import { monotonicClock, systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createRecorder } from '../../src/events/record.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { DATABASE_FILE, openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import { createTables } from '../../src/store/tables.ts';
import { granted } from '../support/refusal.ts';
import { readOptions } from './options.ts';
import { percentile } from './result.ts';

/*
 * `npm run bench:contacts [-- --rows 1000000]`: imports contacts into a group as the API does, then reads single contacts
 * and lists, the first and the 10,000th page. Durable, in one process.
 */
const { rows: ROWS } = readOptions({
  command: 'npm run bench:contacts',
  summary: `Imports contacts into a group as the API does, then reads single contacts and lists, the first and the
10,000th page.`,
  options: { rows: { integer: 200_000, help: 'contacts' } },
});
const PAGES = 10_000;
const PAGE = Math.max(1, Math.floor(ROWS / (PAGES + 1)));
const READS = 2000;

const FIRST = ['Maria', 'Jan', 'Ada', 'Omar', 'Zoë', 'Li', 'Priya', 'Carlos', 'Ingrid', 'Mehmet'];
const LAST = [
  'Schmidt',
  'Müller',
  'García',
  'Nguyen',
  'Okafor',
  'Rossi',
  'Novák',
  'Silva',
  'Khan',
  'Lovelace',
];

const dir = mkdtempSync(join(tmpdir(), 'postrider-contacts-'));
const db = openDatabase(dir);
const tables = createTables(db);
const writer = createWriter(db, tables);
const clock = systemClock;
const ids = createIds(clock, systemRandom);
const audience = createAudience(
  {
    tables,
    reader: createLocalReader(tables),
    writer,
    clock,
    ids,
    monotonic: monotonicClock,
    log: createLog({ level: 'silent', hashAddresses: true }),
  },
  {
    recorder: createRecorder({ clock, ids }),
    mayAdd: { contacts: () => null, subscriptionGroups: () => null },
    responsesKeptMs: 0,
  },
);
const accountId = 'acct_bench';
tables.accounts.insert({
  account_id: accountId,
  name: 'Bench',
  status: 'active',
  company_name: null,
  company_address: null,
  abuse_email: null,
  moved_at: null,
  logo_url: null,
  created_at: 1,
  updated_at: 1,
});

try {
  await run();
} finally {
  await writer.close();
  db.close();
  rmSync(dir, { recursive: true });
}

async function run(): Promise<void> {
  const { subscription_group_id: groupId, seq: groupSeq } = granted(
    await audience.groups.create(accountId, {
      name: 'Everybody',
      description: null,
      isActive: true,
      tags: [],
      unsubscribeTemplateId: null,
      reportAbuseTemplateId: null,
      companyAddressTemplateId: null,
      signUp: null,
      isPublic: null,
      archive: false,
    }),
  );
  const source = await openSource(csv(), 'csv');
  if (typeof source === 'string' || isRefusal(source)) throw new Error(JSON.stringify(source));
  const cpuBefore = process.cpuUsage();
  const before = process.memoryUsage().rss;
  let peak = before;
  const delays: number[] = [];
  let last = performance.now();
  const began = last;
  const imported = granted(
    await audience.importer.run({
      accountId,
      groupId,
      actor: { by: 'bench', ipAddress: null, userAgent: null },
      reader: source.reader,
      records: source.records,
      signal: new AbortController().signal,
      batchRows: 500,
      pauseShare: 0,
      afterBatch: () => {
        peak = Math.max(peak, process.memoryUsage().rss);
        const now = performance.now();
        delays.push(now - last);
        last = now;
      },
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  print(`${count(imported.counts.created)} contacts imported into a group in ${seconds.toFixed(1)} s`, [
    ['rate', `${count(Math.round(ROWS / seconds))} rows/s`],
    ['CPU', `${((cpu.user + cpu.system) / ROWS).toFixed(0)} µs per row`],
    ['a batch of 500, with its commit', times(delays)],
    ['memory', `${mb(before)} before, ${mb(peak)} peak`],
    ['database', mb(statSync(join(dir, DATABASE_FILE)).size)],
  ]);

  const contactsKey = lastPageKey((beforeSeq) => tables.contacts.list({ accountId, beforeSeq, limit: PAGE }));
  const membersKey = lastPageKey((beforeSeq) => {
    const page = tables.subscriptions.list({ groupSeq, beforeSeq, limit: PAGE });
    return { more: page.more, rows: page.rows.map(({ contact }) => contact) };
  });
  const list = (beforeSeq: number | null, limit: number) =>
    tables.contacts.list({ accountId, beforeSeq, limit }).rows.map(presentContact);
  const group = (beforeSeq: number | null) =>
    tables.subscriptions
      .list({ groupSeq, beforeSeq, limit: PAGE })
      .rows.map((member) => presentSubscriber(groupId, member));
  const search = (text: string) => contactSearch.run(tables, { accountId, text, limit: 50, after: null });
  const randomIdentifier = () => emailIdentifier(addressOf(systemRandom.below(ROWS)));
  print(`${READS} reads each: median, 99th percentile, maximum`, [
    [
      'get by identifier',
      measure(() => presentContact(granted(audience.contacts.get(accountId, randomIdentifier())))),
    ],
    [`contacts, page 1 (${PAGE} rows)`, measure(() => list(null, PAGE))],
    [`contacts, page ${count(PAGES)}`, measure(() => list(contactsKey, PAGE))],
    ['contacts, page 1 (50 rows)', measure(() => list(null, 50))],
    ['contacts of a status, page 1 (50 rows)', measure(() => byStatus())],
    [`members, page 1 (${PAGE} rows)`, measure(() => group(null))],
    [`members, page ${count(PAGES)}`, measure(() => group(membersKey))],
    ['search, a common prefix', measure(() => search('ma'))],
    ['search, a common prefix, deep', measure(() => deepSearch())],
    ['search, part of a word', measure(() => search('chmid'))],
    ['search, an address', measure(() => search(addressOf(systemRandom.below(ROWS))))],
    ['search, a full name', measure(() => search('maria schmi'))],
    ['search, no match', measure(() => search('qqq'))],
  ]);
}

/** A page in the middle of the contacts with a common prefix. */
function deepSearch() {
  const after = { walk: 1, key: 'maria sc', seq: Math.floor(ROWS / 2) };
  return contactSearch.run(tables, { accountId, text: 'maria sc', limit: 50, after });
}

function byStatus() {
  return tables.contacts
    .list({ accountId, status: 'active', beforeSeq: null, limit: 50 })
    .rows.map(presentContact);
}

/** The key of page PAGES, found page by page as a client does. */
function lastPageKey(read: (beforeSeq: number | null) => { rows: { seq: number }[]; more: boolean }): number {
  let key: number | null = null;
  for (let page = 1; page < PAGES; page++) key = read(key).rows.at(-1)?.seq ?? key;
  return key ?? 0;
}

/** Address of contact `n`; the addresses are not in alphabetical order. */
function addressOf(n: number): string {
  const mixed = Math.imul(n + 1, 2_654_435_761) >>> 0;
  return `${FIRST[mixed % 10]?.toLowerCase().replace('ë', 'e')}.${mixed.toString(36)}.${n}@example.net`;
}

async function* csv(): AsyncGenerator<Buffer> {
  yield Buffer.from(
    'email,firstName,lastName,consentMethod,consentDetails,customFields.plan,customFields.city\n',
  );
  for (let n = 0; n < ROWS; ) {
    const lines: string[] = [];
    for (let end = Math.min(ROWS, n + 1000); n < end; n++) {
      const last = LAST[(n * 7) % 10];
      lines.push(`${addressOf(n)},${FIRST[n % 10]},${last}${n % 977},double_opt_in,Form 7,gold,Berlin\n`);
    }
    yield Buffer.from(lines.join(''));
  }
}

/** Times of READS calls, after 100 calls to warm up. */
function measure(read: () => unknown): string {
  for (let n = 0; n < 100; n++) read();
  const took = Array.from({ length: READS }, () => {
    const began = performance.now();
    read();
    return performance.now() - began;
  });
  return times(took);
}

function times(took: number[]): string {
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number) => percentile(sorted, share).toFixed(2);
  return `${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
}

function print(title: string, rows: [name: string, value: string][]): void {
  console.log(`\n${title}`);
  for (const [name, value] of rows) console.log(`  ${name.padEnd(40)} ${value}`);
}

function mb(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

function count(number: number): string {
  return number.toLocaleString('en');
}
