import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type AccountLimitDefaults, createAccountLimits } from '../../src/accounts/limits.ts';
import { createIds } from '../../src/core/ids.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createRecorder } from '../../src/events/record.ts';
import { type MessageContent } from '../../src/mail/content.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { mergeContent } from '../../src/mail/shared-content.ts';
import { packContent, unpackContent } from '../../src/mail/stored-content.ts';
import { DATABASE_FILE, type Database, openDatabase } from '../../src/store/database.ts';
import { checkColumns, type DomainRow } from '../../src/store/domains/domains.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import type { QueuePriority } from '../../src/store/messages/queue.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import { createWriter } from '../../src/store/writer.ts';

/** A directory that is removed at the end of the test. */
export function temporaryDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A clock that moves only by `advance`. `start` in epoch ms. */
export function heldClock(start = Date.UTC(2026, 0, 15, 12)) {
  let now = start;
  return {
    now: () => now,
    advance: (ms: number) => {
      now += ms;
    },
  };
}

/** The file of a database without rows. */
let emptyDatabase: Buffer | null = null;

/** Opens a new database in `dir`, which exists: a copy of one that each process creates once. */
export function openNewDatabase(dir: string): Database {
  emptyDatabase ??= createEmptyDatabase();
  writeFileSync(join(dir, DATABASE_FILE), emptyDatabase, { mode: 0o600 });
  return openDatabase(dir);
}

function createEmptyDatabase(): Buffer {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-'));
  try {
    openDatabase(dir).close();
    return readFileSync(join(dir, DATABASE_FILE));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** A database in a temporary directory with an account, a domain group and a verified domain. */
export function startStore(clock = heldClock(), defaults: AccountLimitDefaults = {}) {
  const dir = temporaryDir();
  const db = openNewDatabase(dir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  const ids = createIds(clock, systemRandom);
  const recorder = createRecorder({ clock, ids });
  onTestFinished(async () => {
    await writer.close();
    db.close();
  });
  insertAccount(tables, 'acct_one', clock.now());
  insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_one', name: 'example.com' }, clock.now());
  const limits = createAccountLimits({ tables, defaults });
  return { dir, db, tables, writer, ids, recorder, clock, limits };
}

export function insertAccount(tables: Tables, accountId: string, now: number): void {
  tables.accounts.insert({
    account_id: accountId,
    name: accountId,
    status: 'active',
    company_name: 'Example Ltd',
    company_address: JSON.stringify({ line1: '1 Main St', city: 'Town', postalCode: '12345', country: 'GB' }),
    abuse_email: null,
    logo_url: null,
    created_at: now,
    updated_at: now,
  });
  tables.domainGroups.insert({
    group_id: `dgroup_${accountId}`,
    account_id: accountId,
    name: 'Default',
    description: null,
    color: null,
    icon: null,
    is_default: 1,
    created_at: now,
    updated_at: now,
  });
}

type DomainColumns = Partial<DomainRow> & Pick<DomainRow, 'account_id' | 'domain_id' | 'name'>;

/** Inserts a verified domain; `columns` override the defaults. */
export function insertDomain(tables: Tables, columns: DomainColumns, now: number): DomainRow {
  const row: DomainRow = {
    group_id: `dgroup_${columns.account_id}`,
    use_case: 'tx',
    region: 'local',
    status: 'SUCCESS',
    ...checkColumns(1),
    return_path: 'customer',
    tracking_domain: null,
    tracking_host: null,
    alt_domain_id: `alt_${columns.domain_id}`,
    alt_status: 'PENDING',
    alt_provisioned: 0,
    alt_dkim_enabled: 0,
    alt_spf_configured: 0,
    alt_dmarc_configured: 0,
    last_checked_at: null,
    next_check_at: now,
    check_count: 0,
    failing_since: null,
    created_at: now,
    updated_at: now,
    ...columns,
  };
  tables.domains.insert(row);
  return row;
}

let enqueued = 0;

/** Inserts a message and its queue row; returns the message as stored. */
export function enqueue(
  tables: Tables,
  now: number,
  options: Partial<MessageRow> & { priority?: QueuePriority; dueAt?: number } = {},
): MessageRow {
  const { priority = 0, dueAt = now, ...columns } = options;
  const recipient = columns.recipient ?? 'ada@example.net';
  const contentId = tables.messages.insertContent(packContent('{}'), now);
  const seq = tables.messages.insert({
    message_id: `msg_${now}_${String(enqueued++).padStart(12, '0')}`,
    account_id: 'acct_one',
    content_id: contentId,
    use_case: priority === 0 ? 'tx' : 'mk',
    domain_id: 'domain_one',
    job_id: null,
    campaign_id: null,
    subscription_group_id: null,
    from_address: 'shop@example.com',
    recipient,
    recipient_hash: emailIdentifier(recipient),
    role: 'to',
    subject: 'Hello',
    simulated: 0,
    track_clicks: 0,
    track_opens: 0,
    essential: 0,
    created_at: now,
    expires_at: now + 2 * 86_400_000,
    ...columns,
  });
  tables.queue.insert({
    seq,
    priority,
    account_id: columns.account_id ?? 'acct_one',
    domain_id: columns.domain_id ?? 'domain_one',
    destination: recipient.slice(recipient.lastIndexOf('@') + 1),
    due_at: dueAt,
    ready: dueAt <= now ? 1 : 0,
    lease: null,
    campaign_seq: null,
  });
  const row = tables.messages.bySeq(seq);
  if (row === null) throw new Error('the message was not stored');
  return row;
}

/** A message's content, decoded and merged with its shared content. */
export function contentOf(
  tables: Tables,
  message: Pick<MessageRow, 'content_id' | 'message_id' | 'created_at' | 'recipient'> | undefined,
): MessageContent {
  const content = message === undefined ? null : tables.messages.content(message.content_id);
  if (message === undefined || content === null) throw new Error('the message has no content');
  if (content.shared_id === null) return JSON.parse(unpackContent(content));
  const shared = tables.sharedContents.get(content.shared_id);
  if (shared === null) throw new Error(`there is no shared content ${content.shared_id}`);
  return mergeContent(
    JSON.parse(unpackContent({ ...shared, octets: new Uint8Array(shared.octets) })),
    JSON.parse(unpackContent(content)),
    { messageId: message.message_id, date: message.created_at },
    message.recipient,
  );
}
