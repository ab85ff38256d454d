import { createSocket } from 'node:dgram';
import { encode } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { createExchange, type Exchange } from '../../src/dns/exchange.ts';
import type { QueryResult } from '../../src/dns/query-result.ts';
import { parseServer } from '../../src/dns/transport.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';

let first: DnsServer;
let second: DnsServer;
let exchanges: Exchange[];

beforeEach(async () => {
  first = await startDnsServer();
  second = await startDnsServer();
  exchanges = [];
});

afterEach(async () => {
  for (const exchange of exchanges) exchange.close();
  await Promise.all([first.close(), second.close()]);
});

const HOST = { name: 'host.test', type: 'A' } as const;

function between(servers: string[], timeoutMs: number): Exchange {
  const exchange = createExchange({
    servers: servers.map(parseServer),
    timeoutMs,
    trustsAd: () => true,
    random: systemRandom,
  });
  exchanges.push(exchange);
  return exchange;
}

/** The addresses of a result, or its error code. */
function summary(result: QueryResult): unknown {
  if (result.kind === 'records') return result.records.map((record) => 'data' in record && record.data);
  return result.kind === 'alias' ? result.target : result.code;
}

describe('several servers', () => {
  it('queries only the first while it answers', async () => {
    first.set('host.test', 'A', ['192.0.2.1']);
    const exchange = between([first.address, second.address], PATIENCE_MS);
    expect(summary(await exchange.query(HOST))).toEqual(['192.0.2.1']);
    expect(second.questions).toEqual([]);
  });

  it.each(['SERVFAIL', 'REFUSED', 'FORMERR', 'bad bytes', 'referral'] as const)(
    'queries the next one after %s',
    async (behavior) => {
      first.set('host.test', 'A', behavior);
      second.set('host.test', 'A', ['192.0.2.2']);
      expect(summary(await between([first.address, second.address], PATIENCE_MS).query(HOST))).toEqual([
        '192.0.2.2',
      ]);
    },
  );

  it('accepts a negative answer of the first', async () => {
    second.set('host.test', 'A', ['192.0.2.2']);
    expect(summary(await between([first.address, second.address], PATIENCE_MS).query(HOST))).toBe(
      'ENOTFOUND',
    );
    expect(second.questions).toEqual([]);
  });

  it('skips a server that does not answer, and queries it last from then on', async () => {
    first.set('*', '*', 'silent');
    second.set('*', 'A', ['192.0.2.2']);
    const exchange = between([first.address, second.address], 5000);
    expect(summary(await exchange.query(HOST))).toEqual(['192.0.2.2']);
    const before = first.questions.length;
    expect(summary(await exchange.query({ name: 'other.test', type: 'A' }))).toEqual(['192.0.2.2']);
    expect(first.questions).toHaveLength(before);
  });

  it('skips a server that refuses the connection', async () => {
    second.set('host.test', 'A', ['192.0.2.2']);
    const gone = await startDnsServer();
    await gone.close();
    expect(summary(await between([gone.address, second.address], PATIENCE_MS).query(HOST))).toEqual([
      '192.0.2.2',
    ]);
  });

  it('still queries a server first for other names after SERVFAIL', async () => {
    first.set('host.test', 'A', 'SERVFAIL');
    first.set('other.test', 'A', ['192.0.2.1']);
    second.set('host.test', 'A', ['192.0.2.2']);
    const exchange = between([first.address, second.address], PATIENCE_MS);
    await exchange.query(HOST);
    expect(summary(await exchange.query({ name: 'other.test', type: 'A' }))).toEqual(['192.0.2.1']);
  });

  it.each([
    ['SERVFAIL', 'SERVFAIL', 'ESERVFAIL'],
    ['REFUSED', 'SERVFAIL', 'EREFUSED'],
    ['silent', 'SERVFAIL', 'ESERVFAIL'],
    ['SERVFAIL', 'silent', 'ESERVFAIL'],
    ['silent', 'silent', 'ETIMEOUT'],
  ] as const)('with %s and %s the result is %s', async (one, other, code) => {
    first.set('host.test', 'A', one);
    second.set('host.test', 'A', other);
    expect(summary(await between([first.address, second.address], 2000).query(HOST))).toBe(code);
  });

  it('names the server and its response code in a failure', async () => {
    first.set('host.test', 'A', 'SERVFAIL');
    expect(await between([first.address], PATIENCE_MS).query(HOST)).toMatchObject({
      kind: 'failed',
      detail: `SERVFAIL from ${first.address}`,
    });
  });
});

describe('one server', () => {
  it('receives the query three times when it does not answer', async () => {
    first.set('host.test', 'A', 'silent');
    expect(summary(await between([first.address], 1000).query(HOST))).toBe('ETIMEOUT');
    await expect.poll(() => first.asked('host.test', 'A')).toBe(3);
  });

  it('may answer the first transmission after the second', async () => {
    first.set('host.test', 'A', { values: ['192.0.2.1'], delayMs: 1200 });
    const exchange = between([first.address], 4000);
    expect(summary(await exchange.query(HOST))).toEqual(['192.0.2.1']);
    expect(first.questions.length).toBeGreaterThan(1);
  });

  it('without EDNS support receives the query without EDNS', async () => {
    first.set('host.test', 'A', { values: ['192.0.2.1'], withoutEdns: true });
    expect(summary(await between([first.address], PATIENCE_MS).query(HOST))).toEqual(['192.0.2.1']);
    expect(first.asked('host.test', 'A')).toBe(2);
  });
});

describe('more queries than the limit', () => {
  const many = (exchange: Exchange, domain: string, count: number) =>
    Array.from({ length: count }, (_, at) => exchange.query({ name: `h${at}.${domain}`, type: 'A' }, domain));

  it('time out without answers, and do not block later queries', async () => {
    const exchange = between([first.address], 1500);
    first.set('*', '*', 'silent');
    const silent = await Promise.all(many(exchange, 'silent.test', 300));
    expect(new Set(silent.map(summary))).toEqual(new Set(['ETIMEOUT']));
    first.set('*', '*', 'NODATA');
    // The timeout also applies to these, which a busy machine may exceed.
    await expect
      .poll(async () => new Set((await Promise.all(many(exchange, 'there.test', 300))).map(summary)))
      .toEqual(new Set(['ENODATA']));
  });

  it('are delayed by queries of the same owner only, and refused above a limit', async () => {
    const exchange = between([first.address], 60_000);
    first.set('*', '*', 'silent');
    first.set('host.test', 'A', ['192.0.2.1']);
    const silent = many(exchange, 'silent.test', 1128);
    expect(await exchange.query(HOST, 'silent.test')).toMatchObject({ code: 'ETIMEOUT', isUnsent: true });
    expect(summary(await exchange.query(HOST, 'other.test'))).toEqual(['192.0.2.1']);
    expect(first.questions.filter(({ name }) => name.endsWith('.silent.test')).length).toBeLessThanOrEqual(
      128,
    );
    exchange.close();
    await Promise.all(silent);
  });
});

describe('forged answers', () => {
  it.each(['wrong id', 'wrong question'] as const)(
    'with %s are ignored in favor of the real one',
    async (forgery) => {
      first.set('host.test', 'A', { values: ['192.0.2.1'], forgery });
      expect(summary(await between([first.address], PATIENCE_MS).query(HOST))).toEqual(['192.0.2.1']);
    },
  );

  it.each(['wrong id', 'wrong question'] as const)('with %s alone are a timeout', async (behavior) => {
    first.set('host.test', 'A', behavior);
    expect(summary(await between([first.address], 200).query(HOST))).toBe('ETIMEOUT');
  });

  it('from another sender are ignored, even with the correct id and question', async () => {
    first.set('host.test', 'A', { values: ['192.0.2.1'], delayMs: 150 });
    const answer = between([first.address], PATIENCE_MS).query(HOST);
    await expect.poll(() => first.questions).toHaveLength(1);
    const [received] = first.questions;
    if (!received) throw new Error('the server received no query');
    const forger = createSocket('udp4');
    const answers = [{ type: 'A', name: 'host.test', ttl: 60, data: '192.0.2.66' } as const];
    const forged = encode({ type: 'response', id: received.id, questions: [HOST], answers });
    await new Promise((sent) => forger.send(forged, received.port, '127.0.0.1', sent));
    forger.close();
    expect(summary(await answer)).toEqual(['192.0.2.1']);
  });
});

describe('a query without servers', () => {
  it('fails immediately, and states why', async () => {
    const exchange = between([], 60_000);
    expect(await exchange.query(HOST)).toEqual({
      kind: 'failed',
      code: 'ETIMEOUT',
      detail: 'no name server is configured',
    });
  });
});

describe('closing', () => {
  it('ends queries in progress and waiting ones', async () => {
    first.set('*', '*', 'silent');
    const exchange = between([first.address], 60_000);
    const queries = Array.from({ length: 300 }, (_, at) =>
      exchange.query({ name: `host${at}.test`, type: 'A' }),
    );
    exchange.close();
    const results = await Promise.all([...queries, exchange.query(HOST)]);
    expect(new Set(results.map(summary))).toEqual(new Set(['ECANCELLED']));
  });
});

describe('server addresses', () => {
  it.each([
    ['192.0.2.53', '192.0.2.53', 53],
    ['192.0.2.53:5353', '192.0.2.53', 5353],
    ['2001:db8::53', '2001:db8::53', 53],
    ['[2001:db8::53]', '2001:db8::53', 53],
    ['[2001:db8::53]:5353', '2001:db8::53', 5353],
    ['fe80::1%eth0', 'fe80::1%eth0', 53],
  ])('parses %s', (text, address, port) => {
    expect(parseServer(text)).toEqual({ address, port });
  });

  it.each(['', 'resolver.test', '192.0.2.53:0', '192.0.2.53:70000', '192.0.2', '[192.0.2.53', ':53'])(
    'rejects %j',
    (text) => {
      expect(() => parseServer(text)).toThrow('not a DNS server address');
    },
  );
});
