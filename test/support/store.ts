import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type AccountLimitDefaults, createAccountLimits } from '../../src/accounts/limits.ts';
import { createIds } from '../../src/core/ids.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createRecorder } from '../../src/events/record.ts';
import type { MessageContent } from '../../src/mail/content.ts';
import { mergeContent, type SharedTexts, type TemplatedContent } from '../../src/mail/shared-content.ts';
import { packContent, readContent } from '../../src/mail/stored-content.ts';
import { DATABASE_FILE, type Database, openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import type { MessageRow, NewMessage } from '../../src/store/messages/messages.ts';
import type { QueuePriority } from '../../src/store/messages/queue.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import { insertAccount, insertDomain, insertQueued, messageIdOf, newMessage } from './rows.ts';

export { insertAccount, insertDomain, insertDomainOf } from './rows.ts';

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
  return {
    dir,
    db,
    tables,
    reader: createLocalReader(tables),
    writer,
    ids,
    recorder,
    clock,
    monotonic: clock,
    limits,
  };
}

let enqueued = 0;

/** Inserts a message and its queue row; returns the message as stored. */
export function enqueue(
  tables: Tables,
  now: number,
  options: Partial<NewMessage> & { priority?: QueuePriority; dueAt?: number; scheduled?: boolean } = {},
): MessageRow {
  const { priority = 0, dueAt = now, scheduled = false, ...columns } = options;
  const message = newMessage(now, {
    message_id: messageIdOf(enqueued++, now),
    recipient: 'ada@example.net',
    content_id: tables.messages.insertContent(packContent('{}'), now),
    use_case: priority === 0 ? 'tx' : 'mk',
    ...columns,
  });
  const row = tables.messages.bySeq(insertQueued(tables, message, { priority, dueAt, now, scheduled }));
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
  if (content.shared_id === null) return readContent(content) as MessageContent;
  const shared = tables.sharedContents.get(content.shared_id);
  if (shared === null) throw new Error(`there is no shared content ${content.shared_id}`);
  return mergeContent(
    readContent({ ...shared, bytes: new Uint8Array(shared.bytes) }) as SharedTexts,
    readContent(content) as TemplatedContent,
    { messageId: message.message_id, date: message.created_at },
    message.recipient,
  );
}
