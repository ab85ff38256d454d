import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

export const DELAY_NOTICE_POLICY = {
  table: 'delay_notices',
  personal: [],
  retention: {
    kind: 'delayNotices',
    rows: 'timed',
    period: 'events',
    key: 'message_seq, fingerprint',
    time: 'at',
  },
} as const satisfies DataPolicy;

/** Recorded delivery warnings of other servers, so that a repeated one is not recorded again. */
export function delayNoticeTable(db: Database) {
  const sql = statements(db);
  return {
    /** Returns false when this warning is recorded already. */
    add: sql.changed<[messageSeq: number, fingerprint: Buffer, at: number]>(
      'INSERT INTO delay_notices (message_seq, fingerprint, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    /** Number of warnings recorded for a message. */
    count: sql.count<[messageSeq: number]>('SELECT count(*) FROM delay_notices WHERE message_seq = ?'),
  };
}
