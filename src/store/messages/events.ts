import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { codeOfKind } from '../rows/row-keys.ts';
import {
  dataOf,
  EVENT_COLUMNS,
  type EventRow,
  eventRows,
  type NewEvent,
  type NewStoredEvent,
  type StoredData,
  type StoredEvent,
} from './event-rows.ts';

export type { EventRow, NewEvent } from './event-rows.ts';

/** Events with the fields of their messages. CROSS JOIN excludes events without a message. */
export const selectEvent = (events: string, join: 'LEFT JOIN' | 'CROSS JOIN' = 'LEFT JOIN') => `
  SELECT ${EVENT_COLUMNS} FROM ${events} ${join} messages m ON m.seq = e.message_seq`;

const SELECT = selectEvent('events e');

/** The kinds whose fields state why a message was deferred, bounced or dropped. */
const FAILURES = ['email_delayed', 'email_bounced', 'email_rejected', 'email_failed', 'email_suppressed'];
const FAILURE_CODES = FAILURES.map((kind) => codeOfKind(kind)).join(', ');

export const EVENT_POLICY = {
  table: 'events',
  personal: ['data'],
  erasure: ['messages', 'events'],
  retention: { kind: 'events', rows: 'aged', period: 'events', number: 'seq', time: 'at' },
} as const satisfies DataPolicy;

/**
 * `events`; those of a message are read by the index `events_by_message`. The feed of an account is in `event-feed.ts`.
 */
export function eventTable(db: Database) {
  const sql = statements(db);
  const { toRow, toStored } = eventRows(db);
  const insert = sql.insert<[NewStoredEvent]>(`INSERT INTO ${sql.row('events')}`);
  const bySeq = db.prepare<[number], StoredEvent>(`${SELECT} WHERE e.seq = ?`);
  const ofMessage = sql.all<[number], StoredEvent>(`${SELECT} WHERE e.message_seq = ? ORDER BY e.seq`);
  const lastFailure = db.prepare<[number], { at: number; data: StoredData }>(`
    SELECT e.at, e.data FROM events e INDEXED BY events_by_message
    WHERE e.message_seq = ? AND e.kind_code IN (${FAILURE_CODES}) ORDER BY e.seq DESC LIMIT 1`);
  const last = db.prepare<[], { seq: number }>('SELECT * FROM events ORDER BY seq DESC LIMIT 1');
  return {
    /** Returns its seq. */
    insert: (row: NewEvent): number => insert(toStored(row)),
    /** Throws when the newest event cannot be read: no further event can be written then. */
    checkReadable: (): void => {
      last.get();
    },
    /** Null when retention has deleted it. */
    bySeq: (seq: number): EventRow | null => {
      const found = bySeq.get(seq);
      return found === undefined ? null : toRow(found);
    },
    /** The fields (JSON) of the last event that states why a message was deferred, bounced or dropped; null: there is none. */
    lastFailure: (messageSeq: number): string | null => {
      const found = lastFailure.get(messageSeq);
      return found === undefined ? null : dataOf(found.data, found.at);
    },
    ofMessage: (messageSeq: number): EventRow[] => ofMessage(messageSeq).map(toRow),
  };
}

/** Bits of `messages.visits`: which kinds of visit by which kinds of visitor a message had. */
const VISITS = {
  email_opened: { person: 1, machine: 2 },
  email_clicked: { person: 4, machine: 8 },
} as const;

export type VisitKind = keyof typeof VISITS;

/** The column `messages.visits`. Marking returns false for a message that does not exist, as for a further visit. */
export function visitTable(db: Database) {
  const sql = statements(db);
  const mark = sql.changed<[{ seq: number; bit: number }]>(
    'UPDATE messages SET visits = visits | @bit WHERE seq = @seq AND visits & @bit = 0',
  );
  return {
    /** Returns true for the first visit of this kind by this kind of visitor. */
    markFirst: (messageSeq: number, kind: VisitKind, by: 'person' | 'machine'): boolean =>
      mark({ seq: messageSeq, bit: VISITS[kind][by] }),
  };
}
