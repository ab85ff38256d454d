import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';

/** What a page of the console reads, as a browser does when the page is opened. */
export interface PageRequests {
  /** Path and query of the page below /console/. */
  page: string;
  /** Paths and queries of its requests, without repetitions. */
  paths: string[];
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
/** Searches that a user would type. */
const SEARCHES = [
  'contacts?search=person12',
  'messages?recipient=person12%40d01.example',
  'messages?sender=news%40news.example',
  'messages?subject=order',
  'messages?status=bounced',
];
const LOAD_TIMEOUT_MS = 60_000;
const SAMPLE_SEGMENTS = new Set(['import', 'new', 'accounts']);

/**
 * Opens every page that links lead to, one of each kind: the first message stands for all messages. Throws for a page that
 * does not finish to load.
 */
export async function findPages({ page, consoleUrl, accountId }: FindOptions): Promise<PageRequests[]> {
  const requests: string[] = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    const isData = request.method() === 'GET' && /^\/console\/(?:api|me|people|audit)/.test(url.pathname);
    if (isData && request.resourceType() === 'fetch') requests.push(`${url.pathname}${url.search}`);
  });
  const waiting = ['', ...SEARCHES];
  const kinds = new Set(waiting.map(kindOf));
  const found: PageRequests[] = [];
  for (let path = waiting.shift(); path !== undefined && found.length < MAX_PAGES; path = waiting.shift()) {
    requests.length = 0;
    await page.goto(`${consoleUrl}/console/${path}${path.includes('?') ? '&' : '?'}account=${accountId}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await untilLoaded(page);
    found.push({ page: path, paths: [...new Set(requests)].filter((each) => !NOT_MEASURED.test(each)) });
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
  return found;
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
