import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database.ts';

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

/** Delivery warnings of other servers that were recorded already. */
export function delayNoticeTable(db: Database) {
  const add = db.prepare<[number, Buffer, number]>(
    'INSERT INTO delay_notices (message_seq, fingerprint, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const count = db.prepare<[number], { n: number }>(
    'SELECT count(*) AS n FROM delay_notices WHERE message_seq = ?',
  );
  return {
    /** Returns false when this warning was recorded before. */
    add: (messageSeq: number, fingerprint: Buffer, at: number): boolean =>
      add.run(messageSeq, fingerprint, at).changes === 1,
    count: (messageSeq: number): number => count.get(messageSeq)?.n ?? 0,
  };
}
