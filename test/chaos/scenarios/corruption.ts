import { closeSync, openSync, readFileSync, readSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { verifiedDomain } from '../../support/verified-domain.ts';
import type { Scenario } from '../scenario.ts';
import { pause } from '../stage.ts';
import { startWorld, type World } from '../world.ts';

/** Bits that change while nobody looks. What they touch may fail; everything else goes on. */
const BROKEN_MS = 12_000;
/** Mail that nothing is wrong with is delivered sooner. */
const PATIENCE_MS = 4000;
const VICTIM = 'victim.example';

const databaseFile = (world: World) => join(world.daemon.dataDir, 'postrider.db');

/** Changes one bit of the private key that signs a domain's mail; again, and it is as before. */
function flipKey(world: World, domain: string): void {
  const db = new Database(databaseFile(world));
  const row = db
    .prepare<[string], { key_id: number; private_key: Buffer }>(
      `SELECT key_id, private_key FROM dkim_keys JOIN domains USING (domain_id)
       WHERE name = ? AND lane = 'primary' AND dkim_keys.state = 'active'`,
    )
    .get(domain);
  if (row === undefined) throw new Error(`${domain} has no key`);
  const flipped = Buffer.from(row.private_key);
  flipped.writeUInt8(flipped.readUInt8(flipped.length >> 1) ^ 1, flipped.length >> 1);
  db.prepare('UPDATE dkim_keys SET private_key = ? WHERE key_id = ?').run(flipped, row.key_id);
  db.close();
}

/** Changes one bit in the header of a table's root page; again, and it is as before. */
function flipTable(world: World, table: string): void {
  const db = new Database(databaseFile(world), { readonly: true });
  const page = db
    .prepare<[string], { rootpage: number }>('SELECT rootpage FROM sqlite_schema WHERE name = ?')
    .get(table);
  const size = Number(db.pragma('page_size', { simple: true }));
  db.close();
  if (page === undefined) throw new Error(`there is no table ${table}`);
  const file = openSync(databaseFile(world), 'r+');
  const at = (page.rootpage - 1) * size;
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, at);
  byte.writeUInt8(byte.readUInt8(0) ^ 0x40);
  writeSync(file, byte, 0, 1, at);
  closeSync(file);
}

/** https://sqlite.org/fileformat.html#walformat */
const WAL_HEADER = 32;
const FRAME_HEADER = 24;

type Tear = 'cut' | 'garbage' | 'forged frame';

/** Damages what follows the last commit in the write-ahead log, as a power cut leaves it. */
function tearWal(world: World, tear: Tear): void {
  const file = `${databaseFile(world)}-wal`;
  const wal = readFileSync(file);
  if (wal.length < WAL_HEADER) return;
  const frame = FRAME_HEADER + wal.readUInt32BE(8);
  const salts = wal.subarray(16, 24);
  let end = WAL_HEADER;
  for (let at = WAL_HEADER; at + frame <= wal.length; at += frame) {
    if (!wal.subarray(at + 8, at + 16).equals(salts)) break;
    // The size of the database in pages marks a commit.
    if (wal.readUInt32BE(at + 4) > 0) end = at + frame;
  }
  const tail = Buffer.alloc(frame, 0xa5);
  if (tear === 'forged frame') {
    tail.writeUInt32BE(3, 0);
    tail.writeUInt32BE(9, 4);
    salts.copy(tail, 8);
  }
  truncateSync(file, end);
  const fd = openSync(file, 'r+');
  writeSync(fd, tail, 0, tear === 'cut' ? frame >> 1 : frame, end);
  closeSync(fd);
}

export const CORRUPTION: Scenario[] = [
  {
    name: 'bit-flip-dkim-key',
    summary: "one bit of one domain's DKIM key flips; another domain's mail must go on",
    limitSeconds: 150,
    run: async (stage) => {
      const world = await startWorld(stage);
      await verifiedDomain(world.daemon, world.dns, VICTIM);
      const healthy = world.traffic({ perSecond: 40 });
      // To the same destinations: its failures hold slots that the other domain needs.
      const victim = world.traffic({ perSecond: 20, recipients: 'victim', from: `a@${VICTIM}` });
      await world.baseline(healthy);
      world.sink.program({ script: { rcpt: '451 4.3.0 try again later' } });
      await pause(1000, stage.signal);
      await world.daemon.terminate();
      world.sink.program({ script: {} });
      flipKey(world, VICTIM);
      world.daemon.launch();
      const before = world.sink.count;
      await pause(stage.lasting(BROKEN_MS), stage.signal);
      const left = world.ledger.waiting(PATIENCE_MS, (recipient) => !recipient.startsWith('victim'));
      world.note(`the other domain: ${world.sink.count - before} delivered while the key is broken`);
      if (left > 0 || world.sink.count === before)
        world.fault(`${left} messages of the other domain wait while the key is broken`);
      await world.daemon.terminate();
      flipKey(world, VICTIM);
      world.heal();
      await world.daemon.start();
      // The domain stays parked for a minute.
      return world.result([healthy, victim], {
        withinSeconds: 80,
        mayFail: (recipient) => recipient.startsWith('victim'),
      });
    },
  },
  {
    name: 'bit-flip-events',
    summary: 'one bit of the events table flips: sends must not be answered with 200 until it is repaired',
    run: async (stage) => {
      const world = await startWorld(stage);
      const traffic = world.traffic();
      await world.baseline(traffic);
      await world.daemon.terminate();
      flipTable(world, 'events');
      world.daemon.launch();
      await pause(2000, stage.signal);
      const before = world.ledger.accepted.size;
      await pause(BROKEN_MS / 2, stage.signal);
      const accepted = world.ledger.accepted.size - before;
      const readyz = await world.daemon.probe('/readyz');
      world.note(`${accepted} sends accepted while outcomes cannot be recorded, /readyz answers ${readyz}`);
      if (accepted > 0)
        world.fault(`${accepted} sends were answered with 200 although outcomes cannot be recorded`);
      if (readyz !== 503) world.fault(`/readyz must answer 503, not ${readyz}`);
      await world.daemon.terminate();
      flipTable(world, 'events');
      world.heal();
      await world.daemon.start();
      return world.result(traffic);
    },
  },
  {
    name: 'torn-wal',
    summary: 'kill -9, then the unflushed end of the write-ahead log is cut off, garbage, or a forged frame',
    run: async (stage) => {
      const world = await startWorld(stage);
      const traffic = world.traffic({ perSecond: 150 });
      await world.baseline(traffic);
      for (const tear of ['cut', 'garbage', 'forged frame'] as const) {
        await pause(700, stage.signal);
        await world.kill();
        tearWal(world, tear);
        world.heal();
        await world.daemon.start();
      }
      return world.result(traffic);
    },
  },
];
