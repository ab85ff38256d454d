import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';

/** How far the dead daemon's messages had come by its own account. Looks at a copy. */
export function onDisk(dataDir: string): { delivered: number; sending: number } {
  const copy = mkdtempSync(join(tmpdir(), 'postrider-copy-'));
  try {
    cpSync(dataDir, copy, { recursive: true });
    const db = new Database(join(copy, 'postrider.db'));
    const rows = db
      .prepare<[], { status: string; n: number }>(
        'SELECT status, count(*) AS n FROM messages GROUP BY status',
      )
      .all();
    db.close();
    const count = (status: string) => rows.find((row) => row.status === status)?.n ?? 0;
    return { delivered: count('delivered'), sending: count('sending') };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
