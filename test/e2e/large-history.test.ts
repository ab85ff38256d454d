import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MAX_LOOKS } from '../../src/store/rows/scan.ts';
import { listCases } from '../bench/large/filters.ts';
import { buildHistory } from '../bench/large/history.ts';
import {
  prepareInstallation,
  type RunningInstallation,
  readInstallation,
  startInstallation,
} from '../bench/large/installation.ts';
import { createRequester, type Requester } from '../bench/large/requests.ts';
import { createApiClient } from '../support/api-client.ts';
import { findChild } from '../support/process-cost.ts';

/*
 * `npm run bench:large` measures lists in milliseconds; this test measures what other load on the machine does not
 * change: the bytes that the daemon reads for one request (proc(5), `rchar`), which are database pages that are not in
 * its cache. A statement that scans the history of the account reads 3,000 to 17,000 pages here.
 */
const MESSAGES = 100_000;
const PAGE_BYTES = 4096;
/** The rows that one page of a list examines are neighbors, several per database page. */
const MAX_PAGES = MAX_LOOKS / 2;

const root = mkdtempSync(join(tmpdir(), 'postrider-large-'));
const dataDir = join(root, 'large');
let running: RunningInstallation;
let requester: Requester;
let pid: number;

beforeAll(async () => {
  const prepared = join(root, 'prepared');
  const installation = await prepareInstallation(prepared);
  buildHistory(prepared, dataDir, installation, { messages: MESSAGES, now: Date.now() });
  running = await startInstallation(dataDir, 25);
  const [owner] = running.accounts;
  if (owner === undefined) throw new Error('the installation has no account');
  requester = createRequester(running.daemon.baseUrl, createApiClient(running.daemon.baseUrl, owner));
  pid = findChild('dist/main.js', 'serve');
});

afterAll(async () => {
  requester?.close();
  await running?.stop();
  rmSync(root, { recursive: true, force: true });
});

function bytesRead(): number {
  const read = /^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1];
  if (read === undefined) throw new Error(`/proc/${pid}/io has no rchar`);
  return Number(read);
}

it('reads a bounded number of database pages for every filter of every list', async () => {
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
