import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { searchKeys } from '../../src/audience/search-key.ts';
import type { ContactRow } from '../../src/store/contacts/contacts.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { openWriteAheadLog } from '../../src/store/database/write-ahead-log.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createTables } from '../../src/store/tables.ts';
import { readOptions } from './options.ts';

/**
 * `npm run bench:contact-search [-- --contacts 1000000]`: fills a database with contacts, then adds contacts one by one and in batches. Prints the event-loop delay of each phase, without
 * waits for a CPU. Needs the built program, whose threads flush the log.
 */
const { contacts: CONTACTS } = readOptions({
  command: 'npm run bench:contact-search',
  summary: `Fills a database with contacts, then adds contacts. Prints the
event-loop delay of each phase. Build first (npm run build).`,
  options: { contacts: { integer: 200_000, help: 'contacts' } },
});
const ACCOUNT = 'acct_bench';
const BATCH_ROWS = 100;
const ADDED = 20_000;
const BEAT_MS = 2;

const dir = mkdtempSync(join(tmpdir(), 'postrider-contact-search-'));
const db = openDatabase(dir, { busyTimeoutMs: 0 });
const tables = createTables(db);
const wal = openWriteAheadLog(db, { script: new URL('../../dist/store/flush-thread.js', import.meta.url) });
const writer = createWriter(db, tables, { writeAheadLog: wal });

try {
  await writer.run((tx) => tx.contacts.configureIndex());
  fill();
  await report(`${ADDED} contacts added, ${BATCH_ROWS} per unit of work`, () => add(BATCH_ROWS));
  await report(`${ADDED} contacts added, one per unit of work`, () => add(1));
} finally {
  await writer.close();
  await wal.close();
  db.close();
  rmSync(dir, { recursive: true });
}

async function report(title: string, work: () => Promise<void>): Promise<void> {
  const delays: number[] = [];
  let due = performance.now() + BEAT_MS;
  let waited = cpuWait();
  const beat = setInterval(() => {
    const now = performance.now();
    const wait = cpuWait();
    delays.push(Math.max(0, now - due - (wait - waited)));
    due = now + BEAT_MS;
    waited = wait;
  }, BEAT_MS);
  const began = performance.now();
  await work();
  clearInterval(beat);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  delays.sort((one, two) => one - two);
  const at = (share: number) => (delays[Math.ceil(share * delays.length) - 1] ?? 0).toFixed(1);
  console.log(
    `${title} in ${seconds} s: event-loop delay p99 ${at(0.99)} ms, p99.9 ${at(0.999)} ms, longest ${at(1)} ms`,
  );
}

/** Time that the main thread has waited for a CPU because of other programs (proc(5), schedstat), in ms. */
function cpuWait(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
}

/** Creates the account with the contacts that are there before. */
function fill(): void {
  tables.accounts.insert({
    account_id: ACCOUNT,
    name: 'Bench',
    status: 'active',
    company_name: null,
    company_address: null,
    abuse_email: null,
    moved_at: null,
    logo_url: null,
    created_at: 1,
    updated_at: 1,
  });
  db.transaction(() => {
    for (let n = 0; n < CONTACTS; n++) tables.contacts.insert(contact(n));
  })();
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

async function add(rows: number): Promise<void> {
  const first = tables.contacts.list({ accountId: ACCOUNT, beforeSeq: null, limit: 1 }).rows[0]?.seq ?? 0;
  for (let n = first; n < first + ADDED; n += rows) {
    await writer.run((tx) => {
      for (let row = n; row < n + rows; row++) tx.contacts.insert(contact(row));
    });
  }
}

function contact(n: number): Omit<ContactRow, 'seq'> {
  const email = `person${n}.${(Math.imul(n + 1, 2_654_435_761) >>> 0).toString(36)}@provider${n % 7}.example`;
  const digest = createHash('md5').update(email).digest('hex');
  const names = { email, phone: null, first_name: `First${n % 1009}`, last_name: `Last${n % 9973}` };
  return {
    ...names,
    ...searchKeys(names),
    account_id: ACCOUNT,
    user_id: `${digest.slice(0, 8)}-0000-7000-8000-${digest.slice(8, 20)}`,
    email_hash: `email_${digest}`,
    phone_hash: null,
    custom_fields: '{}',
    language: null,
    paused_until: null,
    erasure_requested_at: null,
    global_status: 'active',
    consent_n: null,
    source: 'api',
    added_by: 'bench',
    created_at: n,
    updated_at: n,
  };
}
