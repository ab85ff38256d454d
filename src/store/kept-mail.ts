import type { DataPolicy } from './data-policy.ts';
import type { Database } from './database.ts';

/*
 * Received mail for the operator to read. Each box is bounded, and so is each network's share of it: a flood displaces
 * its own oldest mail first.
 */

export const BOXES = ['postmaster', 'abuse', 'bounce', 'feedback', 'unsubscribe', 'dmarc', 'tlsrpt'] as const;
export type Box = (typeof BOXES)[number];

export interface KeptMailRow {
  seq: number;
  box: Box;
  /** The classification of the parser; `unread: …` when the mail could not be parsed. */
  kind: string;
  recipient: string;
  /** Envelope sender; '': none. */
  sender: string;
  remote_address: string;
  /** Network of `remote_address`. */
  network: string;
  /** The sent message that the mail refers to; null: none was found. */
  message_seq: number | null;
  /** Size of the whole mail, in bytes. */
  size: number;
  received_at: number;
  /** The first MAX_STORED_BYTES bytes of the mail. */
  raw: Buffer;
}

export type KeptMailHead = Omit<KeptMailRow, 'raw' | 'network'>;

const MAX_MAILS_PER_BOX = 1000;
/** Maximum number of mails from one network in a box. */
const MAX_MAILS_PER_NETWORK = 100;
/** Maximum number of bytes that are stored of one mail. */
const MAX_STORED_BYTES = 256 * 1024;

export const KEPT_MAIL_POLICY = {
  table: 'kept_mail',
  // Mail to the operator (postmaster, abuse) is not erased.
  personal: ['recipient', 'sender', 'remote_address', 'raw'],
  erasure: ['kept mail'],
  retention: { kind: 'keptMail', rows: 'aged', period: 'events', number: 'seq', time: 'received_at' },
} as const satisfies DataPolicy;

export function keptMailTable(db: Database) {
  const insert = db.prepare<Omit<KeptMailRow, 'seq'>>(`
    INSERT INTO kept_mail (box, kind, recipient, sender, remote_address, network, message_seq, size, received_at, raw)
    VALUES (@box, @kind, @recipient, @sender, @remote_address, @network, @message_seq, @size, @received_at, @raw)`);
  const dropOfNetwork = db.prepare<{ box: Box; network: string; max: number }>(`
    DELETE FROM kept_mail WHERE box = @box AND network = @network AND seq <= (
      SELECT seq FROM kept_mail WHERE box = @box AND network = @network ORDER BY seq DESC LIMIT 1 OFFSET +@max)`);
  const count = db.prepare<[Box], number>('SELECT count(*) FROM kept_mail WHERE box = ?').pluck();
  const drop = db.prepare<{ box: Box; surplus: number }>(`
    DELETE FROM kept_mail WHERE seq IN (
      SELECT seq FROM kept_mail WHERE box = @box
      ORDER BY count(*) OVER (PARTITION BY network) DESC, seq LIMIT +@surplus)`);
  const HEAD =
    'SELECT seq, box, kind, recipient, sender, remote_address, message_seq, size, received_at FROM kept_mail';
  const list = db.prepare<[number], KeptMailHead>(`${HEAD} ORDER BY seq DESC LIMIT +?`);
  const listBox = db.prepare<[Box, number], KeptMailHead>(`
    ${HEAD} INDEXED BY kept_mail_by_box WHERE box = ? ORDER BY seq DESC LIMIT +?`);
  const get = db.prepare<[number], KeptMailRow>('SELECT * FROM kept_mail WHERE seq = ?');
  return {
    /** `raw` is the whole mail. Above the limit of the box the oldest mail of the network with the most mails is deleted. */
    insert: (row: Omit<KeptMailRow, 'seq' | 'size'>): void => {
      insert.run({ ...row, size: row.raw.length, raw: row.raw.subarray(0, MAX_STORED_BYTES) });
      const { box, network } = row;
      dropOfNetwork.run({ box, network, max: MAX_MAILS_PER_NETWORK });
      const surplus = (count.get(box) ?? 0) - MAX_MAILS_PER_BOX;
      if (surplus > 0) drop.run({ box, surplus });
    },
    /** Newest first, of one box or of all boxes (null). */
    list: (box: Box | null, limit: number): KeptMailHead[] =>
      box === null ? list.all(limit) : listBox.all(box, limit),
    get: (seq: number): KeptMailRow | null => get.get(seq) ?? null,
  };
}
