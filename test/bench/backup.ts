import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { ApiClient } from '../support/api-client.ts';
import { startDaemon } from '../support/daemon.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { startSinkProcess } from '../support/sink-process.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { readOptions } from './options.ts';

/*
 * Sends during a backup, compared with sends alone and with sends during VACUUM INTO, alternating:
 *
 *   npm run bench:backup -- --megabytes 512 --rounds 3
 *
 * Backups have their default rate limit.
 */
const { megabytes, rounds } = readOptions({
  command: 'npm run bench:backup',
  summary: 'Sends during a backup, compared with sends alone and with sends during VACUUM INTO, in turns.',
  options: {
    megabytes: { integer: 512, help: 'size of the database' },
    rounds: { integer: 3, help: 'rounds of each' },
  },
});
const SENDERS = 8;
const ALONE_MS = 5000;
const ROW_BYTES = 100_000;

interface Phase {
  name: string;
  seconds: number;
  sent: number;
  p50: number;
  p99: number;
  worst: number;
  /** Growth of the write-ahead log, in MB. */
  logGrowth: number;
}

const dir = await mkdtemp(join(tmpdir(), 'postrider-bench-'));
const dns = await startDnsServer();
const sink = await startSinkProcess();
const daemon = await startDaemon({
  'dns.resolvers': [dns.address],
  'delivery.port': sink.port,
  'delivery.allowPrivateNetworks': true,
  'log.level': 'warn',
});
try {
  publishMailHost(dns, 'empfang.example');
  await verifiedDomain(daemon, dns, 'kunde.example');
  const file = join(daemon.dataDir, 'postrider.db');
  fill(file);
  const phases: Phase[] = [];
  for (let round = 0; round < rounds; round++) {
    phases.push(await phase('alone', file, () => new Promise((resolve) => setTimeout(resolve, ALONE_MS))));
    phases.push(
      await phase('backup create', file, () => daemon.cli('backup', 'create', join(dir, 'backups'))),
    );
    phases.push(await phase('VACUUM INTO', file, () => vacuumInto(file, join(dir, `vacuum-${round}.db`))));
    await rm(dir, { recursive: true, force: true });
  }
  report(phases);
} finally {
  await daemon.stop();
  await sink.stop();
  await dns.close();
  await rm(dir, { recursive: true, force: true });
}

/** Fills the database with random bytes. */
function fill(file: string): void {
  const db = new Database(file, { timeout: 5000 });
  db.exec('CREATE TABLE filler (data BLOB)');
  const insert = db.prepare('INSERT INTO filler VALUES (randomblob(?))');
  for (let n = 0; n < (megabytes * 1e6) / ROW_BYTES; n++) insert.run(ROW_BYTES);
  db.close();
}

/** Sends as fast as possible until `work` is done. */
async function phase(name: string, file: string, work: () => Promise<unknown>): Promise<Phase> {
  const logBytes = () => statSync(`${file}-wal`).size / 1e6;
  const logBefore = logBytes();
  const began = performance.now();
  const over = new AbortController();
  const times: number[] = [];
  const senders = Array.from({ length: SENDERS }, () => sendUntil(daemon.api, over.signal, times));
  await work();
  over.abort();
  const seconds = (performance.now() - began) / 1000;
  await Promise.all(senders);
  times.sort((one, two) => one - two);
  const at = (share: number) => times[Math.floor(share * (times.length - 1))] ?? 0;
  const [p50, p99, worst] = [at(0.5), at(0.99), at(1)];
  return { name, seconds, sent: times.length, p50, p99, worst, logGrowth: logBytes() - logBefore };
}

async function sendUntil(api: ApiClient, over: AbortSignal, times: number[]): Promise<void> {
  while (!over.aborted) {
    const began = performance.now();
    await api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `user${times.length}@empfang.example` });
    times.push(performance.now() - began);
  }
}

async function vacuumInto(file: string, to: string): Promise<void> {
  const code = `new (require('better-sqlite3'))(process.argv[1]).exec("VACUUM INTO '" + process.argv[2] + "'")`;
  await rm(to, { force: true });
  // The directory was removed with the copies of the previous round.
  const child = spawn(
    process.execPath,
    [
      '-e',
      `require('fs').mkdirSync(require('path').dirname(process.argv[2]), {recursive: true});${code}`,
      file,
      to,
    ],
    {
      cwd: new URL('../..', import.meta.url).pathname,
      stdio: 'inherit',
    },
  );
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (status) =>
      status === 0 ? resolve() : reject(new Error(`VACUUM INTO ended with status ${status}`)),
    );
  });
}

function report(phases: readonly Phase[]): void {
  for (const { name, seconds, sent, p50, p99, worst, logGrowth } of phases)
    console.log(
      `${name.padEnd(14)} ${seconds.toFixed(1).padStart(6)} s  ${(sent / seconds).toFixed(0).padStart(5)} sends/s  p50 ${p50.toFixed(1)} ms  p99 ${p99.toFixed(1)} ms  worst ${worst.toFixed(0)} ms  log +${logGrowth.toFixed(0)} MB`,
    );
  const rate = (name: string) => {
    const own = phases.filter((one) => one.name === name);
    return own.reduce((sum, { sent }) => sum + sent, 0) / own.reduce((sum, { seconds }) => sum + seconds, 0);
  };
  for (const name of ['backup create', 'VACUUM INTO'])
    console.log(`${name}: ${((100 * rate(name)) / rate('alone')).toFixed(0)} % of the sends alone`);
}
