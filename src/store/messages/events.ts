import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database.ts';
import {
  EVENT_COLUMNS,
  type EventRow,
  eventRows,
  type NewEvent,
  type NewStoredEvent,
  type StoredEvent,
} from './event-rows.ts';

export type { EventRow, NewEvent } from './event-rows.ts';

/** Events with the fields of their messages. CROSS JOIN excludes events without a message. */
export const selectEvent = (events: string, join: 'LEFT JOIN' | 'CROSS JOIN' = 'LEFT JOIN') => `
  SELECT ${EVENT_COLUMNS} FROM ${events} ${join} messages m ON m.seq = e.message_seq`;

const SELECT = selectEvent('events e');

export const EVENT_POLICY = {
  table: 'events',
  personal: ['data'],
  erasure: ['messages', 'events'],
  retention: { kind: 'events', rows: 'aged', period: 'events', number: 'seq', time: 'at' },
} as const satisfies DataPolicy;

export function eventTable(db: Database) {
  const { toRow, toStored } = eventRows(db);
  const insert = db.prepare<NewStoredEvent>(`
    INSERT INTO events (event_key, account, kind_code, at, message_seq, domain, data)
    VALUES (@event_key, @account, @kind_code, @at, @message_seq, @domain, @data)`);
  const bySeq = db.prepare<[number], StoredEvent>(`${SELECT} WHERE e.seq = ?`);
  const ofMessage = db.prepare<[number], StoredEvent>(`${SELECT} WHERE e.message_seq = ? ORDER BY e.seq`);
  const last = db.prepare<[], { seq: number }>('SELECT * FROM events ORDER BY seq DESC LIMIT 1');
  return {
    /** Returns its seq. */
    insert: (row: NewEvent): number => Number(insert.run(toStored(row)).lastInsertRowid),
    /** Throws when the newest event cannot be read: then no further one can be written, either. */
    checkReadable: (): void => {
      last.get();
    },
    /** Null when it is past its retention. */
    bySeq: (seq: number): EventRow | null => {
      const found = bySeq.get(seq);
      return found === undefined ? null : toRow(found);
    },
    ofMessage: (messageSeq: number): EventRow[] => ofMessage.all(messageSeq).map(toRow),
  };
}
