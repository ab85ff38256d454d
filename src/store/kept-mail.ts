import type { DataPolicy } from './data-policy.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';

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

export interface KeptMailHead extends Omit<KeptMailRow, 'raw' | 'network'> {
  /** When an operator marked it as read; null: it is unread. */
  read_at: number | null;
}

/** An entry of a list that shows the subject, too. */
export interface KeptMailEntry extends KeptMailHead {
  /** The first MAX_LISTED_BYTES bytes of the mail. */
  head: Buffer;
}

export interface KeptMailFilter {
  box: Box | null;
  /** Only mail that was not marked as read. */
  unread: boolean;
  /** Only mail with a lower number; null: from the newest. */
  before: number | null;
  limit: number;
}

const MAX_MAILS_PER_BOX = 1000;
/** Maximum number of mails from one network in a box. */
const MAX_MAILS_PER_NETWORK = 100;
/** Bytes of a mail in a list: most have their subject in these. */
const MAX_LISTED_BYTES = 16 * 1024;
/** Maximum number of bytes that are stored of one mail. */
const MAX_STORED_BYTES = 256 * 1024;

export const KEPT_MAIL_POLICY = {
  table: 'kept_mail',
  // Mail to the operator (postmaster, abuse) is not erased.
  personal: ['recipient', 'sender', 'remote_address', 'raw'],
  erasure: ['kept mail'],
  retention: { kind: 'keptMail', rows: 'aged', period: 'events', number: 'seq', time: 'received_at' },
} as const satisfies DataPolicy;

interface PageParameters {
  before: number;
  unread: 0 | 1;
  limit: number;
}

/**
 * `kept_mail` and the marks in `kept_mail_reads`, deleted with their mail. Lists of one box are read by the index
 * `kept_mail_by_box`.
 */
export function keptMailTable(db: Database) {
  const sql = statements(db);
  const insert = sql.run<[Omit<KeptMailRow, 'seq'>]>(`INSERT INTO ${sql.row('kept_mail')}`);
  const dropOfNetwork = sql.run<[{ box: Box; network: string; max: number }]>(`
    DELETE FROM kept_mail WHERE box = @box AND network = @network AND seq <= (
      SELECT seq FROM kept_mail WHERE box = @box AND network = @network ORDER BY seq DESC LIMIT 1 OFFSET +@max)`);
  const count = sql.count<[Box]>('SELECT count(*) FROM kept_mail WHERE box = ?');
  const drop = sql.run<[{ box: Box; surplus: number }]>(`
    DELETE FROM kept_mail WHERE seq IN (
      SELECT seq FROM kept_mail WHERE box = @box
      ORDER BY count(*) OVER (PARTITION BY network) DESC, seq LIMIT +@surplus)`);
  const HEAD = `SELECT k.seq, k.box, k.kind, k.recipient, k.sender, k.remote_address, k.message_seq, k.size,
      k.received_at, r.read_at`;
  const FROM = 'LEFT JOIN kept_mail_reads r ON r.mail_seq = k.seq';
  const list = sql.all<[number], KeptMailHead>(`
    ${HEAD} FROM kept_mail k ${FROM} ORDER BY k.seq DESC LIMIT +?`);
  const listBox = sql.all<[Box, number], KeptMailHead>(`
    ${HEAD} FROM kept_mail k INDEXED BY kept_mail_by_box ${FROM} WHERE k.box = ? ORDER BY k.seq DESC LIMIT +?`);
  const ENTRY = `${HEAD}, substr(k.raw, 1, ${MAX_LISTED_BYTES}) AS head`;
  const UNREAD = '(@unread = 0 OR r.read_at IS NULL)';
  const page = sql.all<[PageParameters], KeptMailEntry>(`
    ${ENTRY} FROM kept_mail k ${FROM} WHERE k.seq < @before AND ${UNREAD} ORDER BY k.seq DESC LIMIT +@limit`);
  const pageOfBox = sql.all<[PageParameters & { box: Box }], KeptMailEntry>(`
    ${ENTRY} FROM kept_mail k INDEXED BY kept_mail_by_box ${FROM}
    WHERE k.box = @box AND k.seq < @before AND ${UNREAD} ORDER BY k.seq DESC LIMIT +@limit`);
  return {
    /** `raw` is the whole mail. Above the limit of the box the oldest mail of the network with the most mails is deleted. */
    insert: (row: Omit<KeptMailRow, 'seq' | 'size'>): void => {
      insert({ ...row, size: row.raw.length, raw: row.raw.subarray(0, MAX_STORED_BYTES) });
      const { box, network } = row;
      dropOfNetwork({ box, network, max: MAX_MAILS_PER_NETWORK });
      const surplus = count(box) - MAX_MAILS_PER_BOX;
      if (surplus > 0) drop({ box, surplus });
    },
    /** Newest first, of one box or of all boxes (null). */
    list: (box: Box | null, limit: number): KeptMailHead[] =>
      box === null ? list(limit) : listBox(box, limit),
    /** Newest first, with the beginning of each mail. */
    page: ({ box, unread, before, limit }: KeptMailFilter): KeptMailEntry[] => {
      const parameters = {
        before: before ?? Number.MAX_SAFE_INTEGER,
        unread: unread ? (1 as const) : (0 as const),
        limit,
      };
      return box === null ? page(parameters) : pageOfBox({ ...parameters, box });
    },
    /** Mail of all boxes that is not marked as read. */
    countUnread: sql.count(`
      SELECT count(*) FROM kept_mail k
      WHERE NOT EXISTS (SELECT 1 FROM kept_mail_reads r WHERE r.mail_seq = k.seq)`),
    get: sql.get<[seq: number], KeptMailRow>('SELECT * FROM kept_mail WHERE seq = ?'),
    head: sql.get<[seq: number], KeptMailHead>(`${HEAD} FROM kept_mail k ${FROM} WHERE k.seq = ?`),
    /** The first time remains. */
    markRead: sql.run<[seq: number, at: number]>(
      'INSERT INTO kept_mail_reads (mail_seq, read_at) VALUES (?, ?) ON CONFLICT DO NOTHING',
    ),
    markUnread: sql.run<[seq: number]>('DELETE FROM kept_mail_reads WHERE mail_seq = ?'),
  };
}
