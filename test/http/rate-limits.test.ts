import { afterEach, describe, expect, it } from 'vitest';
import { type Api, jsonOf, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

let api: Api;
afterEach(() => api.stop());

const thing = () => fetch(`${api.base}/web-setup/things/one`, { headers: api.as('setup') });
const send = () =>
  fetch(`${api.base}/transactional/send`, {
    method: 'POST',
    headers: { ...api.as('transactional'), 'Content-Type': 'application/json' },
    body: '{"to":"ann"}',
  });
const fields = ({ headers }: Response) =>
  ['x-ratelimit-limit', 'x-ratelimit-remaining', 'ratelimit-policy', 'ratelimit', 'retry-after'].map((name) =>
    headers.get(name),
  );

describe('a rate limit', () => {
  it('is in every response, and causes 429 with Retry-After when it is reached', async () => {
    api = await startApi({ routes: sampleRoutes, rates: { setup: { burst: 2, perSecond: 1 }, send: null } });
    expect(fields(await thing())).toEqual(['2', '1', '"setup";q=2;w=2', '"setup";r=1;t=1', null]);
    expect(fields(await thing())).toEqual(['2', '0', '"setup";q=2;w=2', '"setup";r=0;t=2', null]);

    const refused = await thing();
    expect(refused.status).toBe(429);
    expect(fields(refused)).toEqual(['2', '0', '"setup";q=2;w=2', '"setup";r=0;t=2', '1']);
    expect((await jsonOf(refused))['reasonCode']).toBe('RATE_LIMITED');

    api.clock.time += 1000;
    expect((await thing()).status).toBe(200);
  });

  it('is in refusals as well, which count as requests', async () => {
    api = await startApi({ routes: sampleRoutes, rates: { setup: { burst: 5, perSecond: 1 }, send: null } });
    const response = await fetch(`${api.base}/web-setup/things/one?limit=x`, { headers: api.as('setup') });
    expect(response.status).toBe(400);
    expect(response.headers.get('x-ratelimit-remaining')).toBe('4');
  });

  it('is absent without a limit or a key', async () => {
    api = await startApi({ routes: sampleRoutes, rates: { setup: { burst: 5, perSecond: 1 }, send: null } });
    for (const response of [
      await send(),
      await fetch(`${api.base}/web-setup/things/one`),
      await fetch(`${api.base}/healthz`),
    ]) {
      expect(fields(response)).toEqual([null, null, null, null, null]);
    }
  });

  it('is separate for sending and setup', async () => {
    api = await startApi({
      routes: sampleRoutes,
      rates: { setup: { burst: 5, perSecond: 1 }, send: { burst: 1, perSecond: 1 } },
    });
    expect((await send()).headers.get('ratelimit')).toBe('"send";r=0;t=1');
    expect((await send()).status).toBe(429);
    expect((await thing()).status).toBe(200);
  });
});

describe('failed authentications', () => {
  it('are refused from the 101st in a minute, without effect on a valid key in the same network', async () => {
    api = await startApi({ routes: sampleRoutes });
    const guess = () =>
      fetch(`${api.base}/web-setup/things/one`, { headers: { 'X-Api-Key': 'pr_guess', 'X-Id': 'x' } });
    const statuses: number[] = [];
    for (let at = 0; at < 101; at++) statuses.push((await guess()).status);

    expect(statuses.slice(0, 100).every((status) => status === 401)).toBe(true);
    expect(statuses[100]).toBe(429);
    expect(fields(await guess())).toEqual([
      '100',
      '0',
      '"authentication";q=100;w=60',
      '"authentication";r=0;t=1',
      '1',
    ]);
    expect((await thing()).status).toBe(200);
  });
});
