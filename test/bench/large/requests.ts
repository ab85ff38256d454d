import { Agent, request } from 'node:http';
import type { ApiClient } from '../../support/api-client.ts';
import type { ListCase } from './filters.ts';
import type { Delay, Probe } from './installation.ts';

/** What one case of a list took. Times in ms. */
export interface ListResult extends ListCase {
  requests: number;
  p50: number;
  p99: number;
  delay: Delay;
  /** Rows of the first answer. */
  rows: number;
  /** Requests until there is no further page, bounded; only for pages that match nothing. */
  pagesToEnd: number | null;
  /** Answers other than 200, by status. */
  refused: Record<string, number>;
}

/** Requests of one case; fewer when they are slow. */
const REPEATS = 50;
const CASE_BUDGET_MS = 3000;
/** An empty page may carry `nextKey`: its followers are counted up to here. */
const MAX_PAGES = 500;

interface Answer {
  status: number;
  body: string;
}

export function createRequester(baseUrl: string, api: ApiClient) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { 'X-Api-Key': api.keys.setup, 'X-Id': api.accountId };
  const call = (path: string, method = 'GET'): Promise<Answer> =>
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

/** Measures one case, one request after the other. */
export async function measureList(requester: Requester, probe: Probe, one: ListCase): Promise<ListResult> {
  const first = await requester.call(one.path);
  const pagesToEnd = one.page === 'empty' ? await countPages(requester, one.path, first) : null;
  const refused: Record<string, number> = {};
  const times: number[] = [];
  await probe.delay();
  const end = performance.now() + CASE_BUDGET_MS;
  while (times.length < REPEATS && performance.now() < end) {
    const began = performance.now();
    const { status } = await requester.call(one.path);
    times.push(performance.now() - began);
    if (status !== 200) refused[status] = (refused[status] ?? 0) + 1;
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
    refused,
  };
}

async function countPages(requester: Requester, path: string, first: Answer): Promise<number> {
  let answer = first;
  for (let pages = 1; ; pages++) {
    const nextKey = answer.status === 200 ? readPage(answer).nextKey : undefined;
    if (nextKey === undefined || pages === MAX_PAGES) return pages;
    answer = await requester.call(`${path}${path.includes('?') ? '&' : '?'}lastKey=${nextKey}`);
  }
}

function readPage({ body }: Answer): { count: number; nextKey?: string } {
  const { data }: { data: { count?: number; nextKey?: string } } = JSON.parse(body);
  return { count: data.count ?? 0, ...(data.nextKey === undefined ? {} : { nextKey: data.nextKey }) };
}

/** `sorted` ascending. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
