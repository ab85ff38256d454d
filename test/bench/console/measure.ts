import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../result.ts';
import type { PageRequest, PageRequests } from './pages.ts';

/** The slowest request of a page, which decides when its data is complete. Times in ms. */
export interface PageResult {
  page: string;
  /** Number of requests. */
  requests: number;
  slowest: string;
  /** The first one, before its data was in the caches of this run. */
  first: number;
  p50: number;
  p95: number;
  /** Number of responses other than 200 in all requests, by status. */
  failed: Record<string, number>;
}

export interface Session {
  consoleUrl: string;
  cookie: string;
  pageToken: string;
}

/** The console limits the requests of a person to 50 per second. */
const PAUSE_MS = 21;

interface RequestResult {
  first: number;
  p50: number;
  p95: number;
  failed: Record<string, number>;
}

/** Measures each distinct request, also if several pages need it: first once, then `repeats` times. */
export async function measurePages(
  session: Session,
  pages: readonly PageRequests[],
  repeats: number,
): Promise<PageResult[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const measured = new Map<string, RequestResult>();
  for (const each of pages.flatMap(({ requests }) => requests)) {
    const key = JSON.stringify(each);
    if (!measured.has(key)) measured.set(key, await measure(agent, session, each, repeats));
  }
  agent.destroy();
  return pages.map((page) => resultOf(page, measured));
}

function resultOf(
  { page, requests }: PageRequests,
  measured: ReadonlyMap<string, RequestResult>,
): PageResult {
  const none: RequestResult = { first: 0, p50: 0, p95: 0, failed: {} };
  const results = requests.map((each) => ({
    path: `${each.body === null ? '' : 'POST '}${each.path}`,
    ...(measured.get(JSON.stringify(each)) ?? none),
  }));
  const slowest = results.toSorted((a, b) => b.p95 - a.p95)[0];
  const failed: Record<string, number> = {};
  for (const result of results)
    for (const [status, count] of Object.entries(result.failed))
      failed[status] = (failed[status] ?? 0) + count;
  const { path = '', first = 0, p50 = 0, p95 = 0 } = slowest ?? {};
  return { page, requests: requests.length, slowest: path, first, p50, p95, failed };
}

async function measure(
  agent: Agent,
  session: Session,
  measuredRequest: PageRequest,
  repeats: number,
): Promise<RequestResult> {
  const failed: Record<string, number> = {};
  const times: number[] = [];
  while (times.length <= repeats) {
    const began = performance.now();
    const status = await call(agent, session, measuredRequest);
    times.push(performance.now() - began);
    if (status !== 200) failed[status] = (failed[status] ?? 0) + 1;
    await sleep(PAUSE_MS);
  }
  const [first = 0, ...rest] = times;
  const sorted = rest.toSorted((a, b) => a - b);
  return { first, p50: percentile(sorted, 0.5), p95: percentile(sorted, 0.95), failed };
}

function call(
  agent: Agent,
  { consoleUrl, cookie, pageToken }: Session,
  { path, account, body }: PageRequest,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      Cookie: cookie,
      'X-Postrider-Page-Token': pageToken,
      'X-Postrider-Console': '1',
      'Sec-Fetch-Site': 'same-origin',
      ...(account === null ? {} : { 'X-Id': account }),
      ...(body === null ? {} : { Origin: consoleUrl, 'Content-Type': 'application/json' }),
    };
    const method = body === null ? 'GET' : 'POST';
    const req = request(`${consoleUrl}${path}`, { agent, headers, method }, (res) => {
      res.resume();
      res.once('end', () => resolve(res.statusCode ?? 0));
      res.once('error', reject);
    });
    req.once('error', reject);
    req.end(body ?? undefined);
  });
}
