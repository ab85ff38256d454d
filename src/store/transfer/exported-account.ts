import { statSync } from 'node:fs';
import { recordOf } from '../../core/record-of.ts';
import { iterateRows, readNumber } from '../database/connection.ts';
import { type Database, openForReading } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { idNumbers } from '../rows/id-numbers.ts';
import { seqFinder } from '../rows/page.ts';
import {
  columnsOf,
  TRANSFER_KINDS,
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
}

type Columns = Record<string, TransferValue>;
/** A row with the keys that its children refer to. */
type Parent = Columns & { seq: number; number: number };
type Scope = { accountId: string; now: number };

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
    const logBytes = () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    const before = logBytes();
    return {
      /** `PRAGMA user_version`. */
      schema,
      counts: (): Record<TransferType, number> => {
        const entries = TRANSFER_TYPES.map((type) => [
          type,
          type === 'moved_message' ? moved.count() : count(db, type, scope),
        ]);
        return Object.fromEntries(entries) as Record<TransferType, number>; // the keys are TRANSFER_TYPES
      },
      /** Reads row by row. Only one iteration at a time. */
      records: (type: TransferType): IterableIterator<TransferRecord> =>
        type === 'moved_message' ? moved.records() : records(db, type, scope),
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

function count(db: Database, type: TransferType, { accountId, now }: Scope): number {
  const sql = statements(db);
  const { table, where } = TRANSFER_KINDS[type];
  const statement = sql.count<[Scope]>(`SELECT count(*) FROM ${table} t WHERE ${where}`);
  return statement({ accountId, now });
}

function* records(db: Database, type: TransferType, { accountId, now }: Scope): Generator<TransferRecord> {
  const kind = transferKind(type);
  const { table, read, where, order, children = {} } = kind;
  const columns = columnsOf(db, kind);
  const rows = db.prepare<Scope, Parent>(
    `SELECT t.*${translated(columns, read)} FROM ${table} t WHERE ${where} ORDER BY ${order}`,
  );
  const childRows = Object.entries(children).map(([field, child]) => ({
    field,
    rows: childReader(db, child, now),
    parent: child.link.parent,
  }));
  for (const row of iterateRows(rows, { accountId, now })) {
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
function movedRecords(db: Database, { accountId, messagesSince }: ExportScope) {
  const numbers = idNumbers(db);
  const account = numbers.account.find(accountId);
  const since = Math.max(0, seqFinder(db, { table: 'messages', time: 'created_at' })(messagesSince) - 1);
  const own = `FROM messages INDEXED BY messages_by_account WHERE account = ? AND seq > ? AND sent_time >= 0 AND simulated = 0`;
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
    count: () => counted(own, since) + counted(brought, messagesSince),
    records: function* (): Generator<TransferRecord> {
      for (const row of select(own, since)) yield toRecord(row);
      for (const row of select(brought, messagesSince)) yield toRecord(row);
    },
  };
}
