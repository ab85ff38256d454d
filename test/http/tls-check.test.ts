import { expect, it, onTestFinished } from 'vitest';
import { SECOND } from '../../src/core/clock.ts';
import { tlsCheckRoute } from '../../src/http/api/tls-check.ts';
import { heldClock } from '../support/store.ts';
import { startApi } from './harness.ts';

const STANDINGS: Record<string, 'own' | 'proven' | 'registered'> = {
  'track.mail.example': 'own',
  'link.proven.example': 'proven',
  'link.here.example': 'registered',
  'link.elsewhere.example': 'registered',
};

async function start() {
  const clock = heldClock();
  const lookedUp: string[] = [];
  const route = tlsCheckRoute({
    clock,
    standingOf: (host) => STANDINGS[host] ?? null,
    leadsHere: async (host) => {
      lookedUp.push(host);
      return host === 'link.here.example';
    },
  });
  const api = await startApi({ options: { openRoutes: [route] } });
  onTestFinished(() => api.stop());
  const ask = (domain: string | null) =>
    fetch(`${api.base}/tls-check${domain === null ? '' : `?domain=${domain}`}`);
  return { ask, clock, lookedUp };
}

it.each([
  ['track.mail.example', 200, 0],
  ['link.proven.example', 200, 0],
  ['link.here.example', 200, 1],
  ['link.elsewhere.example', 404, 1],
  ['link.other.example', 404, 0],
  ['', 404, 0],
  [null, 404, 0],
])('%s: %d, after %d lookups', async (domain, status, lookups) => {
  const { ask, lookedUp } = await start();
  expect((await ask(domain)).status).toBe(status);
  expect(lookedUp).toHaveLength(lookups);
});

it('limits the lookups of one client, not names that require none', async () => {
  const { ask, clock, lookedUp } = await start();
  const statuses = [];
  for (let n = 0; n < 100; n++) statuses.push((await ask('link.here.example')).status);
  expect(lookedUp).toHaveLength(60);
  expect(statuses.slice(58, 62)).toEqual([200, 200, 429, 429]);
  const refused = await ask('link.elsewhere.example');
  expect(refused.headers.get('retry-after')).toBe('1');
  expect((await ask('link.proven.example')).status).toBe(200);
  expect((await ask('link.other.example')).status).toBe(404);
  clock.advance(SECOND);
  expect((await ask('link.here.example')).status).toBe(200);
});
