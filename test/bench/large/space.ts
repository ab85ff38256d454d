import { statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { DATABASE_FILE } from '../../../src/store/database.ts';

/** Bytes in the database by what they are for. */
export interface Space {
  file: number;
  messages: number;
  /** Per message, with attempts, events and all indexes, without contents. */
  perMessage: number;
  /** Bytes of contents per content. */
  perContent: number;
  /** By table or index, per message, largest first. */
  parts: { name: string; bytes: number }[];
}

/** Tables with a row, or several, per message. Their indexes count as well. */
const PER_MESSAGE = ['messages', 'attempts', 'events'];
const SHOWN = 12;

/** Reads the whole file. Nothing else may have it open. */
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
        .slice(0, SHOWN)
        .map(({ name, bytes }) => ({ name, bytes: bytes / Math.max(1, messages) })),
    };
  } finally {
    db.close();
  }
}
