import type { Database } from './database.ts';

/** Mail that came in and is for a person to read. Each box is bounded: a flood pushes out its own oldest. */
export const BOXES = ['postmaster', 'abuse', 'bounce', 'feedback', 'unsubscribe', 'dmarc', 'tlsrpt'] as const;
export type Box = (typeof BOXES)[number];

export interface KeptMailRow {
  seq: number;
  box: Box;
  /** What the parser took it for; `unread: …` when it could not be read. */
  kind: string;
  recipient: string;
  /** Of the envelope, '' for none. */
  sender: string;
  remote_address: string;
  /** The message it proved to be about. */
  message_seq: number | null;
  /** Of the whole mail, in bytes. */
  size: number;
  received_at: number;
  /** Its first bytes, see KEPT_BYTES. */
  raw: Buffer;
}

export type KeptMailHead = Omit<KeptMailRow, 'raw'>;

const MAILS_A_BOX = 1000;
/** Most that is kept of one mail. */
const KEPT_BYTES = 256 * 1024;

export function keptMailTable(db: Database) {
  const insert = db.prepare<Omit<KeptMailRow, 'seq'>>(`
    INSERT INTO kept_mail (box, kind, recipient, sender, remote_address, message_seq, size, received_at, raw)
    VALUES (@box, @kind, @recipient, @sender, @remote_address, @message_seq, @size, @received_at, @raw)`);
  const pushOut = db.prepare<[Box, Box, number]>(`
    DELETE FROM kept_mail WHERE box = ? AND seq <= (
      SELECT seq FROM kept_mail WHERE box = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`);
  const list = db.prepare<[Box | null, number], KeptMailHead>(`
    SELECT seq, box, kind, recipient, sender, remote_address, message_seq, size, received_at FROM kept_mail
    WHERE box = coalesce(?, box) ORDER BY seq DESC LIMIT +?`);
  const get = db.prepare<[number], KeptMailRow>('SELECT * FROM kept_mail WHERE seq = ?');
  const purge = db.prepare<[number, number]>(
    'DELETE FROM kept_mail WHERE seq IN (SELECT seq FROM kept_mail WHERE received_at < ? ORDER BY seq LIMIT +?)',
  );
  return {
    /** `raw` is the whole mail. */
    insert: (row: Omit<KeptMailRow, 'seq' | 'size'>): void => {
      insert.run({ ...row, size: row.raw.length, raw: row.raw.subarray(0, KEPT_BYTES) });
      pushOut.run(row.box, row.box, MAILS_A_BOX);
    },
    /** Newest first; of all boxes with null. */
    list: (box: Box | null, limit: number): KeptMailHead[] => list.all(box, limit),
    get: (seq: number): KeptMailRow | null => get.get(seq) ?? null,
    purge: (before: number, limit: number): number => purge.run(before, limit).changes,
  };
}
