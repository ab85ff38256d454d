import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBrowser } from '../support/browser.ts';
import { freePort } from '../support/free-port.ts';
import { measurePages, type PageResult } from './console/measure.ts';
import { findPages } from './console/pages.ts';
import { signInOperator } from './console/sign-in.ts';
import { addConsoleData } from './large/console-data.ts';
import { buildHistory } from './large/history.ts';
import { prepareInstallation, startInstallation } from './large/installation.ts';
import { thisMachine } from './machine.ts';
import { readOptions } from './options.ts';
import { startReceiver } from './receiver.ts';
import { createResources } from './resources.ts';

/*
 * How long the pages of the web console wait for their data with a large database. Chromium opens every page and lists
 * what it requests; each request is then measured alone, and a page is as slow as its slowest request.
 *
 *     npm run build && npm run bench:console                      a million messages and a million contacts
 *     npm run bench:console -- --messages 100000 --contacts 100000
 *     npm run bench:console -- --data DIR                         builds into DIR once, and measures it again later
 *
 * Exits with 1 when a page misses the goal: 95 of 100 requests within 200 ms.
 */
const values = readOptions({
  command: 'npm run bench:console',
  summary: `How long the pages of the web console wait for their data with a large database. Needs Chromium.
Exits with 1 when a page misses the goal. Build first (npm run build).`,
  options: {
    messages: { integer: 1_000_000, help: 'messages of all accounts' },
    contacts: { integer: 1_000_000, help: 'contacts of all accounts' },
    data: { text: 'DIR', help: 'build into DIR once, and measure it again later' },
    json: { flag: 'print the result as JSON' },
  },
});
const GOAL_MS = 200;
/** Requests of each kind after the first one. */
const REPEATS = 40;

const resources = await createResources();
await resources.run(bench);

async function bench(): Promise<boolean> {
  const { cpu, cores, load, memoryGiB } = thisMachine();
  const root = values.data || join(tmpdir(), 'console');
  const [prepared, history, used] = ['prepared', 'history', 'used'].map((name) => join(root, name));
  if (prepared === undefined || history === undefined || used === undefined) throw new Error('unreachable');
  mkdirSync(root, { recursive: true });
  const installation = await prepareInstallation(prepared);
  if (!existsSync(history)) {
    // An interrupted build starts again.
    const partial = `${history}.partial`;
    rmSync(partial, { recursive: true, force: true });
    const now = Date.now();
    buildHistory(prepared, partial, installation, {
      messages: values.messages,
      people: values.contacts,
      now,
    });
    addConsoleData(partial, { now });
    renameSync(partial, history);
  }
  rmSync(used, { recursive: true, force: true });
  if (values.data === '') renameSync(history, used);
  else cpSync(history, used, { recursive: true });

  const receiver = await resources.start(() => startReceiver());
  const settings = {
    'console.listen': `127.0.0.1:${await freePort()}`,
    // Otherwise the daemon would delete most of the hourly counts.
    'limits.eventDays': 400,
  };
  const running = await resources.start(() => startInstallation(used, receiver.port, settings));
  const { daemon, accounts } = running;
  const [owner] = accounts;
  if (owner === undefined) throw new Error('the installation has no account');
  const { accountId } = owner;
  const browser = await resources.start(async () => {
    const started = await startBrowser(['localhost']);
    return { ...started, stop: started.close };
  });
  const { page, consoleUrl, cookie, pageToken } = await signInOperator(daemon, browser);
  const pages = await findPages({ page, consoleUrl, accountId });
  const results = await measurePages({ consoleUrl, cookie, pageToken }, pages, REPEATS);
  if (values.json) console.log(JSON.stringify({ goalMs: GOAL_MS, pages: results }, null, 1));
  else {
    console.log(`${cores} × ${cpu}, ${memoryGiB} GiB, Node ${process.version}, load before ${load}`);
    print(results);
  }
  const missed = results.filter(({ p95, failed }) => p95 > GOAL_MS || Object.keys(failed).length > 0);
  if (!values.json)
    console.log(
      missed.length === 0
        ? `all ${results.length} pages have their data within ${GOAL_MS} ms (p95)`
        : `${missed.length} of ${results.length} pages miss the goal of ${GOAL_MS} ms (p95)`,
    );
  return missed.length === 0;
}

function print(results: readonly PageResult[]): void {
  console.log('page'.padEnd(44), 'requests'.padStart(8), '   first     p50     p95 ms  slowest request');
  for (const { page, requests, slowest, first, p50, p95, failed } of results) {
    const times = [first, p50, p95].map((ms) => ms.toFixed(1).padStart(7)).join(' ');
    const failures = Object.entries(failed).map(([status, count]) => ` ${count} × ${status}`);
    console.log(
      `/${page}`.slice(0, 44).padEnd(44),
      String(requests).padStart(8),
      times,
      `    ${slowest.replace('/console', '')}${failures.join('')}`,
    );
  }
}
