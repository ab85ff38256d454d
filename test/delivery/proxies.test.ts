import { expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import type { EgressEntry } from '../../src/delivery/egress-pools.ts';
import { createEgressProxies } from '../../src/delivery/proxies.ts';
import { heldClock } from '../support/store.ts';

const ENTRY: EgressEntry = {
  name: 'far',
  hostname: 'mail.example.com',
  publicAddress: '192.0.2.3',
  proxy: { host: 'proxy.example', port: 1080, user: null },
};

/** `answer`: what the DNS returns for the name; an error: the lookup fails. */
function setup() {
  const monotonic = heldClock();
  const lines: string[] = [];
  let queries = 0;
  let answer: string | Error = new Error('timeout');
  const query = () => {
    queries++;
    return answer instanceof Error
      ? Promise.reject(answer)
      : Promise.resolve({ records: [answer], ttl: 60, authenticated: false, name: 'proxy.example' });
  };
  const proxies = createEgressProxies(
    {
      monotonic,
      log: createLog(
        { level: 'info', hashAddresses: true },
        { write: (line) => void lines.push(JSON.parse(line).msg) },
      ),
    },
    {
      resolver: { a: query, aaaa: () => Promise.reject(new Error('timeout')) },
      passwords: new Map(),
    },
  );
  return {
    proxies,
    monotonic,
    lines,
    queries: () => queries,
    answer: (next: string | Error) => {
      answer = next;
    },
    /** Calls `refresh` once per second. */
    run: async (ms: number) => {
      for (let at = 0; at < ms; at += SECOND) {
        await proxies.refresh([ENTRY]);
        monotonic.advance(SECOND);
      }
    },
  };
}

it('looks up a name that cannot be resolved every ten seconds, and logs the failure once', async () => {
  const { proxies, lines, queries, answer, run } = setup();
  await run(MINUTE);
  expect(queries()).toBe(6);
  expect(lines).toEqual(['name of a proxy cannot be resolved; trying again']);
  expect(proxies.isResolved(ENTRY)).toBe(false);
  answer('192.0.2.9');
  await run(10 * SECOND);
  expect(proxies.jobEgress(ENTRY).proxy).toEqual({ host: '192.0.2.9', port: 1080 });
});

it('keeps the last address while a lookup fails, and logs each outage', async () => {
  const { proxies, lines, answer, run } = setup();
  answer('192.0.2.9');
  await run(SECOND);
  answer(new Error('timeout'));
  await run(2 * MINUTE);
  expect(lines).toHaveLength(1);
  expect(proxies.jobEgress(ENTRY).proxy).toMatchObject({ host: '192.0.2.9' });
  answer('192.0.2.10');
  await run(2 * MINUTE);
  answer(new Error('timeout'));
  await run(2 * MINUTE);
  expect(proxies.jobEgress(ENTRY).proxy).toMatchObject({ host: '192.0.2.10' });
  expect(lines).toHaveLength(2);
});

it('starts one lookup of a name at a time', async () => {
  const { proxies, queries, answer } = setup();
  answer('192.0.2.9');
  await Promise.all([proxies.refresh([ENTRY]), proxies.refresh([ENTRY])]);
  expect(queries()).toBe(1);
});
