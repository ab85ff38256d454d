import { API_KEY_POLICY } from '../api-keys.ts';
import { SEQUENCE_POLICY } from '../campaigns/sequences.ts';
import { CLOSED_SIGN_UP_POLICY } from '../contacts/closed-sign-ups.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { SITE_LIMIT_POLICY } from '../delivery/site-limits.ts';
import { UNCLASSIFIED_REPLY_POLICY } from '../delivery/unclassified-replies.ts';
import { DMARC_REPORT_POLICY } from '../domains/dmarc-reports.ts';
import { TLS_REPORT_POLICY } from '../domains/tls-reports.ts';
import { EGRESS_COUNT_POLICY } from '../egress/egress-counts.ts';
import { IDEMPOTENCY_POLICY } from '../idempotency.ts';
import { INBOUND_MAIL_POLICY } from '../inbound/inbound-mails.ts';
import { KEPT_MAIL_POLICY } from '../kept-mail.ts';
import { EVENT_POLICY } from '../messages/events.ts';
import { HOURLY_COUNT_POLICY } from '../messages/hourly-counts.ts';
import { FINAL_AT } from '../messages/message-rows.ts';
import { DELAY_NOTICE_POLICY, MESSAGE_POLICY } from '../messages/messages.ts';
import { TAG_COUNT_POLICY } from '../messages/tag-counts.ts';
import { AUDIT_POLICY } from '../people/audit.ts';
import { SESSION_POLICY, SIGN_IN_LINK_POLICY } from '../people/sessions.ts';
import { REPUTATION_COUNT_POLICY } from '../reputation/reputation-counts.ts';
import { SPAM_RATE_POLICY } from '../reputation/spam-rates.ts';
import { STRIKE_POLICY, SUPPRESSION_REMOVAL_POLICY } from '../suppressions.ts';
import { MOVED_MESSAGE_POLICY } from '../transfer/moved-messages.ts';
import { agedRows } from './aged-rows.ts';

/*
 * Everything that is deleted by age, in portions whose work grows with a number of rows that the caller chooses. The caller
 * stores where the next portion continues; a walk that begins again finds what is left. A walk with nothing to delete
 * reads one row and the rows that were skipped before it.
 *
 * A file for each month, deleted as a whole, would cost nothing to delete. But a transaction over several attached files is
 * atomic in WAL mode for each file only (https://sqlite.org/lang_attach.html): a crash could lose one of the event, the
 * state of the message, the row of the queue and the webhook delivery, which are one transaction here.
 */

/** The position of a walk through the contents. */
export interface ContentPosition {
  contentId: number;
  /** The last message of that content that was examined; 0: none yet. */
  messageSeq: number;
}

export interface ContentWalk {
  before: number;
  now: number;
  rows: number;
  /** Called after each content: bodies differ in size by a factor of a thousand. */
  isOver(): boolean;
}

/** The position of a walk through the webhook deliveries. */
export interface DeliveryPosition {
  webhook: number;
  eventSeq: number;
}

/** `next`: where the next portion continues; null: there is nothing more to delete. */
export interface PurgedPortion<Position> {
  removed: number;
  next: Position | null;
}

interface ContentUse {
  seq: number;
  final_at: number | null;
}

interface Use {
  /** `open`: some messages of the content were not examined yet. */
  verdict: 'used' | 'unused' | 'open';
  examined: number;
  lastSeq: number;
}

/**
 * One purge for each data policy with rows that are deleted by age. Purges write: they run in units of work. Tables
 * with the rule `timed` need an index on the time.
 */
export function retentionTable(db: Database) {
  return {
    events: agedRows(db, tableOf(EVENT_POLICY)),
    /** Final messages with their attempts. */
    messages: agedRows(db, tableOf(MESSAGE_POLICY)),
    keptMail: agedRows(db, tableOf(KEPT_MAIL_POLICY)),
    inboundMails: agedRows(db, tableOf(INBOUND_MAIL_POLICY)),
    dmarcReports: agedRows(db, tableOf(DMARC_REPORT_POLICY)),
    tlsReports: agedRows(db, tableOf(TLS_REPORT_POLICY)),
    auditRecords: agedRows(db, tableOf(AUDIT_POLICY)),
    suppressionRemovals: agedRows(db, tableOf(SUPPRESSION_REMOVAL_POLICY)),
    contents: contentRetention(db),
    webhookDeliveries: deliveryRetention(db),
    strikes: timedRows(db, tableOf(STRIKE_POLICY)),
    delayNotices: timedRows(db, tableOf(DELAY_NOTICE_POLICY)),
    movedMessages: timedRows(db, tableOf(MOVED_MESSAGE_POLICY)),
    hourlyCounts: timedRows(db, tableOf(HOURLY_COUNT_POLICY)),
    tagCounts: timedRows(db, tableOf(TAG_COUNT_POLICY)),
    reputationCounts: timedRows(db, tableOf(REPUTATION_COUNT_POLICY)),
    spamRates: timedRows(db, tableOf(SPAM_RATE_POLICY)),
    siteLimits: timedRows(db, tableOf(SITE_LIMIT_POLICY)),
    unclassifiedReplies: timedRows(db, tableOf(UNCLASSIFIED_REPLY_POLICY)),
    egressCounts: timedRows(db, tableOf(EGRESS_COUNT_POLICY)),
    answers: timedRows(db, tableOf(IDEMPOTENCY_POLICY)),
    sequencePeople: timedRows(db, tableOf(SEQUENCE_POLICY)),
    closedSignUps: timedRows(db, tableOf(CLOSED_SIGN_UP_POLICY)),
    signInLinks: timedRows(db, tableOf(SIGN_IN_LINK_POLICY)),
    consoleSessions: timedRows(db, tableOf(SESSION_POLICY)),
    revokedKeys: timedRows(db, tableOf(API_KEY_POLICY)),
  };
}

/**
 * Contents of which all messages became final before the date, and contents without messages that are older. Walked
 * from the oldest on, up to the first that was stored after the date. `contents.created_at` is read only of contents that
 * stay.
 */
function contentRetention(db: Database) {
  const sql = statements(db);
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
  const uses = sql.all<[number, number, number], ContentUse>(`
    SELECT seq, ${FINAL_AT} FROM messages INDEXED BY messages_by_content WHERE content_id = ? AND seq > ?
    ORDER BY seq LIMIT +?`);
  const remove = sql.run<[number]>('DELETE FROM contents WHERE content_id = ?');

  /** Examines at most `rows` messages. `lastSeq`: the last one that was examined. */
  function useOf(position: ContentPosition, before: number, rows: number): Use {
    const isDone = ({ final_at: finalAt }: ContentUse) => finalAt !== null && finalAt < before;
    // The newest of a campaign's messages is most likely the last to become final.
    const newest = newestUse.get(position.contentId);
    if (newest === undefined) {
      const isOld = (createdAt.get(position.contentId) ?? before) < before;
      return { verdict: isOld ? 'unused' : 'used', examined: 0, lastSeq: 0 };
    }
    if (!isDone(newest)) return { verdict: 'used', examined: 0, lastSeq: 0 };
    const messages = uses(position.contentId, position.messageSeq, rows);
    const verdict = !messages.every(isDone) ? 'used' : messages.length < rows ? 'unused' : 'open';
    return { verdict, examined: messages.length, lastSeq: messages.at(-1)?.seq ?? position.messageSeq };
  }

  /** Whether the content was stored after the date, and therefore all later ones, too. */
  function isYoung(contentId: number, before: number, now: number): boolean {
    const message = firstMessageAt.get(contentId);
    if (message !== undefined && message < before) return false;
    const at = createdAt.get(contentId);
    return at !== undefined && at >= before && at <= now;
  }

  return {
    start: { contentId: 0, messageSeq: 0 } satisfies ContentPosition,
    /** Examines about `rows` contents and messages, fewer when `isOver`. */
    purge: (
      position: ContentPosition,
      { before, now, rows, isOver }: ContentWalk,
    ): PurgedPortion<ContentPosition> => {
      let next = position;
      let removed = 0;
      for (let left = rows; left > 0 && (left === rows || !isOver()); ) {
        const contentId = nextContent.get(next.contentId);
        if (contentId === undefined) return { removed, next: null };
        if (contentId !== next.contentId) next = { contentId, messageSeq: 0 };
        const { verdict, examined, lastSeq } = useOf(next, before, left);
        if (verdict === 'open') return { removed, next: { contentId, messageSeq: lastSeq } };
        if (verdict === 'unused') {
          remove(contentId);
          removed++;
        } else if (isYoung(contentId, before, now)) return { removed, next: null };
        next = { contentId: contentId + 1, messageSeq: 0 };
        left -= 1 + examined;
      }
      return { removed, next };
    },
  };
}

/** Deliveries of deleted events. */
function deliveryRetention(db: Database) {
  const firstOf = db.prepare<[number, number], DeliveryPosition>(`
    SELECT webhook, event_seq AS eventSeq FROM webhook_deliveries WHERE (webhook, event_seq) >= (?, ?)
    ORDER BY webhook, event_seq LIMIT 1`);
  const seqAtOffset = db
    .prepare<[number, number, number, number], number>(`
      SELECT event_seq FROM webhook_deliveries WHERE webhook = ? AND event_seq >= ? AND event_seq < ?
      ORDER BY event_seq LIMIT 1 OFFSET +?`)
    .pluck();
  const remove = db.prepare<[number, number, number]>(`
    DELETE FROM webhook_deliveries WHERE webhook = ? AND event_seq >= ? AND event_seq < ?
      AND NOT EXISTS (SELECT 1 FROM events WHERE events.seq = webhook_deliveries.event_seq)`);
  return {
    start: { webhook: 0, eventSeq: 0 } satisfies DeliveryPosition,
    /** Deletes deliveries of events before `end` only, see `AgedPortion`. */
    purge: (
      position: DeliveryPosition,
      { end, rows }: { end: number; rows: number },
    ): PurgedPortion<DeliveryPosition> => {
      const first = firstOf.get(position.webhook, position.eventSeq);
      if (first === undefined) return { removed: 0, next: null };
      const { webhook, eventSeq } = first;
      const upTo = seqAtOffset.get(webhook, eventSeq, end, rows);
      const { changes } = remove.run(webhook, eventSeq, upTo ?? end);
      const next = upTo === undefined ? { webhook: webhook + 1, eventSeq: 0 } : { webhook, eventSeq: upTo };
      return { removed: changes, next };
    },
  };
}

/** Rows that an index has in the order of their time. `purge` returns how many it deleted, at most `rows`. */
function timedRows(db: Database, { table, key, time }: { table: string; key: string; time: string }) {
  const sql = statements(db);
  return {
    purge: sql.changes<[before: number, rows: number]>(`
      DELETE FROM ${table} WHERE (${key}) IN (
        SELECT ${key} FROM ${table} WHERE ${time} < ? ORDER BY ${time} LIMIT +?)`),
  };
}

function tableOf<Rule>({ table, retention }: { table: string; retention: Rule }): Rule & { table: string } {
  return { table, ...retention };
}
