import { statSync } from 'node:fs';
import { recordOf } from '../../core/record-of.ts';
import { iterateRows, readNumber } from '../database/connection.ts';
import { type Database, openForReading } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { idNumbers } from '../rows/id-numbers.ts';
import { seqFinder } from '../rows/page.ts';
import type { ChangeKind, MoveMarks } from './account-moves.ts';
import {
  columnsOf,
  TRANSFER_TYPES,
  type TransferChild,
  type TransferRecord,
  type TransferType,
  type TransferValue,
  transferKind,
} from './kinds.ts';
import { MOVED_COLUMNS, type MovedMessage, movedMessages, type StoredMoved } from './moved-messages.ts';

export interface ExportScope {
  accountId: string;
  /** Epoch ms. */
  now: number;
  /** Messages accepted earlier are omitted: no report about them is expected. Epoch ms. */
  messagesSince: number;
  /** Where the first file of a move ended: only what is new and changed since then; null: everything. */
  after: MoveMarks | null;
  /** Only suppressions and opt-outs from groups that were created at this time or later, epoch ms; null: everything. */
  lateSince: number | null;
}

const LATE_TYPES: ReadonlySet<TransferType> = new Set(['suppression', 'group_opt_out']);

type Columns = Record<string, TransferValue>;
/** A row with the keys that its children refer to. */
type Parent = Columns & { seq: number; number: number };
type Scope = { accountId: string; now: number; lastContent: number | null; lateSince: number | null };

/**
 * The rows of one account, in one state of the database, on a separate connection.
 *
 * Opens a connection for reading and begins its transaction, which ends with `close`. Throws when the database cannot
 * be opened or read; the connection is closed then.
 */
export function openExportedAccount(file: string, scope: ExportScope) {
  const db = openForReading(file);
  try {
    db.exec('BEGIN');
    // The first read begins the transaction.
    const schema = readNumber(db, 'PRAGMA user_version');
    const moved = movedRecords(db, scope);
    const rows = {
      accountId: scope.accountId,
      now: scope.now,
      lastContent: scope.after?.last_content ?? null,
      lateSince: scope.lateSince,
    };
    const logBytes = () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    const before = logBytes();
    return {
      /** `PRAGMA user_version`. */
      schema,
      counts: (): Record<TransferType, number> => {
        const entries = TRANSFER_TYPES.map((type) => [
          type,
          type === 'moved_message' ? moved.count() : count(db, type, rows),
        ]);
        return Object.fromEntries(entries) as Record<TransferType, number>; // the keys are TRANSFER_TYPES
      },
      /** Reads row by row. Only one iteration at a time. */
      records: (type: TransferType): IterableIterator<TransferRecord> =>
        type === 'moved_message' ? moved.records() : records(db, type, rows),
      /** The last messages and contents that these records include. */
      marks: (): MoveMarks => marks(db, scope.accountId),
      /** The keys that changed since the first file of the move. */
      changes: (kind: ChangeKind): IterableIterator<string> =>
        iterateRows(
          db
            .prepare<[string, ChangeKind], string>(
              'SELECT key FROM account_changes WHERE account_id = ? AND kind = ? ORDER BY key',
            )
            .pluck(),
          scope.accountId,
          kind,
        ),
      /** Growth of the write-ahead log since the beginning, in bytes: it cannot restart until `close`. */
      logGrowth: (): number => Math.max(0, logBytes() - before),
      close: (): void => {
        db.close();
      },
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

export type ExportedAccount = ReturnType<typeof openExportedAccount>;

function marks(db: Database, accountId: string): MoveMarks {
  const value = (sql: string, ...parameters: string[]) =>
    db
      .prepare<string[], number>(sql)
      .pluck()
      .get(...parameters) ?? 0;
  return {
    last_message: value('SELECT seq FROM messages ORDER BY seq DESC LIMIT 1'),
    // A content that is being stored is not in the records.
    last_content: value(
      `SELECT coalesce(
         (SELECT min(seq) - 1 FROM media_contents WHERE state = 'storing' AND account_id = ?),
         (SELECT max(seq) FROM media_contents))`,
      accountId,
    ),
  };
}

function whereOf(type: TransferType, { lastContent, lateSince }: Scope): string {
  const { where, changed = where } = transferKind(type);
  if (lateSince !== null) return LATE_TYPES.has(type) ? `${where} AND t.created_at >= @lateSince` : '0';
  return lastContent === null ? where : changed;
}

function count(db: Database, type: TransferType, scope: Scope): number {
  const { table } = transferKind(type);
  const statement = statements(db).count<[Scope]>(
    `SELECT count(*) FROM ${table} t WHERE ${whereOf(type, scope)}`,
  );
  return statement(scope);
}

function* records(db: Database, type: TransferType, scope: Scope): Generator<TransferRecord> {
  const kind = transferKind(type);
  const { table, read, order, children = {} } = kind;
  const columns = columnsOf(db, kind);
  const rows = db.prepare<Scope, Parent>(
    `SELECT t.*${translated(columns, read)} FROM ${table} t WHERE ${whereOf(type, scope)} ORDER BY ${order}`,
  );
  const childRows = Object.entries(children).map(([field, child]) => ({
    field,
    rows: childReader(db, child, scope.now),
    parent: child.link.parent,
  }));
  for (const row of iterateRows(rows, scope)) {
    const record: TransferRecord = pick(row, columns, read);
    for (const { field, rows: of, parent } of childRows) record[field] = of(row[parent] ?? null);
    yield record;
  }
}

/** Selects the columns in `read`, under names that the table does not have. */
function translated(columns: readonly string[], read: Readonly<Record<string, string>> = {}): string {
  return columns
    .filter((column) => read[column] !== undefined)
    .map((column) => `, ${read[column]} AS ${column}_read`)
    .join('');
}

function pick(
  row: Columns,
  columns: readonly string[],
  read: Readonly<Record<string, string>> = {},
): Columns {
  return recordOf(columns, (column) => row[read[column] === undefined ? column : `${column}_read`] ?? null);
}

/** Rows of the table that belong to a parent. */
function childReader(db: Database, child: TransferChild, now: number): (parent: TransferValue) => Columns[] {
  const sql = statements(db);
  const { table, read, link, where = '@now = @now', order } = child;
  const columns = columnsOf(db, child);
  const statement = sql.all<[{ parent: TransferValue; now: number }], Columns>(`
    SELECT t.*${translated(columns, read)} FROM ${table} t
    WHERE t.${link.column} = @parent AND ${where} ORDER BY ${order}`);
  return (parent) => statement({ parent, now }).map((row) => pick(row, columns, read));
}

/** Messages that this installation sent, and those that the account sent before it came here. */
function movedRecords(db: Database, { accountId, messagesSince, after, lateSince }: ExportScope) {
  const numbers = idNumbers(db);
  const account = numbers.account.find(accountId);
  const since =
    (lateSince === null ? after?.last_message : Number.MAX_SAFE_INTEGER) ??
    Math.max(0, seqFinder(db, { table: 'messages', time: 'created_at' })(messagesSince) - 1);
  // Of those that are not sent only the ones in the queue, which this installation sends later.
  const own = `FROM messages m INDEXED BY messages_by_account WHERE account = ? AND seq > ? AND simulated = 0
    AND (sent_time >= 0 OR EXISTS (SELECT 1 FROM queue q WHERE q.seq = m.seq))`;
  /** Those that the account brought do not change. */
  const broughtSince = after === null && lateSince === null ? messagesSince : Number.MAX_SAFE_INTEGER;
  const brought =
    'FROM moved_messages INDEXED BY moved_messages_by_account WHERE account = ? AND created_at >= ?';
  const select = (from: string, parameter: number) =>
    iterateRows(
      db.prepare<[typeof account, number], StoredMoved>(`SELECT ${MOVED_COLUMNS} ${from}`),
      account,
      parameter,
    );
  const counted = (from: string, parameter: number) =>
    db.prepare<[typeof account, number], number>(`SELECT count(*) ${from}`).pluck().get(account, parameter) ??
    0;
  const toRow = movedMessages(db);
  const toRecord = (row: StoredMoved): TransferRecord => {
    const { account_id: _, ...record }: MovedMessage = toRow(row);
    return record;
  };
  return {
    count: () => counted(own, since) + counted(brought, broughtSince),
    records: function* (): Generator<TransferRecord> {
      for (const row of select(own, since)) yield toRecord(row);
      for (const row of select(brought, broughtSince)) yield toRecord(row);
    },
  };
}
