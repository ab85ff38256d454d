import { Agent, request } from 'node:http';
import type { ApiClient } from '../../support/api-client.ts';
import { percentile } from '../result.ts';
import type { ListCase } from './filters.ts';
import type { DaemonProbe, Delay } from './installation.ts';

/** The measurement of one case. Times in ms. */
export interface ListResult extends ListCase {
  requests: number;
  p50: number;
  p99: number;
  delay: Delay;
  /** Rows of the first page. */
  rows: number;
  /** Number of requests until the last page, at most MAX_PAGES; only for queries that match no row. */
  pagesToEnd: number | null;
  /** Number of responses other than 200, by status. */
  failed: Record<string, number>;
}

/** Requests per case, unless they exceed the time limit. */
const REPEATS = 50;
const CASE_TIMEOUT_MS = 3000;
/** An empty page may have a `nextKey`. */
const MAX_PAGES = 500;

interface PageResponse {
  status: number;
  body: string;
}

export function createRequester(baseUrl: string, api: ApiClient) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { 'X-Api-Key': api.keys.setup, 'X-Id': api.accountId };
  const call = (path: string, method = 'GET'): Promise<PageResponse> =>
    new Promise((resolve, reject) => {
      const req = request(`${baseUrl}${path}`, { agent, method, headers }, (res) => {
        const parts: Buffer[] = [];
        res.on('data', (part: Buffer) => parts.push(part));
        res.once('end', () =>
          resolve({ status: res.statusCode ?? 0, body: Buffer.concat(parts).toString() }),
        );
      });
      req.once('error', reject);
      req.end();
    });
  return { call, close: () => agent.destroy() };
}

export type Requester = ReturnType<typeof createRequester>;

/** Measures one case with sequential requests. */
export async function measureList(
  requester: Requester,
  probe: DaemonProbe,
  one: ListCase,
): Promise<ListResult> {
  const first = await requester.call(one.path);
  const pagesToEnd = one.page === 'empty' ? await countPages(requester, one.path, first) : null;
  const failed: Record<string, number> = {};
  const times: number[] = [];
  await probe.delay();
  const end = performance.now() + CASE_TIMEOUT_MS;
  while (times.length < REPEATS && performance.now() < end) {
    const began = performance.now();
    const { status } = await requester.call(one.path);
    times.push(performance.now() - began);
    if (status !== 200) failed[status] = (failed[status] ?? 0) + 1;
  }
  const delay = await probe.delay();
  const sorted = times.toSorted((a, b) => a - b);
  return {
    ...one,
    requests: times.length,
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    delay,
    rows: first.status === 200 ? readPage(first).count : 0,
    pagesToEnd,
    failed,
  };
}

async function countPages(requester: Requester, path: string, first: PageResponse): Promise<number> {
  let response = first;
  for (let pages = 1; ; pages++) {
    const nextKey = response.status === 200 ? readPage(response).nextKey : undefined;
    if (nextKey === undefined || pages === MAX_PAGES) return pages;
    response = await requester.call(`${path}${path.includes('?') ? '&' : '?'}lastKey=${nextKey}`);
  }
}

function readPage({ body }: PageResponse): { count: number; nextKey?: string } {
  const { data }: { data: { count?: number; nextKey?: string } } = JSON.parse(body);
  return { count: data.count ?? 0, ...(data.nextKey === undefined ? {} : { nextKey: data.nextKey }) };
}
