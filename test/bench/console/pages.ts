import { setTimeout as sleep } from 'node:timers/promises';
import type { Page, Request } from 'playwright-core';

/** What a page of the console reads, as a browser does when the page is opened. */
export interface PageRequests {
  /** Path and query of the page below /console/, or what is typed into its search for everything (Ctrl and K). */
  page: string;
  /** Without repetitions. */
  requests: PageRequest[];
}

/** A request for data; a POST request renders something. */
export interface PageRequest {
  /** With its query. */
  path: string;
  /** The account that it is about; null: none. */
  account: string | null;
  /** Null: a GET request. */
  body: string | null;
}

export interface FindOptions {
  page: Page;
  consoleUrl: string;
  accountId: string;
}

/** More pages than there are: the search ends by itself. */
const MAX_PAGES = 200;
/** Requests that answer when something happens, or that run checks of DNS and other servers when they are asked. */
const NOT_MEASURED = /\/(?:stream|verify)$|\/web-setup\/doctor/;
const READ = /^\/console\/(?:api|me|people|audit)/;
const RENDERED = /^\/console\/(?:api\/web-setup\/templates\/preview|previews)$/;
const CONTENT = /\/messages\/[^/]+\/content$/;
/** Opens the parts of a page that read their data on demand, of each table and list the first one. */
const OPEN_PARTS = `{
  const seen = new Set();
  for (const part of document.querySelectorAll('main details')) {
    const parent = part.closest('table, ol, ul') ?? part;
    if (!seen.has(parent)) part.open = true;
    seen.add(parent);
  }
}`;
/** Searches that a user would type. */
const SEARCHES = [
  '?interval=day',
  'reports?days=365',
  'reports?days=365&tab=tls',
  'inbox?box=bounce&unread=true',
  'people?scope=all',
  'audit?scope=all',
  'contacts?search=person12',
  'messages?recipient=person12%40d01.example',
  'messages?sender=news%40news.example',
  'messages?subject=order',
  'messages?status=bounced',
];
/** Texts for the search for everything. */
const TEXTS = ['person12', 'template 49'];
/** It waits for further characters, then sends its requests. */
const TYPING_MS = 2000;
const LOAD_TIMEOUT_MS = 60_000;
const SAMPLE_SEGMENTS = new Set(['import', 'new', 'accounts']);

/**
 * Opens every page that links lead to, one of each kind: the first message stands for all messages. Throws for a page that
 * does not finish to load.
 */
export async function findPages({ page, consoleUrl, accountId }: FindOptions): Promise<PageRequests[]> {
  const requests = new Map<string, PageRequest>();
  page.on('request', (request) => {
    const read = readRequest(request);
    if (read !== null) requests.set(JSON.stringify(read), read);
  });
  page.on('response', (response) => {
    const read = readRequest(response.request());
    // The body of an old message was deleted.
    if (read !== null && response.status() === 404 && CONTENT.test(read.path))
      requests.delete(JSON.stringify(read));
  });
  const waiting = ['', ...SEARCHES];
  const kinds = new Set(waiting.map(kindOf));
  const found: PageRequests[] = [];
  const open = async (path: string) => {
    requests.clear();
    await page.goto(`${consoleUrl}/console/${path}${path.includes('?') ? '&' : '?'}account=${accountId}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await untilLoaded(page);
  };
  for (let path = waiting.shift(); path !== undefined && found.length < MAX_PAGES; path = waiting.shift()) {
    await open(path);
    await page.evaluate(OPEN_PARTS);
    await untilLoaded(page);
    found.push({ page: path, requests: [...requests.values()] });
    const links: string[] = await page
      .locator('a[href^="/console/"]:not([download])')
      .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
    for (const link of links) {
      const next = pathOf(link, consoleUrl);
      const kind = kindOf(next);
      if (kinds.has(kind)) continue;
      kinds.add(kind);
      waiting.push(next);
    }
  }
  for (const text of TEXTS) {
    await open('');
    requests.clear();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill(text);
    await sleep(TYPING_MS);
    found.push({ page: `(${text})`, requests: [...requests.values()] });
  }
  return found;
}

/** The request to measure; null: it is for a file, or not measured. */
function readRequest(request: Request): PageRequest | null {
  const { pathname, search } = new URL(request.url());
  const isMeasured = request.method() === 'GET' ? READ.test(pathname) : RENDERED.test(pathname);
  if (!isMeasured || NOT_MEASURED.test(pathname)) return null;
  return {
    path: `${pathname}${search}`,
    account: request.headers()['x-id'] ?? null,
    body: request.postData(),
  };
}

/** Pages that show their data remove the last `.loading`. */
async function untilLoaded(page: Page): Promise<void> {
  for (let end = Date.now() + LOAD_TIMEOUT_MS; (await page.locator('.loading').count()) > 0; ) {
    if (Date.now() > end) throw new Error(`${page.url()} does not finish to load`);
    await sleep(50);
  }
}

function pathOf(link: string, base: string): string {
  const { pathname, searchParams } = new URL(link, base);
  searchParams.delete('account');
  const query = searchParams.toString();
  return `${pathname.slice('/console/'.length)}${query === '' ? '' : `?${query}`}`;
}

/** Pages of one kind differ in ids and in values of filters. The forms of single operations of the API read nothing. */
function kindOf(path: string): string {
  const { pathname, searchParams } = new URL(path, 'http://localhost/');
  const [, first = '', ...rest] = pathname.split('/');
  if (first === 'reference') return first;
  const segments = rest.map((segment) => (SAMPLE_SEGMENTS.has(segment) ? segment : ':'));
  const step = searchParams.get('step') ?? '';
  return [first, ...segments, ...[...searchParams.keys()].toSorted(), step].join(' ');
}
