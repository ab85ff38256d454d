// Long: builds a database with a large history and reads every list of it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createAudience } from '../../src/audience/service.ts';
import { monotonicClock, systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createRecorder } from '../../src/events/record.ts';
import { createRetention } from '../../src/events/retention.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import { MAX_SCANNED_ROWS } from '../../src/store/rows/page.ts';
import { createTables } from '../../src/store/tables.ts';
import { listCases } from '../bench/large/filters.ts';
import { buildHistory, DAYS, membersOf, personAddress } from '../bench/large/history.ts';
import {
  prepareInstallation,
  type RunningInstallation,
  readInstallation,
  startInstallation,
} from '../bench/large/installation.ts';
import { createRequester, type Requester } from '../bench/large/requests.ts';
import { type Receiver, startReceiver } from '../bench/receiver.ts';
import { createApiClient } from '../support/api-client.ts';
import { builtThread } from '../support/built-thread.ts';
import { findChild } from '../support/process-cost.ts';

/*
 * `npm run bench:large` measures lists in milliseconds; this test measures what other load on the machine does not
 * change: the bytes that the daemon reads for one request (proc(5), `rchar`), which are database pages that are not in
 * its cache. A statement that scans the history of the account reads 3,000 to 17,000 pages here.
 */
const MESSAGES = 100_000;
const PAGE_BYTES = 4096;
/** The rows that one page of a list examines are neighbors, several per database page. */
const MAX_PAGES = MAX_SCANNED_ROWS / 2;
/** Reading, clearing and logging: 1.25 were counted. A scan of the history in each portion would read hundreds. */
const MAX_PAGES_PER_DELETED_ROW = 5;
/** Between 20 and 185 were counted, for people with five messages each. */
const MAX_PAGES_PER_PERSON = 1000;
const ERASED = 20;
/** Creating and delivering a message of a campaign, sockets included: 5.2 were counted. */
const MAX_PAGES_PER_MEMBER = 20;

const root = mkdtempSync(join(tmpdir(), 'postrider-large-'));
const dataDir = join(root, 'large');
let running: RunningInstallation;
let requester: Requester;
let receiver: Receiver;
let pid: number;
let isRunning = false;

beforeAll(async () => {
  const prepared = join(root, 'prepared');
  const installation = await prepareInstallation(prepared);
  buildHistory(prepared, dataDir, installation, { messages: MESSAGES, now: Date.now() });
  receiver = await startReceiver();
  running = await startInstallation(dataDir, receiver.port);
  const [owner] = running.accounts;
  if (owner === undefined) throw new Error('the installation has no account');
  requester = createRequester(running.daemon.baseUrl, createApiClient(running.daemon.baseUrl, owner));
  isRunning = true;
  pid = findChild('dist/main.js', 'serve');
});

afterAll(async () => {
  requester?.close();
  if (isRunning) await running.stop();
  await receiver?.stop();
  rmSync(root, { recursive: true, force: true });
});

function bytesRead(): number {
  return ioOf(`/proc/${pid}/io`, 'rchar');
}

function bytesReadAndWritten(): number {
  return bytesRead() + ioOf(`/proc/${pid}/io`, 'wchar');
}

/** Bytes that this thread has read and written. */
function bytesOfThread(): number {
  const file = '/proc/thread-self/io';
  return ioOf(file, 'rchar') + ioOf(file, 'wchar');
}

function ioOf(file: string, field: 'rchar' | 'wchar'): number {
  const bytes = new RegExp(`^${field}: (\\d+)$`, 'm').exec(readFileSync(file, 'utf8'))?.[1];
  if (bytes === undefined) throw new Error(`${file} has no ${field}`);
  return Number(bytes);
}

/** The database without its daemon: what this thread reads and writes is then work of the test alone. */
async function openStopped() {
  if (isRunning) await running.stop();
  isRunning = false;
  const db = openDatabase(dataDir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  onTestFinished(async () => {
    await writer.close();
    db.close();
  });
  return { tables, writer, clock: systemClock, log: createLog({ level: 'silent', hashAddresses: true }) };
}

it('reads a bounded part of a long history for every filter of every list', async () => {
  const { history } = readInstallation(dataDir);
  if (history === undefined) throw new Error('the installation has no history');
  const tooMany: Record<string, number> = {};
  for (const { list, filter, page, path } of listCases(running, history)) {
    const before = bytesRead();
    const { status, body } = await requester.call(path);
    const pages = Math.round((bytesRead() - before) / PAGE_BYTES);
    expect(`${path}: ${status} ${status === 200 ? '' : body}`).toBe(`${path}: 200 `);
    if (pages > MAX_PAGES) tooMany[`${list} by ${filter}, ${page} page`] = pages;
  }
  expect(tooMany).toEqual({});
});

it('sends a campaign with few pages per member, whatever the size of the history', async () => {
  const [owner] = running.accounts;
  if (owner === undefined) throw new Error('the installation has no account');
  const api = createApiClient(running.daemon.baseUrl, owner);
  const created = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'Counted',
  });
  const path = `/web-setup/campaigns/${created.data.campaign.campaignId}`;
  const before = bytesReadAndWritten();
  const sent = await api.post(`${path}/send`, {
    from: 'News <news@news.example>',
    subject: 'News for {{firstName}}',
    html: '<p>Hello {{firstName}}</p><p>{{company_address_html}}</p><p>{{unsubscribe_email_html}}</p>',
    subscriptionGroupId: running.group.subscriptionGroupId,
  });
  expect(sent.status).toBe(202);
  const status = async () => (await api.get<{ campaign: { status: string } }>(path)).data.campaign.status;
  await expect.poll(status, { interval: 200 }).toBe('sent');
  const pages = (bytesReadAndWritten() - before) / PAGE_BYTES;
  expect(pages / membersOf(MESSAGES)).toBeLessThan(MAX_PAGES_PER_MEMBER);
});

it('deletes the oldest day of a long history with few pages per row', async () => {
  const store = await openStopped();
  let deleted = 0;
  const config = { limits: { bodyDays: DAYS, eventDays: DAYS - 1, inboundDays: DAYS } };
  const retention = createRetention(
    { ...store, config },
    {
      mayShrink: () => false,
      onPortion: (_, removed) => {
        deleted += removed;
      },
    },
  );
  const before = bytesOfThread();
  const purged = await retention.run();
  const pages = (bytesOfThread() - before) / PAGE_BYTES;
  await retention.stop();
  expect(purged.messages).toBeGreaterThan(MESSAGES / DAYS / 2);
  expect(purged.events).toBeGreaterThan(purged.messages);
  expect(pages / deleted).toBeLessThan(MAX_PAGES_PER_DELETED_ROW);
});

it('erases a person with few pages, whatever the size of the history', async () => {
  const store = await openStopped();
  const ids = createIds(systemClock, systemRandom);
  const { erasure, background } = createAudience(
    { ...store, reader: createLocalReader(store.tables), ids, monotonic: monotonicClock },
    {
      recorder: createRecorder({ clock: systemClock, ids }),
      mayAdd: { contacts: () => null, subscriptionGroups: () => null },
      responsesKeptMs: 0,
      // Without it an erasure would wait for the thread, which reads the whole file.
      waitMs: 60_000,
      slackScript: builtThread('store/maintenance/slack-thread.ts'),
    },
  );
  onTestFinished(() => background.stop());
  const [owner] = running.accounts;
  for (let number = 1; number <= ERASED; number++) {
    const before = bytesOfThread();
    const erased = await erasure.erase(owner?.accountId ?? '', emailIdentifier(personAddress(number)));
    expect(erased).toEqual({ complete: true });
    expect((bytesOfThread() - before) / PAGE_BYTES).toBeLessThan(MAX_PAGES_PER_PERSON);
  }
});
