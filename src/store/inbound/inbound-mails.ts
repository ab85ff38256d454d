import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type Page, type PageFilter, pageOf } from '../rows/page.ts';

/** How a program that sent a mail declares itself (RFC 3834 §5, RFC 2919, and the older field Precedence). */
export const AUTOMATIC_KINDS = ['reply', 'generated', 'list', 'bulk'] as const;
export type AutomaticKind = (typeof AUTOMATIC_KINDS)[number];

/** A received mail; `content` apart, which may be long. */
export interface InboundRow {
  /** The page key. */
  seq: number;
  inbound_id: string;
  account_id: string;
  /** Of the route that it came to; it may be deleted. */
  route_id: string;
  source_seq: number;
  /** received: it waits for the parser. */
  status: 'received' | 'parsed';
  /** Of the envelope; '': none. */
  sender: string;
  recipient: string;
  helo: string;
  remote_address: string;
  received_at: number;
  /** Address of the field From in lower case; '': none, or not parsed. */
  from_address: string;
  /** Decoded. */
  subject: string;
  /** The message of the account that it answers. */
  answers: string | null;
  automatic: AutomaticKind | null;
  /** Whether it passed this server before. */
  is_loop: 0 | 1;
  attachments: number;
  /** Why the parser has no content; null: it has. */
  parse_error: 'too-long' | 'failed' | null;
  /** JSON; null: not checked yet. */
  authentication: string | null;
}

export type StoredInbound = InboundRow & {
  /** JSON; null: not parsed yet. */
  content: string | null;
};

/** A mail as a list shows it. */
export type ListedInbound = InboundRow & {
  /** Bytes of the source. */
  size: number;
};

export interface InboundFilter extends PageFilter {
  routeId: string | null;
  /** In lower case. */
  from: string | null;
  /** The message that it answers. */
  answers: string | null;
}

/** What the parser found. */
export type ParsedRow = Pick<
  StoredInbound,
  | 'from_address'
  | 'subject'
  | 'answers'
  | 'automatic'
  | 'is_loop'
  | 'attachments'
  | 'parse_error'
  | 'authentication'
  | 'content'
>;

/** A mail of a person who is erased. */
type PersonalMail = Pick<InboundRow, 'seq' | 'source_seq'>;

/** Bytes of a part: a unit of work writes one. */
export const INBOUND_PART_BYTES = 256 * 1024;

export const INBOUND_MAIL_POLICY = {
  table: 'inbound_mails',
  personal: [
    'sender',
    'recipient',
    'helo',
    'remote_address',
    'from_address',
    'subject',
    'authentication',
    'content',
  ],
  erasure: ['inbound mail'],
  retention: { kind: 'inboundMails', rows: 'aged', period: 'inbound', number: 'seq', time: 'received_at' },
} as const satisfies DataPolicy;

export const INBOUND_PART_POLICY = {
  table: 'inbound_parts',
  personal: ['bytes'],
  erasure: ['inbound mail'],
  retention: { until: 'the last mail with this source is deleted' },
} as const satisfies DataPolicy;

/** `inbound_mails`, `inbound_sources` and `inbound_parts`. Lists read an index of the account in the order of `seq`. */
export function inboundTable(db: Database) {
  const sql = statements(db);
  const COLUMNS = `m.seq, m.inbound_id, m.account_id, m.route_id, m.source_seq, m.status, m.sender, m.recipient, m.helo,
    m.remote_address, m.received_at, m.from_address, m.subject, m.answers, m.automatic, m.is_loop, m.attachments,
    m.parse_error, m.authentication, s.size`;
  const FROM = 'FROM inbound_mails m JOIN inbound_sources s ON s.seq = m.source_seq';
  const OTHERS = `AND (@routeId IS NULL OR m.route_id = @routeId) AND (@from IS NULL OR m.from_address = @from)
    AND (@answers IS NULL OR m.answers = @answers)`;
  const page = (index: string, conditions: string) =>
    sql.all<[Omit<InboundFilter, 'beforeSeq'> & { beforeSeq: number }], ListedInbound>(`
      SELECT ${COLUMNS} FROM inbound_mails m INDEXED BY ${index} JOIN inbound_sources s ON s.seq = m.source_seq
      WHERE m.account_id = @accountId AND m.seq < @beforeSeq ${conditions} ORDER BY m.seq DESC LIMIT +@limit`);
  const pages = {
    answers: page('inbound_mails_answering', `AND m.answers = @answers ${OTHERS}`),
    from: page('inbound_mails_from', `AND m.from_address = @from ${OTHERS}`),
    route: page('inbound_mails_of_route', `AND m.route_id = @routeId ${OTHERS}`),
    all: page('inbound_mails_of_account', ''),
  };
  const parts = sql.values<[number], Buffer>(`
    SELECT p.bytes FROM inbound_sources s JOIN inbound_parts p ON p.source_seq = s.seq
    WHERE s.seq = ? AND s.state = 'stored' ORDER BY p.n`);
  const ofAddress = sql.all<[string, string, number], PersonalMail>(`
    SELECT seq, source_seq FROM inbound_mails INDEXED BY inbound_mails_from
    WHERE account_id = ? AND from_address = ? ORDER BY seq LIMIT +?`);
  const ofSender = sql.all<[string, string, number], PersonalMail>(`
    SELECT seq, source_seq FROM inbound_mails INDEXED BY inbound_mails_by_sender
    WHERE account_id = ? AND sender = ? ORDER BY seq LIMIT +?`);
  const setState = sql.run<[string, number]>('UPDATE inbound_sources SET state = ? WHERE seq = ?');
  return {
    /** Returns its seq. */
    insertSource: sql.insert<[accountId: string, size: number]>(
      "INSERT INTO inbound_sources (account_id, state, size) VALUES (?, 'storing', ?)",
    ),
    insertPart: sql.run<[sourceSeq: number, n: number, bytes: Buffer]>(
      'INSERT INTO inbound_parts (source_seq, n, bytes) VALUES (?, ?, ?)',
    ),
    setState: (sourceSeq: number, state: 'stored' | 'deleting'): void => setState(state, sourceSeq),
    /** Sources that are being stored or deleted, in the order of their numbers. */
    unfinished: sql.values<[state: 'storing' | 'deleting', limit: number], number>(`
      SELECT seq FROM inbound_sources WHERE state = ? AND state <> 'stored' ORDER BY seq LIMIT +?`),
    /** Removes parts of a source; returns how many. */
    removeParts: sql.changes<[sourceSeq: number, limit: number]>(`
      DELETE FROM inbound_parts WHERE rowid IN (SELECT rowid FROM inbound_parts WHERE source_seq = ? LIMIT +?)`),
    removeSource: sql.run<[sourceSeq: number]>('DELETE FROM inbound_sources WHERE seq = ?'),
    /** The bytes of a mail; null: they are not stored. */
    source: (sourceSeq: number): ArrayBuffer | null => {
      const pieces = parts(sourceSeq);
      if (pieces.length === 0) return null;
      const bytes = Buffer.alloc(pieces.reduce((sum, piece) => sum + piece.length, 0));
      let at = 0;
      for (const piece of pieces) at += piece.copy(bytes, at);
      return bytes.buffer;
    },
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<StoredInbound, 'seq'>]>(`INSERT INTO ${sql.row('inbound_mails')}`),
    get: sql.get<[accountId: string, inboundId: string], StoredInbound & { size: number }>(
      `SELECT ${COLUMNS}, m.content ${FROM} WHERE m.account_id = ? AND m.inbound_id = ?`,
    ),
    byId: sql.get<[inboundId: string], ListedInbound>(`SELECT ${COLUMNS} ${FROM} WHERE m.inbound_id = ?`),
    /** Newest first. */
    list: (filter: InboundFilter): Page<ListedInbound> => {
      const { answers, from, routeId, beforeSeq, limit } = filter;
      const read =
        answers !== null
          ? pages.answers
          : from !== null
            ? pages.from
            : routeId !== null
              ? pages.route
              : pages.all;
      const rows = read({ ...filter, beforeSeq: beforeSeq ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 });
      return pageOf(rows, limit);
    },
    /** The next account, in the order of ids, with mail that waits for the parser. */
    nextUnparsed: sql.value<[afterAccountId: string], string>(`
      SELECT account_id FROM inbound_mails INDEXED BY inbound_mails_unparsed
      WHERE status = 'received' AND account_id > ? ORDER BY account_id LIMIT 1`),
    /** The oldest mail of an account, after the one with the number, that waits for the parser. */
    firstUnparsed: sql.get<[accountId: string, afterSeq: number], ListedInbound>(`
      SELECT ${COLUMNS} FROM inbound_mails m INDEXED BY inbound_mails_unparsed JOIN inbound_sources s ON s.seq = m.source_seq
      WHERE m.status = 'received' AND m.account_id = ? AND m.seq > ? ORDER BY m.seq LIMIT 1`),
    /** How many mails of an account wait for the parser, counted up to the limit. */
    countUnparsed: sql.count<[accountId: string, limit: number]>(`
      SELECT count(*) FROM (
        SELECT 1 FROM inbound_mails INDEXED BY inbound_mails_unparsed WHERE status = 'received' AND account_id = ? LIMIT +?)`),
    /** False: the mail was deleted, or parsed before. */
    setParsed: sql.changed<[row: ParsedRow & Pick<InboundRow, 'seq'>]>(`
      UPDATE inbound_mails SET status = 'parsed', from_address = @from_address, subject = @subject, answers = @answers,
        automatic = @automatic, is_loop = @is_loop, attachments = @attachments, parse_error = @parse_error,
        authentication = @authentication, content = @content
      WHERE seq = @seq AND status = 'received'`),
    remove: sql.run<[seq: number]>('DELETE FROM inbound_mails WHERE seq = ?'),
    /** Mail from an address, by the field From or by the envelope, at most `limit`. */
    fromAddress: (accountId: string, address: string, limit: number): PersonalMail[] => {
      const byField = ofAddress(accountId, address, limit);
      return byField.length > 0 ? byField : ofSender(accountId, address, limit);
    },
  };
}
