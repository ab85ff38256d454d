import type { DataPolicy } from './data-policy.ts';
import { type Database, preparedByText } from './database/database.ts';
import { statements } from './database/statements.ts';
import { type Page, type PageFilter, pageOf } from './rows/page.ts';

/* Recipients that an account may not send to, and the strikes that lead to a suppression. */

export const SUPPRESSION_STREAMS = ['all', 'tx', 'mk'] as const;
export type SuppressionStream = (typeof SUPPRESSION_STREAMS)[number];

export const SUPPRESSION_REASONS = [
  'hard_bounce',
  'soft_bounces',
  'complaint',
  'unsubscribe',
  'manual',
] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

export interface SuppressionRow {
  /** The page key. */
  seq: number;
  account_id: string;
  recipient_hash: string;
  stream: SuppressionStream;
  reason: SuppressionReason;
  /** Null after the person was erased. */
  email: string | null;
  message_seq: number | null;
  created_at: number;
}

export type NewSuppression = Omit<SuppressionRow, 'seq'>;

export interface SuppressionFilter extends PageFilter {
  recipientHash?: string;
  stream?: SuppressionStream;
  reason?: SuppressionReason;
}

/** soft: a soft bounce. unproven: a hard bounce that suppresses only when it is repeated on another day. */
export type StrikeKind = 'soft' | 'unproven';

export const SUPPRESSION_POLICY = {
  table: 'suppressions',
  // `recipient_hash` stays: the suppression applies to the identifier.
  personal: ['recipient_hash', 'email'],
  erasure: ['suppressions'],
  retention: { until: 'the account removes the suppression' },
} as const satisfies DataPolicy;

export const STRIKE_POLICY = {
  table: 'strikes',
  personal: ['recipient_hash'],
  erasure: { stays: 'they count for the identifier' },
  retention: {
    kind: 'strikes',
    rows: 'timed',
    period: 'events',
    key: 'account_id, recipient_hash, kind, at',
    time: 'at',
  },
} as const satisfies DataPolicy;

/**
 * `suppressions`, one for each recipient, stream and reason of an account, and `strikes`. Never cached: a suppression
 * has an immediate effect.
 */
export function suppressionTable(db: Database) {
  const sql = statements(db);
  const add = sql.changed<[NewSuppression]>(`
    INSERT INTO ${sql.row('suppressions')}
    ON CONFLICT DO NOTHING`);
  const strikes = sql.all<[string, string, StrikeKind, number], { at: number }>(
    'SELECT at FROM strikes WHERE account_id = ? AND recipient_hash = ? AND kind = ? AND at >= ? ORDER BY at',
  );
  const listed = preparedByText<Omit<SuppressionFilter, 'beforeSeq'> & { beforeSeq: number }, SuppressionRow>(
    db,
  );
  return {
    /** Returns false when the recipient has this suppression already, which does not change. */
    add: (row: NewSuppression): boolean => {
      // A message of an erased person has the identifier instead of the address.
      const email = row.email === row.recipient_hash ? null : row.email;
      return add({ ...row, email });
    },
    /** Oldest first. */
    of: sql.all<[accountId: string, recipientHash: string], SuppressionRow>(
      'SELECT * FROM suppressions WHERE account_id = ? AND recipient_hash = ? ORDER BY +seq',
    ),
    /** Newest first. */
    list: (filter: SuppressionFilter): Page<SuppressionRow> => {
      const before = filter.beforeSeq ?? Number.MAX_SAFE_INTEGER;
      const parameters = { ...filter, beforeSeq: before, limit: filter.limit + 1 };
      const rows = rangesOf(filter).flatMap((range) =>
        listed(`
          SELECT * FROM suppressions ${range.index} WHERE ${range.where} AND ${range.order} < @beforeSeq
          ORDER BY ${range.order} DESC LIMIT +@limit`).all({ ...parameters, ...range.values }),
      );
      return pageOf(
        rows.toSorted((one, two) => two.seq - one.seq),
        filter.limit,
      );
    },
    remove: sql.run<[seq: number]>('DELETE FROM suppressions WHERE seq = ?'),
    addStrike: sql.run<[accountId: string, recipientHash: string, kind: StrikeKind, at: number]>(
      'INSERT INTO strikes (account_id, recipient_hash, kind, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    /** Times of the strikes at or after `since`, oldest first. */
    strikesSince: (accountId: string, recipientHash: string, kind: StrikeKind, since: number): number[] =>
      strikes(accountId, recipientHash, kind, since).map((row) => row.at),
    clearStrikes: sql.run<[accountId: string, recipientHash: string]>(
      'DELETE FROM strikes WHERE account_id = ? AND recipient_hash = ?',
    ),
  };
}

/** A part of an index in which the rows of a page are in order. */
interface IndexRange {
  index: string;
  where: string;
  order: 'seq' | '+seq';
  values: Pick<SuppressionFilter, 'stream' | 'reason'>;
}

/** One index answers stream and reason. For a filter with only one of them, it is read once for each value of the other. */
function rangesOf({ recipientHash, stream, reason }: SuppressionFilter): IndexRange[] {
  if (recipientHash !== undefined) {
    const where = ['account_id = @accountId', 'recipient_hash = @recipientHash'];
    if (stream !== undefined) where.push('+stream = @stream');
    if (reason !== undefined) where.push('+reason = @reason');
    // A recipient has at most one suppression for each stream and reason: all are read and sorted.
    return [{ index: '', where: where.join(' AND '), order: '+seq', values: {} }];
  }
  if (stream === undefined && reason === undefined) {
    const index = 'INDEXED BY suppressions_by_account';
    return [{ index, where: 'account_id = @accountId', order: 'seq', values: {} }];
  }
  const streams = stream === undefined ? SUPPRESSION_STREAMS : [stream];
  const reasons = reason === undefined ? SUPPRESSION_REASONS : [reason];
  return streams.flatMap((one) =>
    reasons.map(
      (other): IndexRange => ({
        index: 'INDEXED BY suppressions_by_stream_and_reason',
        where: 'account_id = @accountId AND stream = @stream AND reason = @reason',
        order: 'seq',
        values: { stream: one, reason: other },
      }),
    ),
  );
}

/** A suppression that the account removed. */
export interface SuppressionRemovalRow {
  seq: number;
  account_id: string;
  recipient_hash: string;
  stream: SuppressionStream;
  reason: SuppressionReason;
  suppressed_at: number;
  /** Why; null: none was given, or the person was erased. */
  note: string | null;
  /** The API key, the person of the console, or `command line`. */
  removed_by: string;
  removed_at: number;
}

export const SUPPRESSION_REMOVAL_POLICY = {
  table: 'suppression_removals',
  // `recipient_hash` stays, as in suppressions.
  personal: ['recipient_hash', 'note'],
  erasure: ['suppressions'],
  retention: {
    kind: 'suppressionRemovals',
    rows: 'aged',
    period: 'events',
    number: 'seq',
    time: 'removed_at',
  },
} as const satisfies DataPolicy;

/** Removals of an address that are listed, the newest. */
export const MAX_LISTED_REMOVALS = 50;

/**
 * `suppression_removals`, append-only; erasure clears the notes. Read by the index `suppression_removals_of_recipient`.
 */
export function suppressionRemovalTable(db: Database) {
  const sql = statements(db);
  const insert = sql.run<[Omit<SuppressionRemovalRow, 'seq'>]>(
    `INSERT INTO ${sql.row('suppression_removals')}`,
  );
  return {
    /** Records the removal of a suppression. `at`: epoch ms. */
    record: (
      { account_id, recipient_hash, stream, reason, created_at: suppressed_at }: SuppressionRow,
      { note, by: removed_by, at: removed_at }: { note: string | null; by: string; at: number },
    ): void =>
      insert({ account_id, recipient_hash, stream, reason, suppressed_at, note, removed_by, removed_at }),
    /** Newest first, at most MAX_LISTED_REMOVALS. */
    of: sql.all<[accountId: string, recipientHash: string], SuppressionRemovalRow>(`
      SELECT * FROM suppression_removals WHERE account_id = ? AND recipient_hash = ?
      ORDER BY seq DESC LIMIT ${MAX_LISTED_REMOVALS}`),
  };
}
