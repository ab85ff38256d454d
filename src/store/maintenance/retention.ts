import type { Database } from '../database.ts';
import { DMARC_REPORT_POLICY } from '../domains/dmarc-reports.ts';
import { TLS_REPORT_POLICY } from '../domains/tls-reports.ts';
import { IDEMPOTENCY_POLICY } from '../idempotency.ts';
import { KEPT_MAIL_POLICY } from '../kept-mail.ts';
import { DELAY_NOTICE_POLICY } from '../messages/delay-notices.ts';
import { EVENT_POLICY } from '../messages/events.ts';
import { FINAL_AT } from '../messages/message-rows.ts';
import { MESSAGE_POLICY } from '../messages/messages.ts';
import { STRIKE_POLICY } from '../suppressions.ts';
import { agedRows } from './aged-rows.ts';

/**
 * Everything that is deleted by age, in portions whose work grows with a number of rows that the caller chooses.
 * Where each portion continues is known to the caller; a walk that is begun anew finds what is left. A walk that has
 * nothing to delete reads one row, or what was skipped before.
 */

/** Where a walk through the contents is. */
export interface ContentPlace {
  contentId: number;
  /** The last message of that content that was looked at; 0: none yet. */
  messageSeq: number;
}

export interface ContentWalk {
  before: number;
  now: number;
  rows: number;
  /** Asked after each content: bodies differ in size by a factor of a thousand. */
  isOver(): boolean;
}

/** Where a walk through the webhook deliveries is. */
export interface DeliveryPlace {
  webhook: number;
  eventSeq: number;
}

/** `next`: null: there is nothing more to delete. */
export interface PurgedPortion<Place> {
  removed: number;
  next: Place | null;
}

interface ContentUse {
  seq: number;
  final_at: number | null;
}

interface Use {
  /** open: of its messages some were not looked at yet. */
  verdict: 'used' | 'unused' | 'open';
  looked: number;
  lastSeq: number;
}

export function retentionTable(db: Database) {
  return {
    events: agedRows(db, tableOf(EVENT_POLICY)),
    /** Final messages with their attempts. */
    messages: agedRows(db, tableOf(MESSAGE_POLICY)),
    keptMail: agedRows(db, tableOf(KEPT_MAIL_POLICY)),
    dmarcReports: agedRows(db, tableOf(DMARC_REPORT_POLICY)),
    tlsReports: agedRows(db, tableOf(TLS_REPORT_POLICY)),
    contents: contentRetention(db),
    webhookDeliveries: deliveryRetention(db),
    strikes: timedRows(db, tableOf(STRIKE_POLICY)),
    delayNotices: timedRows(db, tableOf(DELAY_NOTICE_POLICY)),
    answers: timedRows(db, tableOf(IDEMPOTENCY_POLICY)),
  };
}

/**
 * Contents of which all messages became final before the date, and contents without messages that are older. Walked
 * from the oldest on, up to the first that was stored after the date. `contents.created_at` is read of those only that
 * stay: in the table it can stand behind a body of megabytes, page by page.
 */
function contentRetention(db: Database) {
  const nextContent = db
    .prepare<[number], number>(
      'SELECT content_id FROM contents WHERE content_id >= ? ORDER BY content_id LIMIT 1',
    )
    .pluck();
  const createdAt = db
    .prepare<[number], number>('SELECT created_at FROM contents WHERE content_id = ?')
    .pluck();
  const firstMessageAt = db
    .prepare<[number], number>(
      'SELECT created_at FROM messages INDEXED BY messages_by_content WHERE content_id = ? ORDER BY seq LIMIT 1',
    )
    .pluck();
  const newestUse = db.prepare<[number], ContentUse>(
    `SELECT seq, ${FINAL_AT} FROM messages INDEXED BY messages_by_content WHERE content_id = ? ORDER BY seq DESC LIMIT 1`,
  );
  const uses = db.prepare<[number, number, number], ContentUse>(`
    SELECT seq, ${FINAL_AT} FROM messages INDEXED BY messages_by_content WHERE content_id = ? AND seq > ?
    ORDER BY seq LIMIT +?`);
  const remove = db.prepare<[number]>('DELETE FROM contents WHERE content_id = ?');

  /** Looks at `rows` messages at most. `lastSeq`: the last that was looked at, and there are more. */
  function useOf(place: ContentPlace, before: number, rows: number): Use {
    const isDone = ({ final_at: finalAt }: ContentUse) => finalAt !== null && finalAt < before;
    // Of a campaign's many messages the newest is most likely the last to end.
    const newest = newestUse.get(place.contentId);
    if (newest === undefined) {
      const isOld = (createdAt.get(place.contentId) ?? before) < before;
      return { verdict: isOld ? 'unused' : 'used', looked: 0, lastSeq: 0 };
    }
    if (!isDone(newest)) return { verdict: 'used', looked: 0, lastSeq: 0 };
    const messages = uses.all(place.contentId, place.messageSeq, rows);
    const verdict = !messages.every(isDone) ? 'used' : messages.length < rows ? 'unused' : 'open';
    return { verdict, looked: messages.length, lastSeq: messages.at(-1)?.seq ?? place.messageSeq };
  }

  /** Whether it was stored after the date, and so everything behind it. */
  function isYoung(contentId: number, before: number, now: number): boolean {
    const message = firstMessageAt.get(contentId);
    if (message !== undefined && message < before) return false;
    const at = createdAt.get(contentId);
    return at !== undefined && at >= before && at <= now;
  }

  return {
    start: { contentId: 0, messageSeq: 0 } satisfies ContentPlace,
    /** Looks at some `rows` contents and messages, fewer when `isOver`. */
    purge: (place: ContentPlace, { before, now, rows, isOver }: ContentWalk): PurgedPortion<ContentPlace> => {
      let next = place;
      let removed = 0;
      for (let left = rows; left > 0 && (left === rows || !isOver()); ) {
        const contentId = nextContent.get(next.contentId);
        if (contentId === undefined) return { removed, next: null };
        if (contentId !== next.contentId) next = { contentId, messageSeq: 0 };
        const { verdict, looked, lastSeq } = useOf(next, before, left);
        if (verdict === 'open') return { removed, next: { contentId, messageSeq: lastSeq } };
        if (verdict === 'unused') {
          remove.run(contentId);
          removed++;
        } else if (isYoung(contentId, before, now)) return { removed, next: null };
        next = { contentId: contentId + 1, messageSeq: 0 };
        left -= 1 + looked;
      }
      return { removed, next };
    },
  };
}

/** Deliveries of events that are gone. */
function deliveryRetention(db: Database) {
  const firstOf = db.prepare<[number, number], DeliveryPlace>(`
    SELECT webhook, event_seq AS eventSeq FROM webhook_deliveries WHERE (webhook, event_seq) >= (?, ?)
    ORDER BY webhook, event_seq LIMIT 1`);
  const rowsFurther = db
    .prepare<[number, number, number, number], number>(`
      SELECT event_seq FROM webhook_deliveries WHERE webhook = ? AND event_seq >= ? AND event_seq < ?
      ORDER BY event_seq LIMIT 1 OFFSET +?`)
    .pluck();
  const remove = db.prepare<[number, number, number]>(`
    DELETE FROM webhook_deliveries WHERE webhook = ? AND event_seq >= ? AND event_seq < ?
      AND NOT EXISTS (SELECT 1 FROM events WHERE events.seq = webhook_deliveries.event_seq)`);
  return {
    start: { webhook: 0, eventSeq: 0 } satisfies DeliveryPlace,
    /** Of events before `end` only, see `AgedPortion`. */
    purge: (
      place: DeliveryPlace,
      { end, rows }: { end: number; rows: number },
    ): PurgedPortion<DeliveryPlace> => {
      const first = firstOf.get(place.webhook, place.eventSeq);
      if (first === undefined) return { removed: 0, next: null };
      const { webhook, eventSeq } = first;
      const further = rowsFurther.get(webhook, eventSeq, end, rows);
      const { changes } = remove.run(webhook, eventSeq, further ?? end);
      const next =
        further === undefined ? { webhook: webhook + 1, eventSeq: 0 } : { webhook, eventSeq: further };
      return { removed: changes, next };
    },
  };
}

/** Rows that an index has in the order of their time. `purge` returns how many it deleted, at most `rows`. */
function timedRows(db: Database, { table, key, time }: { table: string; key: string; time: string }) {
  const remove = db.prepare<[number, number]>(`
    DELETE FROM ${table} WHERE (${key}) IN (
      SELECT ${key} FROM ${table} WHERE ${time} < ? ORDER BY ${time} LIMIT +?)`);
  return { purge: (before: number, rows: number): number => remove.run(before, rows).changes };
}

function tableOf<Rule>({ table, retention }: { table: string; retention: Rule }): Rule & { table: string } {
  return { table, ...retention };
}
