import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isRefusal, refuse } from '../../src/core/refusal.ts';
import { openDatabase } from '../../src/store/database.ts';
import { openWriteAheadLog } from '../../src/store/write-ahead-log.ts';
import { createWriter } from '../../src/store/writer.ts';
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

  it('leaves units that take long to several commits, in order', async () => {
    const { dir, writer } = startStore();
    const before = commitsInWal(dir);
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        writer.run((tables) => {
          order.push(n);
          const { user } = process.cpuUsage();
          while (process.cpuUsage().user - user < 15_000) tables.settings.put(`name ${n}`, String(n));
        }),
      ),
    );
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(commitsInWal(dir) - before).toBe(6);
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

describe('with a log of its own', () => {
  /** A disk that takes as long, and does, what a test says. */
  function start() {
    const { db, tables, dir } = startStore();
    const flushes: { done(): void; fail(error: Error): void }[] = [];
    const lost: unknown[] = [];
    const flush = () =>
      new Promise<void>((resolve, reject) => {
        flushes.push({ done: resolve, fail: reject });
      });
    const log = { flush, close: () => {} };
    const writer = createWriter(db, tables, { log, onLost: (error) => lost.push(error) });
    const said: string[] = [];
    const put = (name: string) =>
      writer
        .run((all) => all.settings.put(name, name))
        .then(
          () => said.push(name),
          (error: Error) => said.push(`${name}: ${error.message}`),
        );
    return { dir, tables, writer, flushes, lost, said, put };
  }
  const turns = async () => {
    for (let n = 0; n < 5; n++) await new Promise(setImmediate);
  };

  it('says that it is stored when the disk has it, not before', async () => {
    const { tables, flushes, said, put } = start();
    const one = put('one');
    await turns();
    expect(tables.settings.get('one')).toBe('one');
    expect(said).toEqual([]);
    flushes[0]?.done();
    await one;
    expect(said).toEqual(['one']);
  });

  it('lets whoever tells others of what it read wait for the disk', async () => {
    const { writer, flushes, said, put } = start();
    await writer.settled();
    const one = put('one');
    await turns();
    const told = writer.settled().then(() => said.push('told'));
    await turns();
    expect(said).toEqual([]);
    flushes[0]?.done();
    await Promise.all([one, told]);
    expect(said.toSorted()).toEqual(['one', 'told']);
    await writer.settled();
  });

  it('gathers the next group while the disk is at work, and commits it whole', async () => {
    const { dir, tables, flushes, said, put } = start();
    const all = [put('one')];
    await turns();
    const before = commitsInWal(dir);
    all.push(put('two'));
    await turns();
    all.push(put('three'));
    await turns();
    expect(tables.settings.get('two')).toBeNull();
    flushes[0]?.done();
    await turns();
    expect(said).toEqual(['one']);
    expect(commitsInWal(dir) - before).toBe(1);
    flushes[1]?.done();
    await Promise.all(all);
    expect(said).toEqual(['one', 'two', 'three']);
  });

  it('tells all who wait when the disk fails, and takes nothing after', async () => {
    const { tables, writer, flushes, lost, said, put } = start();
    const all = [put('one')];
    await turns();
    all.push(put('two'));
    flushes[0]?.fail(new Error('input/output error'));
    await Promise.all(all);
    expect(said).toEqual(['one: input/output error', 'two: input/output error']);
    expect(lost).toEqual([new Error('input/output error')]);
    expect(tables.settings.get('two')).toBeNull();
    await expect(writer.run(() => 1)).rejects.toThrow(/closing/);
  });

  it('waits for the disk when it closes', async () => {
    const { writer, flushes, said, put } = start();
    void put('one');
    const closed = writer.close().then(() => said.push('closed'));
    await turns();
    expect(said).toEqual([]);
    flushes[0]?.done();
    await closed;
    expect(said).toEqual(['one', 'closed']);
  });

  it('flushes a real log, of a new database and of one that was closed', async () => {
    const { dir } = startStore();
    for (const round of ['first', 'second']) {
      const db = openDatabase(dir);
      const log = openWriteAheadLog(db);
      expect(db.prepare('PRAGMA synchronous').pluck().get()).toBe(1);
      await log.flush();
      log.close();
      await expect(log.flush(), round).rejects.toThrow(/EBADF/);
      db.close();
    }
  });
});
