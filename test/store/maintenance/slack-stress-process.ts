import Sqlite from 'better-sqlite3';

/**
 * Writes at random to a database while passes clear its unused space: rows of all sizes, so that pages are split, merged
 * and moved, overflow chains are created and freed, and the file shrinks. Each transaction records its changes in the table
 * `journal`, from which the test computes the expected content.
 */
const [file = '', seed = '', transactions = ''] = process.argv.slice(2);

let state = Number(seed);
function random(below: number): number {
  state = (state * 48_271) % 2_147_483_647;
  return state % below;
}

const db = new Sqlite(file, { timeout: 5000 });
db.exec(
  'PRAGMA cache_size = -16384; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON',
);
const put = db.prepare<[number, string, Buffer]>('INSERT OR REPLACE INTO rows VALUES (?, ?, ?)');
const remove = db.prepare<[number, number]>('DELETE FROM rows WHERE n BETWEEN ? AND ?');
const note = db.prepare<[string, number, number, number]>(
  'INSERT INTO journal (kind, n, size, filling) VALUES (?, ?, ?, ?)',
);
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
const begin = db.prepare('BEGIN IMMEDIATE');
const commit = db.prepare('COMMIT');
const rollback = db.prepare('ROLLBACK');
const SIZES = [1, 3, 40, 900, 5000, 60_000];

for (let done = 0; done < Number(transactions); done++) {
  begin.run();
  const isUndone = random(10) === 0;
  for (let changes = 1 + random(20); changes > 0; changes--) {
    const n = random(3000);
    if (random(3) === 0) {
      const size = random(40);
      remove.run(n, n + size);
      if (!isUndone) note.run('remove', n, size, 0);
      continue;
    }
    const size = random(SIZES[random(SIZES.length)] ?? 1);
    // Bytes that look like the types of b-tree pages.
    const filling = [2, 5, 10, 13, 255][random(5)] ?? 0;
    put.run(n, `${n}-${size}`, Buffer.alloc(size, filling));
    if (!isUndone) note.run('put', n, size, filling);
  }
  if (isUndone) rollback.run();
  else commit.run();
  if (random(8) === 0) db.exec(`PRAGMA incremental_vacuum(${1 + random(30)})`);
  if (random(15) === 0) checkpoint.all();
}
db.close();
