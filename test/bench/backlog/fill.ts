import { MINUTE, SECOND } from '../../../src/core/clock.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { STATUS_CODES } from '../../../src/store/rows/row-keys.ts';
import { createTables } from '../../../src/store/tables.ts';
import { insertQueued, messageIdOf, newMessage } from '../../support/rows.ts';
import type { BacklogDestinations } from './destinations.ts';

export interface BacklogOptions {
  messages: number;
  accountId: string;
  domainId: string;
  /** Sender address of the domain. */
  from: string;
  destinations: BacklogDestinations;
}

const BATCH_SIZE = 5000;
/** Messages that share a stored content, as those of one request do. */
const MESSAGES_PER_CONTENT = 50;
/** Every n-th message to a live destination was deferred, too. */
const DEFERRED_EVERY = 10;
const EARLIER_ATTEMPTS = 3;
/** Deferred messages become due over this time. */
const DUE_WITHIN_MS = 60 * MINUTE;
const CREATED_BEFORE_MS = 2 * 60 * MINUTE;

/**
 * Fills the queue of a stopped daemon: messages in turn to each destination, half of them with the priority of marketing
 * mail. All are transactional: marketing mail would be dropped without the consent of each recipient. Those to dead
 * destinations are deferred after several attempts and become due in the next hour, a part of them immediately.
 * The contents are copies of the newest one in the database. Returns the number of deferred messages.
 */
export function fillBacklog(dataDir: string, options: BacklogOptions): number {
  const { messages, accountId, domainId, from, destinations } = options;
  const { live, dead } = destinations;
  const all = [...live, ...dead];
  const db = openDatabase(dataDir);
  try {
    // A benchmark that fails here starts again.
    db.pragma('synchronous = OFF');
    const tables = createTables(db);
    const content = db
      .prepare<[], { body: Buffer; size: number }>(
        'SELECT body, size FROM contents WHERE shared_id IS NULL ORDER BY content_id DESC LIMIT 1',
      )
      .get();
    if (content === undefined) throw new Error('the database has no content: send a message first');
    const now = Date.now();
    const created = now - CREATED_BEFORE_MS;
    const defer = db.prepare<[number]>(
      `UPDATE messages SET status_code = ${STATUS_CODES.code('deferred')}, attempts = ${EARLIER_ATTEMPTS} WHERE seq = ?`,
    );
    let contentId = 0;
    let deferred = 0;
    const insert = (number: number) => {
      if (number % MESSAGES_PER_CONTENT === 0) contentId = tables.messages.insertContent(content, created);
      const destination = all[number % all.length] ?? '';
      const isDeferred = number % all.length >= live.length || number % DEFERRED_EVERY === 0;
      const priority = Math.floor(number / all.length) % 2 === 0 ? 0 : 1;
      // Multiplied by a prime, so that those of one destination are spread over the time.
      const dueAt = isDeferred
        ? now - MINUTE + ((number * 7919) % (DUE_WITHIN_MS / SECOND)) * SECOND
        : created;
      const message = newMessage(created, {
        message_id: messageIdOf(number, created),
        account_id: accountId,
        domain_id: domainId,
        from_address: from,
        recipient: `b${String(number).padStart(9, '0')}@${destination}`,
        content_id: contentId,
        use_case: 'tx',
      });
      const seq = insertQueued(tables, message, { priority, dueAt, now });
      if (!isDeferred) return;
      defer.run(seq);
      deferred++;
    };
    const insertBatch = db.transaction((first: number) => {
      for (let number = first; number < Math.min(messages, first + BATCH_SIZE); number++) insert(number);
    });
    for (let first = 0; first < messages; first += BATCH_SIZE) insertBatch(first);
    db.pragma('wal_checkpoint(TRUNCATE)');
    return deferred;
  } finally {
    db.close();
  }
}
