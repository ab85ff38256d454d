import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isRefusal, refuse } from '../../src/core/refusal.ts';
import { startStore } from '../support/store.ts';

/** Commit frames in the write-ahead log: those that name a database size (https://sqlite.org/fileformat2.html §4.1). */
function commitsInWal(dir: string): number {
  const wal = readFileSync(join(dir, 'postrider.db-wal'));
  const frame = 24 + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frame <= wal.length; at += frame) if (wal.readUInt32BE(at + 4) > 0) commits++;
  return commits;
}

describe('the group-commit writer', () => {
  it('puts units that arrive together into one commit', async () => {
    const { dir, writer } = startStore();
    const before = commitsInWal(dir);
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        writer.run((tables) => {
          tables.settings.put(`name ${n}`, String(n));
          return n;
        }),
      ),
    );
    expect(results).toEqual(Array.from({ length: 50 }, (_, n) => n));
    expect(commitsInWal(dir) - before).toBe(1);
  });

  it('rolls a unit that throws back alone', async () => {
    const { tables, writer } = startStore();
    const results = await Promise.allSettled([
      writer.run((all) => all.settings.put('one', '1')),
      writer.run((all) => {
        all.settings.put('two', '2');
        throw new Error('no');
      }),
      writer.run((all) => all.settings.put('three', '3')),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(['one', 'two', 'three'].map((name) => tables.settings.get(name))).toEqual(['1', null, '3']);
  });

  it('rolls a unit that refuses back, and hands the refusal over', async () => {
    const { tables, writer } = startStore();
    const result = await writer.run((all) => {
      all.settings.put('one', '1');
      return refuse('NOT_FOUND', 'no');
    });
    expect(isRefusal(result)).toBe(true);
    expect(tables.settings.get('one')).toBeNull();
  });

  it('settles only after the commit: nothing that was answered is missing from the file', async () => {
    const { db, writer } = startStore();
    await writer.run((all) => {
      all.settings.put('one', '1');
      expect(db.inTransaction).toBe(true);
    });
    expect(db.inTransaction).toBe(false);
  });

  it('serves more units than one group holds, in order', async () => {
    const { writer } = startStore();
    const order: number[] = [];
    await Promise.all(Array.from({ length: 1000 }, (_, n) => writer.run(() => void order.push(n))));
    expect(order).toEqual(Array.from({ length: 1000 }, (_, n) => n));
  });

  it('fails the whole group when the commit fails, and goes on after', async () => {
    const { db, tables, writer } = startStore();
    db.exec('CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT');
    db.exec('CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED) STRICT');
    const results = await Promise.allSettled([
      writer.run((all) => all.settings.put('one', '1')),
      writer.run(() => void db.exec('INSERT INTO child VALUES (7)')),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(tables.settings.get('one')).toBeNull();
    await writer.run((all) => all.settings.put('two', '2'));
    expect(tables.settings.get('two')).toBe('2');
  });

  it('commits what waits when it closes, and takes nothing after', async () => {
    const { tables, writer } = startStore();
    const last = writer.run((all) => all.settings.put('one', '1'));
    await writer.close();
    await last;
    expect(tables.settings.get('one')).toBe('1');
    await expect(writer.run((all) => all.settings.get('one'))).rejects.toThrow(/closing/);
  });
});
