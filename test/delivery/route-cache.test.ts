import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createRouteCache } from '../../src/delivery/route-cache.ts';
import { failure, type RouteResult } from '../../src/delivery/routes.ts';
import { heldClock } from '../support/store.ts';

const log = createLog({ level: 'silent', hashAddresses: true });

/** A cache whose lookups last until the test answers them. */
function startCache() {
  const lookups = new Map<string, ((result: RouteResult) => void)[]>();
  const cache = createRouteCache(
    { monotonic: heldClock(), log },
    (destination) =>
      new Promise((resolve) => {
        lookups.set(destination, [...(lookups.get(destination) ?? []), resolve]);
      }),
  );
  const known: string[] = [];
  const settled = () => new Promise(setImmediate);
  return {
    lookups,
    known,
    get: async (accountId: string, destination: string) => {
      const result = cache.get(destination, 'always', { accountId, via: null });
      if (!(result instanceof Promise)) return result;
      void result.then((isKnown) => isKnown && known.push(`${accountId} ${destination}`));
      await settled();
      return null;
    },
    answer: async (destination: string, result: RouteResult) => {
      lookups.get(destination)?.shift()?.(result);
      await settled();
    },
  };
}

const HOSTS: RouteResult = {
  kind: 'hosts',
  hosts: [{ name: 'mx.example.net', addresses: ['192.0.2.1'] }],
  route: null,
  ttl: 300,
};

describe('lookups without an answer', () => {
  it('leave lookups for other accounts', async () => {
    const { get, answer, known, lookups } = startCache();
    for (let n = 0; n < 100; n++) await get('acct_one', `silent${n}.example`);
    expect(lookups.size).toBe(64);
    expect(await get('acct_two', 'example.net')).toBeNull();
    await answer('example.net', HOSTS);
    expect(known).toEqual(['acct_two example.net']);
    expect(await get('acct_one', 'example.net')).toBe(HOSTS);
  });

  it('do not delay the lookup of the same destination for another account', async () => {
    const { get, answer, known, lookups } = startCache();
    for (let n = 0; n < 64; n++) await get('acct_one', `silent${n}.example`);
    await get('acct_one', 'example.net');
    await get('acct_two', 'example.net');
    await answer('example.net', HOSTS);
    expect(known).toEqual(['acct_two example.net']);
    // The waiting lookup of the first account uses the route.
    await answer('silent0.example', failure('dns-trouble', 60));
    expect(known).toEqual(['acct_two example.net', 'acct_one silent0.example', 'acct_one example.net']);
    expect(lookups.get('example.net')).toEqual([]);
  });

  it('do not take a TLS policy from the routes of others', async () => {
    const { get, answer, lookups } = startCache();
    await get('acct_one', 'example.net');
    const fault = { type: 'sts-policy-fetch-error', text: 'not received' } as const;
    const unknown: RouteResult = { ...HOSTS, tls: { sts: null, fault } };
    await answer('example.net', unknown);
    expect(await get('acct_one', 'example.net')).toBe(unknown);
    expect(await get('acct_two', 'example.net')).toBeNull();
    expect(lookups.get('example.net')).toHaveLength(1);
    await answer('example.net', HOSTS);
    expect(await get('acct_one', 'example.net')).toBe(HOSTS);
  });

  it('are refused above a limit', async () => {
    const { get, answer, known, lookups } = startCache();
    for (let n = 0; n < 1200; n++) await get('acct_one', `silent${n}.example`);
    for (let n = 0; n < 1064; n++) await answer(`silent${n}.example`, HOSTS);
    expect(known).toHaveLength(1064);
    expect(lookups.size).toBe(1064);
    // A refused one can be requested again.
    await get('acct_one', 'silent1150.example');
    expect(lookups.size).toBe(1065);
  });
});

it('does not replace a route by the DNS failure of another lookup', async () => {
  const { get, answer } = startCache();
  await get('acct_one', 'example.net');
  await get('acct_two', 'example.net');
  await answer('example.net', HOSTS);
  await answer('example.net', failure('dns-trouble', 60));
  expect(await get('acct_one', 'example.net')).toBe(HOSTS);
});
