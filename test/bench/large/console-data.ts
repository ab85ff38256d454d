import { createHash } from 'node:crypto';
import { returnPathHost } from '../../../src/domains/names.ts';
import { newPerson } from '../../../src/people/person.ts';
import { MAX_KEPT_IMPORTS } from '../../../src/store/contacts/background-imports.ts';
import { type Database, lockDaemon, openDatabase } from '../../../src/store/database/database.ts';
import { BOXES } from '../../../src/store/kept-mail.ts';
import type { CountedOutcome } from '../../../src/store/messages/hourly-counts.ts';
import type { MemberRole } from '../../../src/store/people/people.ts';
import { createTables, type Tables } from '../../../src/store/tables.ts';
import { MAX_VERSIONS } from '../../../src/store/templates.ts';
import { htmlOf, SUBJECT } from '../message.ts';
import { DAY_MS, HOUR_MS } from './history.ts';
import { type Installation, readInstallation } from './installation.ts';

/**
 * Adds to a history what only the console shows, with the tables of the store. The first account owns the largest part.
 *
 * At full size: 13 months of hourly counts (1.3 million rows), 100,000 rows of DMARC reports and 4860 TLS reports of 90
 * days, 7000 received mails, 500 templates with ten versions each, 50 imports per account, 200 people with 1000 sessions
 * and 10,000 audit records. Received mail, imports, versions and reports of a domain have the number that the product keeps.
 */
export interface ConsoleDataOptions {
  /** The end of the data, epoch ms. */
  now: number;
  /** Share of the full size, at most 1. */
  share?: number;
}

const COUNTED_DAYS = 395;
const REPORTED_DAYS = 90;
const TEMPLATES = 500;
const HTML_BYTES = 10_240;
const PEOPLE = 200;
const SESSIONS_PER_PERSON = 5;
const AUDIT_RECORDS = 10_000;
const MAILS_PER_BOX = 1000;
const MAIL_BYTES = 4096;
/** Rows per transaction. */
const BATCH_SIZE = 20_000;

/** Adds the data to the database in `dataDir`. No daemon may run on it. */
export function addConsoleData(dataDir: string, { now, share = 1 }: ConsoleDataOptions): void {
  const lock = lockDaemon(dataDir);
  try {
    const db = openDatabase(dataDir, { lock });
    try {
      // A crash loses the whole directory.
      db.exec('PRAGMA synchronous = OFF');
      db.exec('PRAGMA cache_size = -262144');
      fill(db, readInstallation(dataDir), { now, size: (full) => Math.max(1, Math.round(full * share)) });
    } finally {
      db.close();
    }
  } finally {
    lock.release();
  }
}

interface Extent {
  now: number;
  /** The number of rows for one at full size. */
  size: (full: number) => number;
}

function fill(db: Database, installation: Installation, extent: Extent): void {
  const tables = createTables(db);
  const parts = [
    addCounts(tables, installation, extent),
    addDmarcReports(tables, installation, extent),
    addTlsReports(tables, installation, extent),
    addReceivedMail(tables, extent),
    addTemplates(tables, installation, extent),
    addImports(tables, installation, extent),
    addPeople(tables, installation, extent),
    addAuditRecords(tables, installation, extent),
  ];
  for (const rows of parts) inBatches(db, rows);
}

/** Runs a generator, which yields after each row, in transactions of BATCH_SIZE rows. */
function inBatches(db: Database, rows: Generator<void>): void {
  const batch = db.transaction(() => {
    for (let count = 0; count < BATCH_SIZE; count++) if (rows.next().done === true) return true;
    return false;
  });
  while (!batch());
}

const PROVIDERS = ['Google', 'Microsoft', 'Yahoo', 'Apple', 'United Internet', 'Telekom', 'Orange', 'other'];
const OUTCOMES: readonly { outcome: CountedOutcome; outcomeClass: string; messages: number }[] = [
  { outcome: 'accepted', outcomeClass: '', messages: 1000 },
  { outcome: 'delivered', outcomeClass: '', messages: 960 },
  { outcome: 'deferred', outcomeClass: 'mailbox-full', messages: 30 },
  { outcome: 'bounced', outcomeClass: 'invalid-recipient', messages: 20 },
  { outcome: 'opened', outcomeClass: '', messages: 330 },
];

/** The first account: every outcome at every provider for two domains; the others: at three providers for one domain. */
function* addCounts(
  { hourlyCounts }: Tables,
  { accounts, domains }: Installation,
  { now, size }: Extent,
): Generator<void> {
  const thisHour = now - (now % HOUR_MS);
  const [first, ...others] = accounts.map(({ accountId }) => accountId);
  const senders = [
    { accountId: first, domainId: domains.tx.domainId, stream: 'tx', providers: PROVIDERS },
    { accountId: first, domainId: domains.mk.domainId, stream: 'mk', providers: PROVIDERS },
    ...others.map((accountId, index) => ({
      accountId,
      domainId: `domain_1700000000000_tx000000000${index + 1}`,
      stream: 'tx' as const,
      providers: PROVIDERS.slice(0, 3),
    })),
  ] as const;
  // From the oldest hour on: the rows are added at the end of the table.
  for (let hour = thisHour - size(COUNTED_DAYS * 24) * HOUR_MS; hour <= thisHour; hour += HOUR_MS) {
    for (const { accountId = '', domainId, stream, providers } of senders)
      for (const [index, provider] of providers.entries())
        for (const { messages, ...counted } of OUTCOMES)
          hourlyCounts.add(
            { hour, accountId, domainId, provider, stream, ...counted },
            Math.ceil(messages / (index + 1)),
          );
    hourlyCounts.endUnit(true);
    for (const _row of hourlyCounts.write()) yield;
  }
}

/** Organizations that report, and the sources in each of their reports. */
const REPORTERS = { tx: [33, 24], mk: [16, 18], rare: [5, 7] } as const;
/** Source addresses in the reports about a domain. */
const SOURCES = 2000;

/** Reports of each organization for each day, the oldest first. */
function* reportsAbout(
  { domains }: Installation,
  { now, size }: Extent,
): Generator<{ domain: string; sources: number; report: ReportHead; number: number }> {
  const today = now - (now % DAY_MS);
  let number = 0;
  for (let day = REPORTED_DAYS; day > 0; day--)
    for (const kind of ['tx', 'mk', 'rare'] as const) {
      const [organizations, sources] = REPORTERS[kind];
      for (let sender = 0; sender < size(organizations); sender++) {
        const begin = today - day * DAY_MS;
        const organization = `receiver${sender}.example`;
        const report = {
          organization,
          report_id: `${begin}.${sender}`,
          begin_at: begin,
          end_at: begin + DAY_MS - 1000,
          received_at: begin + DAY_MS + 3 * HOUR_MS,
          network: `198.51.${sender}.0/24`,
          signer: organization,
          verified: 1 as const,
        };
        yield { domain: domains[kind].name, sources: size(sources), report, number: ++number };
      }
    }
}

interface ReportHead {
  organization: string;
  report_id: string;
  begin_at: number;
  end_at: number;
  received_at: number;
  network: string;
  signer: string;
  verified: 0 | 1;
}

function* addDmarcReports(
  { dmarcReports }: Tables,
  installation: Installation,
  extent: Extent,
): Generator<void> {
  const policy = JSON.stringify({ p: 'none', sp: 'none', np: '', adkim: 'r', aspf: 'r', testing: false });
  for (const { domain, sources, report, number } of reportsAbout(installation, extent)) {
    const rows = Array.from({ length: sources }, (_, index) => {
      const source = (number * 31 + index * 61) % SOURCES;
      const passes = source % 20 < 17;
      return {
        source_ip: `192.0.${source >> 8}.${source & 255}`,
        header_from: domain,
        disposition: 'none',
        dkim: passes ? 'pass' : 'fail',
        spf: passes && source % 3 > 0 ? 'pass' : 'fail',
        messages: 1 + (source % 97),
      };
    });
    dmarcReports.insert({ ...report, domain, policy_domain: domain, policy, truncated: 0 }, rows);
    for (const _row of rows) yield;
  }
}

function* addTlsReports({ tlsReports }: Tables, installation: Installation, extent: Extent): Generator<void> {
  for (const { domain, report, number } of reportsAbout(installation, extent)) {
    const host = returnPathHost(domain);
    const failures = [
      { type: 'certificate-expired', receiving_host: host, reason: '', sessions: 1 + (number % 3) },
      { type: 'validation-failure', receiving_host: host, reason: `code ${number % 40}`, sessions: 1 },
    ].slice(0, number % 3);
    const failed = failures.reduce((sum, { sessions }) => sum + sessions, 0);
    const sessions = { successful: 100 + (number % 50), failed };
    tlsReports.insert({ ...report, host }, [{ policy_type: 'sts', ...sessions, failures }]);
    yield;
  }
}

/** As many as each box keeps, from 20 networks. */
function* addReceivedMail({ keptMail }: Tables, { now, size }: Extent): Generator<void> {
  const count = size(MAILS_PER_BOX);
  for (let number = 0; number < count; number++)
    for (const box of BOXES) {
      const sender = `reader${number}@network${number % 20}.example`;
      const recipient = `${box}@mail.example`;
      const head = [
        `From: Reader ${number} <${sender}>`,
        `To: ${recipient}`,
        `Subject: Question ${number} about an order`,
        `Message-ID: <${box}.${number}@network.example>`,
        'Content-Type: text/plain; charset=utf-8',
        '\r\n',
      ].join('\r\n');
      const raw = Buffer.from(head.padEnd(MAIL_BYTES, 'Where is my order? It should have arrived.\r\n'));
      keptMail.insert({
        box,
        kind: 'unknown',
        recipient,
        sender,
        remote_address: `198.51.${number % 20}.7`,
        network: `198.51.${number % 20}.0/24`,
        message_seq: null,
        received_at: now - (count - number) * HOUR_MS,
        raw,
      });
      yield;
    }
}

function* addTemplates(
  { templates, templateVersions }: Tables,
  { accounts }: Installation,
  { now, size }: Extent,
): Generator<void> {
  const html = htmlOf(HTML_BYTES);
  const count = size(TEMPLATES);
  for (let number = 0; number < count; number++) {
    const created = now - (count - number) * HOUR_MS - DAY_MS;
    const row = {
      template_id: idOf('template', created, number),
      account_id: accounts[0]?.accountId ?? '',
      name: `Template ${number}`,
      type: null,
      subject: `${SUBJECT}: {{order.number}}`,
      html,
      text: null,
      variables: null,
      design: null,
      syntax: 'simple' as const,
      mjml: null,
      created_at: created,
      updated_at: created + DAY_MS,
    };
    const seq = templates.insert(row);
    yield;
    for (let version = 0; version < MAX_VERSIONS; version++) {
      templateVersions.add({ ...row, seq, updated_at: created + version * HOUR_MS });
      yield;
    }
  }
}

/** As many as an account keeps. */
function* addImports(
  { backgroundImports }: Tables,
  { accounts }: Installation,
  { now, size }: Extent,
): Generator<void> {
  const count = size(MAX_KEPT_IMPORTS);
  for (const [index, { accountId }] of accounts.entries())
    for (let number = 0; number < count; number++) {
      const created = now - (count - number) * DAY_MS;
      const importId = idOf('import', created, index);
      const counts = JSON.stringify({
        rows: 10_000,
        created: 9000,
        updated: 700,
        unchanged: 200,
        rejected: 100,
        subscribed: 0,
        optedOut: 0,
      });
      const rejected = Array.from({ length: 100 }, (_, row) => ({
        line: row * 90 + 2,
        reason: 'email: must be an email address',
      }));
      backgroundImports.add({
        ignored: '[]',
        import_id: importId,
        account_id: accountId,
        group_id: null,
        file_name: `customers-${number}.csv`,
        format: 'csv',
        columns: null,
        actor: JSON.stringify({ by: 'ops@example.com', ipAddress: null, userAgent: null }),
        bytes: 1_000_000,
        counts,
        hygiene_mode: 'off',
        created_at: created,
      });
      backgroundImports.begin(importId, created);
      backgroundImports.advance({
        import_id: importId,
        at_byte: 1_000_000,
        at_line: 10_001,
        hygiene: null,
        counts,
        rejected_rows: JSON.stringify(rejected),
        ignored: '[]',
      });
      backgroundImports.finish(importId, 'completed', null, created + 60_000);
      yield;
    }
}

const ROLES: readonly MemberRole[] = ['owner', 'author', 'sender', 'developer', 'viewer'];
const USER_AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

/** Members of the accounts in turn, with a passkey and sessions. */
function* addPeople(tables: Tables, { accounts }: Installation, { now, size }: Extent): Generator<void> {
  for (let number = 0; number < size(PEOPLE); number++) {
    const created = now - 300 * DAY_MS + number;
    const person_id = personId(now, number);
    const person = newPerson(person_id, `member${number}@example.com`, `Member ${number}`, created);
    tables.people.insert({ ...person, signed_in_at: now - number * HOUR_MS });
    tables.memberships.put({
      person_id,
      account_id: accounts[number % accounts.length]?.accountId ?? '',
      role: ROLES[Math.floor(number / accounts.length) % ROLES.length] ?? 'viewer',
      source: 'invitation',
      created_at: created,
    });
    tables.passkeys.insert({
      credential_id: hash(`passkey ${number}`).toString('base64url'),
      person_id,
      name: 'Laptop',
      public_key: hash(`key ${number}`),
      counter: 1,
      transports: '["internal"]',
      created_at: created,
      used_at: now,
    });
    for (let session = 0; session < SESSIONS_PER_PERSON; session++) {
      const at = now - session * HOUR_MS;
      tables.consoleSessions.insert(
        {
          session_hash: hash(`session ${number} ${session}`),
          session_id: idOf('session', at, number * SESSIONS_PER_PERSON + session),
          person_id,
          method: 'passkey',
          user_agent: USER_AGENT,
          remote_address: '192.0.2.1',
          created_at: at,
          authenticated_at: at,
          seen_at: at,
          // A directory that is measured again later has them, too.
          expires_at: now + 365 * DAY_MS,
        },
        SESSIONS_PER_PERSON,
      );
      yield;
    }
  }
}

const OPERATIONS = ['updateTemplate', 'createContact', 'sendCampaign', 'console.signIn', 'retryMessage'];

function* addAuditRecords(
  { auditRecords }: Tables,
  { accounts }: Installation,
  { now, size }: Extent,
): Generator<void> {
  const count = size(AUDIT_RECORDS);
  for (let number = 0; number < count; number++) {
    const person = number % size(PEOPLE);
    const operation = OPERATIONS[number % OPERATIONS.length] ?? '';
    auditRecords.insert({
      recorded_at: now - (count - number) * 60_000,
      person_id: personId(now, person),
      person_email: `member${person}@example.com`,
      account_id:
        operation === 'console.signIn' ? null : (accounts[person % accounts.length]?.accountId ?? ''),
      operation,
      target: '{}',
      outcome: number % 50 === 0 ? 'denied' : 'done',
      detail: '',
      remote_address: '192.0.2.1',
    });
    yield;
  }
}

function personId(now: number, number: number): string {
  return idOf('person', now - 300 * DAY_MS + number, number);
}

function idOf(kind: string, at: number, number: number): string {
  return `${kind}_${at}_${number.toString(36).padStart(12, '0')}`;
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
