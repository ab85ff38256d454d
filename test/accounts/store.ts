import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createIds } from '../../src/core/ids.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createTables } from '../../src/store/tables.ts';
import { openNewDatabase } from '../support/store.ts';

/** A real database in a temporary directory, and a clock that the test controls. */
export function openStore() {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-accounts-'));
  const clock = { time: Date.parse('2026-01-31T12:00:00Z'), now: () => clock.time };
  const db = openNewDatabase(dir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  return {
    tables,
    writer,
    clock,
    ids: createIds(clock, systemRandom),
    close: async () => {
      await writer.close();
      db.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Returns a value that is not a refusal. */
export function granted<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(`refused: ${value.code} ${value.message}`);
  return value;
}

/** The code of a refusal, null when it was none. */
export function codeOf(value: unknown): string | null {
  return isRefusal(value) ? value.code : null;
}
