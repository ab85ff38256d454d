import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { MessageStatus } from '../../src/store/messages/messages.ts';
import { STATUS_CODES } from '../../src/store/rows/row-keys.ts';

/** Delivered and sending messages in the database of a daemon that was killed. Reads a copy. */
export function onDisk(dataDir: string): { delivered: number; sending: number } {
  const copy = mkdtempSync(join(tmpdir(), 'postrider-copy-'));
  try {
    for (const file of ['postrider.db', 'postrider.db-wal']) cpSync(join(dataDir, file), join(copy, file));
    const db = new Database(join(copy, 'postrider.db'));
    const rows = db
      .prepare<[], { status: number; n: number }>(
        'SELECT status_code AS status, count(*) AS n FROM messages GROUP BY status_code',
      )
      .all();
    db.close();
    const count = (status: MessageStatus) =>
      rows.find((row) => row.status === STATUS_CODES.code(status))?.n ?? 0;
    return { delivered: count('delivered'), sending: count('sending') };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
