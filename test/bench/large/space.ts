import { statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { DATABASE_FILE } from '../../../src/store/database/database.ts';

/** The size of the database in bytes, by use. */
export interface Space {
  file: number;
  messages: number;
  /** Bytes per message, with attempts, events and all indexes, without contents. */
  perMessage: number;
  /** Bytes of contents per content. */
  perContent: number;
  /** Bytes per message by table or index, largest first. */
  parts: { name: string; bytes: number }[];
}

/** Tables with one or more rows per message; their indexes count, too. */
const PER_MESSAGE = ['messages', 'attempts', 'events'];
const PRINTED_PARTS = 12;

/** Reads the whole file, which no other process may have open. */
export function measureSpace(dataDir: string): Space {
  const file = join(dataDir, DATABASE_FILE);
  const db = new Sqlite(file);
  try {
    const count = (table: string) =>
      db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
    const messages = count('messages');
    const contents = count('contents');
    const used = db
      .prepare<[], { name: string; tbl_name: string; bytes: number }>(`
        SELECT d.name, s.tbl_name, sum(d.pgsize) AS bytes FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
        WHERE d.aggregate = 1 GROUP BY d.name ORDER BY bytes DESC`)
      .all();
    const ofMessages = used.filter(({ tbl_name }) => PER_MESSAGE.includes(tbl_name));
    const total = (rows: { bytes: number }[]) => rows.reduce((sum, { bytes }) => sum + bytes, 0);
    return {
      file: statSync(file).size,
      messages,
      perMessage: total(ofMessages) / Math.max(1, messages),
      perContent: total(used.filter(({ name }) => name === 'contents')) / Math.max(1, contents),
      parts: ofMessages
        .slice(0, PRINTED_PARTS)
        .map(({ name, bytes }) => ({ name, bytes: bytes / Math.max(1, messages) })),
    };
  } finally {
    db.close();
  }
}
