import { createSocket } from 'node:dgram';
import { encode } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { createExchange, type Exchange } from '../../src/dns/exchange.ts';
import type { QueryResult } from '../../src/dns/query-result.ts';
import { parseServer } from '../../src/dns/transport.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';

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
  const exchange = createExchange({ servers: servers.map(parseServer), timeoutMs, random: systemRandom });
  exchanges.push(exchange);
  return exchange;
}

/** The addresses of an outcome, or the code of its trouble. */
function summary(outcome: QueryResult): unknown {
  if (outcome.kind === 'records') return outcome.records.map((record) => 'data' in record && record.data);
  return outcome.kind === 'alias' ? outcome.target : outcome.code;
}

describe('several servers', () => {
  it('the first alone is asked while it answers', async () => {
    first.set('host.test', 'A', ['192.0.2.1']);
    const exchange = between([first.address, second.address], 2000);
    expect(summary(await exchange.query(HOST))).toEqual(['192.0.2.1']);
    expect(second.questions).toEqual([]);
  });

  it.each(['SERVFAIL', 'REFUSED', 'FORMERR', 'bad bytes', 'referral'] as const)(
    'after %s the next one is asked',
    async (behaviour) => {
      first.set('host.test', 'A', behaviour);
      second.set('host.test', 'A', ['192.0.2.2']);
      expect(summary(await between([first.address, second.address], 2000).query(HOST))).toEqual([
        '192.0.2.2',
      ]);
    },
  );

  it('a no of the first is final', async () => {
    second.set('host.test', 'A', ['192.0.2.2']);
    expect(summary(await between([first.address, second.address], 2000).query(HOST))).toBe('ENOTFOUND');
    expect(second.questions).toEqual([]);
  });

  it('a silent server is passed over, and comes last from then on', async () => {
    first.set('*', '*', 'silent');
    second.set('*', 'A', ['192.0.2.2']);
    const exchange = between([first.address, second.address], 1000);
    expect(summary(await exchange.query(HOST))).toEqual(['192.0.2.2']);
    const before = first.questions.length;
    expect(summary(await exchange.query({ name: 'other.test', type: 'A' }))).toEqual(['192.0.2.2']);
    expect(first.questions).toHaveLength(before);
  });

  it('a server that is not there is passed over', async () => {
    second.set('host.test', 'A', ['192.0.2.2']);
    const gone = await startDnsServer();
    await gone.close();
    expect(summary(await between([gone.address, second.address], 5000).query(HOST))).toEqual(['192.0.2.2']);
  });

  it('a server that answers SERVFAIL stays the first for other questions', async () => {
    first.set('host.test', 'A', 'SERVFAIL');
    first.set('other.test', 'A', ['192.0.2.1']);
    second.set('host.test', 'A', ['192.0.2.2']);
    const exchange = between([first.address, second.address], 2000);
    await exchange.query(HOST);
    expect(summary(await exchange.query({ name: 'other.test', type: 'A' }))).toEqual(['192.0.2.1']);
  });

  it.each([
    ['SERVFAIL', 'SERVFAIL', 'ESERVFAIL'],
    ['REFUSED', 'SERVFAIL', 'EREFUSED'],
    ['silent', 'SERVFAIL', 'ESERVFAIL'],
    ['SERVFAIL', 'silent', 'ESERVFAIL'],
    ['silent', 'silent', 'ETIMEOUT'],
  ] as const)('%s and %s make %s', async (one, other, code) => {
    first.set('host.test', 'A', one);
    second.set('host.test', 'A', other);
    expect(summary(await between([first.address, second.address], 600).query(HOST))).toBe(code);
  });

  it('the trouble names the server and what it said', async () => {
    first.set('host.test', 'A', 'SERVFAIL');
    expect(await between([first.address], 2000).query(HOST)).toMatchObject({
      kind: 'failed',
      detail: `SERVFAIL from ${first.address}`,
    });
  });
});

describe('one server', () => {
  it('is asked again when it stays silent, three times in all', async () => {
    first.set('host.test', 'A', 'silent');
    expect(summary(await between([first.address], 200).query(HOST))).toBe('ETIMEOUT');
    await expect.poll(() => first.asked('host.test', 'A')).toBe(3);
  });

  it('may answer the first question after the second was sent', async () => {
    first.set('host.test', 'A', { values: ['192.0.2.1'], delayMs: 300 });
    const exchange = between([first.address], 800);
    expect(summary(await exchange.query(HOST))).toEqual(['192.0.2.1']);
    expect(first.questions.length).toBeGreaterThan(1);
  });

  it('that is too old for EDNS is asked without', async () => {
    first.set('host.test', 'A', { values: ['192.0.2.1'], withoutEdns: true });
    expect(summary(await between([first.address], 2000).query(HOST))).toEqual(['192.0.2.1']);
    expect(first.asked('host.test', 'A')).toBe(2);
  });
});

describe('more questions than are asked at one time', () => {
  it('all end in time when nobody answers, and the next ones are answered', async () => {
    const many = (domain: string) =>
      Promise.all(
        Array.from({ length: 300 }, (_, at) => exchange.query({ name: `h${at}.${domain}`, type: 'A' })),
      );
    const exchange = between([first.address], 1500);
    first.set('*', '*', 'silent');
    expect(new Set((await many('silent.test')).map(summary))).toEqual(new Set(['ETIMEOUT']));
    first.set('*', '*', 'NODATA');
    expect(new Set((await many('there.test')).map(summary))).toEqual(new Set(['ENODATA']));
  });
});

describe('answers that are none', () => {
  it.each(['wrong id', 'wrong question'] as const)(
    '%s is passed over for the true answer',
    async (forgery) => {
      first.set('host.test', 'A', { values: ['192.0.2.1'], forgery });
      expect(summary(await between([first.address], 2000).query(HOST))).toEqual(['192.0.2.1']);
    },
  );

  it.each(['wrong id', 'wrong question'] as const)('%s alone is silence', async (behaviour) => {
    first.set('host.test', 'A', behaviour);
    expect(summary(await between([first.address], 200).query(HOST))).toBe('ETIMEOUT');
  });

  it('another sender is not heard, even with the right id and question', async () => {
    first.set('host.test', 'A', { values: ['192.0.2.1'], delayMs: 150 });
    const answer = between([first.address], 5000).query(HOST);
    await expect.poll(() => first.questions).toHaveLength(1);
    const seen = first.questions[0];
    if (!seen) throw new Error('no question was seen');
    const forger = createSocket('udp4');
    const answers = [{ type: 'A', name: 'host.test', ttl: 60, data: '192.0.2.66' } as const];
    const forged = encode({ type: 'response', id: seen.id, questions: [HOST], answers });
    await new Promise((sent) => forger.send(forged, seen.port, '127.0.0.1', sent));
    forger.close();
    expect(summary(await answer)).toEqual(['192.0.2.1']);
  });
});

describe('closing', () => {
  it('ends what is open and what waits for its turn', async () => {
    first.set('*', '*', 'silent');
    const exchange = between([first.address], 60_000);
    const asking = Array.from({ length: 300 }, (_, at) =>
      exchange.query({ name: `host${at}.test`, type: 'A' }),
    );
    exchange.close();
    const outcomes = await Promise.all([...asking, exchange.query(HOST)]);
    expect(new Set(outcomes.map(summary))).toEqual(new Set(['ECANCELLED']));
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
  ])('%s', (text, address, port) => {
    expect(parseServer(text)).toEqual({ address, port });
  });

  it.each(['', 'resolver.test', '192.0.2.53:0', '192.0.2.53:70000', '192.0.2', '[192.0.2.53', ':53'])(
    '%j is none',
    (text) => {
      expect(() => parseServer(text)).toThrow('not a DNS server address');
    },
  );
});
