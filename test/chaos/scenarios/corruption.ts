import { closeSync, openSync, readFileSync, readSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { verifiedDomain } from '../../support/verified-domain.ts';
import { pause } from '../context.ts';
import { type Environment, startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/** Bits of the database file flip. Mail that needs the damaged data may fail; other mail must be delivered. */
const BROKEN_MS = 12_000;
/** Mail that does not need the damaged data is delivered sooner. */
const DELIVERY_TIMEOUT_MS = 4000;
const VICTIM = 'victim.example';

const databaseFile = (env: Environment) => join(env.daemon.dataDir, 'postrider.db');

/** Flips one bit of the private key that signs a domain's mail; a second call restores it. */
function flipKey(env: Environment, domain: string): void {
  const db = new Database(databaseFile(env));
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

/** Flips one bit in the header of a table's root page; a second call restores it. */
function flipTable(env: Environment, table: string): void {
  const db = new Database(databaseFile(env), { readonly: true });
  const page = db
    .prepare<[string], { rootpage: number }>('SELECT rootpage FROM sqlite_schema WHERE name = ?')
    .get(table);
  const size = Number(db.pragma('page_size', { simple: true }));
  db.close();
  if (page === undefined) throw new Error(`there is no table ${table}`);
  const file = openSync(databaseFile(env), 'r+');
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

/** Damages the write-ahead log after the last commit, as a power failure does. */
function tearWal(env: Environment, tear: Tear): void {
  const file = `${databaseFile(env)}-wal`;
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
    summary: "one bit of a domain's DKIM key flips; another domain's mail must be delivered",
    limitSeconds: 150,
    run: async (context) => {
      const env = await startEnvironment(context);
      await verifiedDomain(env.daemon, env.dns, VICTIM);
      const healthy = env.traffic({ perSecond: 40 });
      // To the same destinations: its failures use slots that the other domain needs.
      const victim = env.traffic({ perSecond: 20, recipients: 'victim', from: `a@${VICTIM}` });
      await env.baseline(healthy);
      env.sink.program({ script: { rcpt: '451 4.3.0 try again later' } });
      await pause(1000, context.signal);
      await env.daemon.terminate();
      env.sink.program({ script: {} });
      flipKey(env, VICTIM);
      env.daemon.launch();
      const before = env.sink.count;
      await pause(context.lasting(BROKEN_MS), context.signal);
      const left = env.ledger.waiting(DELIVERY_TIMEOUT_MS, (recipient) => !recipient.startsWith('victim'));
      env.note(`the other domain: ${env.sink.count - before} delivered while the key is damaged`);
      if (left > 0 || env.sink.count === before)
        env.fault(`${left} messages of the other domain wait while the key is damaged`);
      await env.daemon.terminate();
      flipKey(env, VICTIM);
      env.heal();
      await env.daemon.start();
      // The domain stays parked for a minute.
      return env.result([healthy, victim], {
        withinSeconds: 80,
        mayFail: (recipient) => recipient.startsWith('victim'),
      });
    },
  },
  {
    name: 'bit-flip-events',
    summary: 'one bit of the events table flips: sends must not be answered with 200 until it is repaired',
    run: async (context) => {
      const env = await startEnvironment(context);
      const traffic = env.traffic();
      await env.baseline(traffic);
      await env.daemon.terminate();
      flipTable(env, 'events');
      env.daemon.launch();
      await pause(2000, context.signal);
      const before = env.ledger.accepted.size;
      await pause(BROKEN_MS / 2, context.signal);
      const accepted = env.ledger.accepted.size - before;
      const readyz = await env.daemon.probe('/readyz');
      env.note(`${accepted} sends accepted while outcomes cannot be recorded, /readyz returns ${readyz}`);
      if (accepted > 0)
        env.fault(`${accepted} sends were answered with 200 although outcomes cannot be recorded`);
      if (readyz !== 503) env.fault(`/readyz must return 503, not ${readyz}`);
      await env.daemon.terminate();
      flipTable(env, 'events');
      env.heal();
      await env.daemon.start();
      return env.result(traffic);
    },
  },
  {
    name: 'torn-wal',
    summary: 'kill -9, then the unflushed end of the write-ahead log is cut off, garbage, or a forged frame',
    run: async (context) => {
      const env = await startEnvironment(context);
      const traffic = env.traffic({ perSecond: 150 });
      await env.baseline(traffic);
      for (const tear of ['cut', 'garbage', 'forged frame'] as const) {
        await pause(700, context.signal);
        await env.kill();
        tearWal(env, tear);
        env.heal();
        await env.daemon.start();
      }
      return env.result(traffic);
    },
  },
];
