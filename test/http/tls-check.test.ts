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
  const lookups: string[] = [];
  const linkHosts = {
    statusOf: (host: string) => STANDINGS[host] ?? null,
    leadsHere: async (host: string) => {
      lookups.push(host);
      return host === 'link.here.example';
    },
  };
  const api = await startApi({ options: { openRoutes: [tlsCheckRoute({ clock }, { linkHosts })] } });
  onTestFinished(() => api.stop());
  const check = (query: string) => fetch(`${api.base}/tls-check${query}`);
  return { check, clock, lookups };
}

it('responds by the standing of the host, with a lookup for registered hosts only, without a key', async () => {
  const { check, lookups } = await start();
  const expected = [
    ['?domain=track.mail.example', 200, []],
    ['?domain=link.proven.example', 200, []],
    ['?domain=link.here.example', 200, ['link.here.example']],
    ['?domain=link.elsewhere.example', 404, ['link.elsewhere.example']],
    ['?domain=link.other.example', 404, []],
    ['?domain=', 404, []],
    ['', 404, []],
  ] as const;
  const actual = [];
  for (const [query] of expected) actual.push([query, (await check(query)).status, lookups.splice(0)]);
  expect(actual).toEqual(expected);
});

it('limits the lookups of a caller, but not requests without a lookup', async () => {
  const { check, clock, lookups } = await start();
  const statuses = [];
  for (let n = 0; n < 62; n++) statuses.push((await check('?domain=link.here.example')).status);
  expect(lookups).toHaveLength(60);
  expect(statuses.slice(58)).toEqual([200, 200, 429, 429]);
  const refused = await check('?domain=link.elsewhere.example');
  expect(refused.headers.get('retry-after')).toBe('1');
  expect((await check('?domain=link.proven.example')).status).toBe(200);
  expect((await check('?domain=link.other.example')).status).toBe(404);
  clock.advance(SECOND);
  expect((await check('?domain=link.here.example')).status).toBe(200);
});
