import { connect } from 'node:net';
import { decode, encode, type Packet, type PacketOpt } from 'dns-packet';
import { array, assert, constantFrom, nat, oneof, property, tuple, uint8Array } from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createNameserver, type NameserverOptions, type QueryOutcome } from '../../src/dns/nameserver.ts';
import { createResponseRateLimit, networkOf } from '../../src/dns/server/rate-limit.ts';
import { serialDistance } from '../../src/dns/server/transfer.ts';
import { framed, queryTcp, queryUdp } from '../../src/dns/transport.ts';
import { optRecord } from '../../src/dns/wire.ts';
import { zoneOfList } from '../../src/dns/zone.ts';
import type { ZoneRecord } from '../../src/dns/zone-record.ts';
import { respondTo } from './respond.ts';

const SOA = 'ns1.mail.test postmaster.mail.test 2000 3600 600 1209600 60';

const RECORDS: ZoneRecord[] = [
  { name: 'mail.test', type: 'SOA', value: SOA, ttl: 3600 },
  { name: 'mail.test', type: 'NS', value: 'ns1.mail.test', ttl: 3600 },
  { name: 'ns1.mail.test', type: 'A', value: '192.0.2.1', ttl: 3600 },
  { name: '*._report._dmarc.mail.test', type: 'TXT', value: 'v=DMARC1', ttl: 3600 },
  { name: 'known._report._dmarc.mail.test', type: 'A', value: '192.0.2.7', ttl: 3600 },
  { name: 'track.mail.test', type: 'CNAME', value: 'ns1.mail.test', ttl: 3600 },
];

const DATA = { zone: zoneOfList(() => RECORDS, ['mail.test']), origins: ['mail.test'] };

function query(name: string, type: string, packet: Packet = {}): Buffer {
  // dns-packet's types lack UNKNOWN_<number>, which it encodes.
  return encode({ type: 'query', id: 7, questions: [{ name, type: type as 'A' }], ...packet });
}

function answerTo(name: string, type: string) {
  const answer = respondTo(query(name, type), 'udp', DATA);
  if (answer === null) throw new Error('there is no answer');
  const packet = decode(answer);
  return {
    rcode: (packet.flags ?? 0) & 0x0f,
    answers: packet.answers ?? [],
    authorities: packet.authorities ?? [],
  };
}

async function startServer(options: Partial<NameserverOptions> = {}) {
  const results: QueryOutcome[] = [];
  const errors: unknown[] = [];
  const server = await createNameserver({
    ...DATA,
    listen: { host: '127.0.0.1', port: 0 },
    onError: (error) => errors.push(error),
    observe: (_, result) => results.push(result),
    ...options,
  });
  onTestFinished(() => server.close());
  const to = { address: '127.0.0.1', port: server.port };
  const any = (bytes: Buffer) => bytes;
  return {
    server,
    results,
    errors,
    udp: (bytes: Buffer) => queryUdp(to, bytes, any, AbortSignal.timeout(5000)),
    tcp: (bytes: Buffer) => queryTcp(to, bytes, any, AbortSignal.timeout(5000)),
  };
}

describe('wildcards (RFC 4592)', () => {
  it.each([
    ['a name that does not exist', 'example.org._report._dmarc.mail.test', 'TXT', 0, 1],
    ['several labels', 'a.b.c._report._dmarc.mail.test', 'TXT', 0, 1],
    ['another type: no data', 'example.org._report._dmarc.mail.test', 'A', 0, 0],
    ['not a name that exists', 'known._report._dmarc.mail.test', 'TXT', 0, 0],
    ['not below a name that exists', 'x.known._report._dmarc.mail.test', 'TXT', 3, 0],
    ['not below another name', 'x._dmarc.mail.test', 'TXT', 3, 0],
    ['the wildcard itself', '*._report._dmarc.mail.test', 'TXT', 0, 1],
  ])('%s', (_, name, type, rcode, answers) => {
    const answer = answerTo(name, type);
    expect(answer.rcode).toBe(rcode);
    expect(answer.answers).toHaveLength(answers);
    expect(answer.answers.every((record) => record.name === name)).toBe(true);
  });
});

describe('an answer', () => {
  it('has its name in the letter case of the question', () => {
    expect(answerTo('nS1.Mail.TEST', 'A').answers).toMatchObject([{ name: 'nS1.Mail.TEST' }]);
    expect(answerTo('TRACK.mail.test', 'A').answers.map(({ name }) => name)).toEqual([
      'TRACK.mail.test',
      'ns1.mail.test',
    ]);
  });

  it('that is negative has the negative TTL (RFC 2308 §3)', () => {
    expect(answerTo('nothing.mail.test', 'A').authorities).toMatchObject([{ type: 'SOA', ttl: 60 }]);
    expect(answerTo('mail.test', 'SOA').answers).toMatchObject([{ type: 'SOA', ttl: 3600 }]);
  });

  it('ignores EDNS options, and rejects two OPT records', () => {
    const option: PacketOpt = { code: 12, length: 4 };
    const withOption = respondTo(
      query('mail.test', 'NS', { additionals: [optRecord(false, 0, [option])] }),
      'udp',
      DATA,
    );
    expect(decode(withOption ?? Buffer.alloc(0)).answers).toHaveLength(1);
    const twice = respondTo(
      query('mail.test', 'NS', { additionals: [optRecord(false), optRecord(false)] }),
      'udp',
      DATA,
    );
    expect((twice?.readUInt16BE(2) ?? 0) & 0x0f).toBe(1);
  });

  it('is an error for a label with a dot, which is another name', () => {
    const bytes = query('ns1xmail.test', 'A');
    bytes[bytes.indexOf('x', 12)] = 0x2e;
    expect((respondTo(bytes, 'udp', DATA)?.readUInt16BE(2) ?? 0) & 0x0f).toBe(1);
  });

  it('has at most 1232 bytes over UDP, whatever the bytes of the query are', () => {
    const valid = constantFrom('mail.test', 'ns1.mail.test', 'x._report._dmarc.mail.test', 'TRACK.mail.test');
    const type = constantFrom('A', 'ANY', 'TXT', 'SOA', 'NS', 'CNAME', 'IXFR', 'AXFR');
    const mutated = tuple(valid, type, array(tuple(nat(60), nat(255)), { maxLength: 6 })).map(
      ([name, kind, changes]) => {
        const bytes = query(name, kind);
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
        return bytes;
      },
    );
    assert(
      property(
        oneof(
          mutated,
          uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
        ),
        (bytes) => {
          const answer = respondTo(bytes, 'udp', DATA);
          expect(answer === null || answer.length <= 1232).toBe(true);
        },
      ),
      { numRuns: 5000 },
    );
  });
});

describe('limits of responses', () => {
  it('count identical responses per network, and truncate every second one above the limit', () => {
    let now = 1_000_000;
    const limit = createResponseRateLimit({ now: () => now }, 2);
    const judge = (address: string, kind = 'A name') => limit.judge(address, kind);
    expect([judge('192.0.2.1'), judge('192.0.2.200'), judge('192.0.2.1'), judge('192.0.2.1')]).toEqual([
      'send',
      'send',
      'truncate',
      'drop',
    ]);
    expect(judge('198.51.100.1')).toBe('send');
    expect(judge('192.0.2.1', 'TXT name')).toBe('send');
    now += 1000;
    expect(judge('192.0.2.1')).toBe('send');
  });

  it('treat IPv4 addresses in IPv6 as IPv4, and count IPv6 by /56', () => {
    expect(networkOf('::ffff:192.0.2.9', 24, 56)).toBe(networkOf('192.0.2.1', 24, 56));
    expect(networkOf('2001:db8:0:12::1', 24, 56)).toBe(networkOf('2001:db8:0:34::1', 24, 56));
    expect(networkOf('2001:db8:0:100::1', 24, 56)).not.toBe(networkOf('2001:db8:0:34::1', 24, 56));
  });

  it('let a real client continue over TCP', async () => {
    const clock = { now: () => 0 };
    const limits = { queriesPerSecond: 100, responsesPerSecond: 1, tcp: TCP, transfers: 1 };
    const { udp, tcp } = await startServer({ clock, limits });
    const bytes = query('ns1.mail.test', 'A');
    expect(decode(await udp(bytes))).toMatchObject({ flag_tc: false, answers: [{ data: '192.0.2.1' }] });
    expect(decode(await udp(bytes))).toMatchObject({ flag_tc: true, answers: [] });
    expect(decode(await tcp(bytes))).toMatchObject({ flag_tc: false, answers: [{ data: '192.0.2.1' }] });
  });

  it('drop queries above the total, without work', async () => {
    const limits = { queriesPerSecond: 3, responsesPerSecond: 0, tcp: TCP, transfers: 1 };
    const { udp, results, server } = await startServer({ clock: { now: () => 0 }, limits });
    for (let n = 0; n < 3; n++) await udp(query('mail.test', 'NS'));
    const client = connect({ host: '127.0.0.1', port: server.port });
    client.write(framed(query('mail.test', 'NS')));
    await expect.poll(() => results).toEqual(['answered', 'answered', 'answered', 'dropped']);
    client.destroy();
  });
});

const TCP = { connections: 10, connectionsPerAddress: 10 };

describe('TCP connections', () => {
  it('answer hundreds of queries of one segment in order', async () => {
    const { server } = await startServer();
    const client = connect({ host: '127.0.0.1', port: server.port });
    onTestFinished(() => void client.destroy());
    const ids: number[] = [];
    let received = Buffer.alloc(0);
    client.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        ids.push(received.readUInt16BE(2));
        received = received.subarray(2 + received.readUInt16BE(0));
      }
    });
    const count = 500;
    const queries = Array.from({ length: count }, (_, id) => framed(query('mail.test', 'NS', { id })));
    client.write(Buffer.concat(queries));
    await expect.poll(() => ids.length).toBe(count);
    expect(ids).toEqual(Array.from({ length: count }, (_, id) => id));
  });

  it('of one address replace its own, the least recently used first', async () => {
    const limits = {
      queriesPerSecond: 1000,
      responsesPerSecond: 0,
      tcp: { connections: 10, connectionsPerAddress: 2 },
      transfers: 1,
    };
    const { server, tcp } = await startServer({ limits });
    const open = () => connect({ host: '127.0.0.1', port: server.port });
    const first = open();
    await new Promise((resolve) => first.once('connect', resolve));
    const second = open();
    await new Promise((resolve) => second.once('connect', resolve));
    first.write(framed(query('mail.test', 'NS')));
    await new Promise((resolve) => first.once('data', resolve));
    expect(decode(await tcp(query('mail.test', 'NS'))).answers).toHaveLength(1);
    await expect.poll(() => second.destroyed || second.readableEnded).toBe(true);
    expect(first.destroyed).toBe(false);
    first.destroy();
    second.destroy();
  });
});

describe('zone transfers (RFC 5936)', () => {
  const transfers = {
    isAllowed: () => true,
    records: async function* () {
      yield RECORDS.filter(({ type }) => type !== 'SOA');
    },
  };
  const ixfr = (serial: number) =>
    query('mail.test', 'IXFR', {
      authorities: [
        {
          type: 'SOA',
          name: 'mail.test',
          data: { mname: 'ns1.mail.test', rname: 'postmaster.mail.test', serial },
        },
      ],
    });

  it.each([
    ['without a list of secondaries', undefined, 'mail.test'],
    ['for another server', { ...transfers, isAllowed: () => false }, 'mail.test'],
    ['of a name that is not a zone', transfers, 'ns1.mail.test'],
  ])('are refused %s', async (_, allowed, name) => {
    const { tcp } = await startServer(allowed === undefined ? {} : { transfers: allowed });
    expect((decode(await tcp(query(name, 'AXFR'))).flags ?? 0) & 0x0f).toBe(5);
  });

  it('are refused over UDP; IXFR is answered with the SOA there', async () => {
    const { udp } = await startServer({ transfers });
    expect((decode(await udp(query('mail.test', 'AXFR'))).flags ?? 0) & 0x0f).toBe(5);
    expect(decode(await udp(ixfr(1999))).answers).toMatchObject([{ type: 'SOA', data: { serial: 2000 } }]);
  });

  it('with an unsupported EDNS version are answered BADVERS and counted as malformed', async () => {
    const { tcp, results } = await startServer({ transfers });
    const opt = { ...optRecord(false), ednsVersion: 1 };
    for (const type of ['AXFR', 'NS']) {
      const response = decode(await tcp(query('mail.test', type, { additionals: [opt] })));
      expect([(response.flags ?? 0) & 0x0f, response.answers]).toEqual([0, []]);
      expect(response.additionals).toMatchObject([{ extendedRcode: 1 }]);
    }
    expect(results).toEqual(['malformed', 'malformed']);
  });

  it('begin and end with the SOA', async () => {
    const { tcp } = await startServer({ transfers });
    const answers = decode(await tcp(query('mail.test', 'AXFR'))).answers ?? [];
    expect(answers).toHaveLength(RECORDS.length + 1);
    expect([answers.at(0)?.type, answers.at(-1)?.type]).toEqual(['SOA', 'SOA']);
  });

  it.each([
    ['an older version', 1999, RECORDS.length + 1],
    ['the same version', 2000, 1],
    ['a newer version', 2001, 1],
  ])('by IXFR from %s have %i as serial and %i records', async (_, serial, count) => {
    const { tcp } = await startServer({ transfers });
    expect(decode(await tcp(ixfr(serial))).answers).toHaveLength(count);
  });

  it('consist of several messages for a large zone, the first of which has the question', async () => {
    const many = Array.from(
      { length: 2000 },
      (_, n): ZoneRecord => ({
        name: `n${n}.mail.test`,
        type: 'TXT',
        value: 'x'.repeat(200),
        ttl: 60,
      }),
    );
    const large = {
      isAllowed: () => true,
      records: async function* () {
        yield many;
      },
    };
    const { server } = await startServer({ transfers: large });
    const client = connect({ host: '127.0.0.1', port: server.port });
    onTestFinished(() => void client.destroy());
    let received = Buffer.alloc(0);
    const counts: number[] = [];
    const questions: number[] = [];
    client.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const packet = decode(received.subarray(2, 2 + received.readUInt16BE(0)));
        counts.push(packet.answers?.length ?? 0);
        questions.push(packet.questions?.length ?? 0);
        received = received.subarray(2 + received.readUInt16BE(0));
      }
    });
    client.write(framed(query('mail.test', 'AXFR')));
    await expect.poll(() => counts.reduce((sum, count) => sum + count, 0)).toBe(many.length + 2);
    expect(counts.length).toBeGreaterThan(20);
    expect(questions).toEqual([1, ...Array<number>(counts.length - 1).fill(0)]);
  });

  it('compare serial numbers in their arithmetic (RFC 1982)', () => {
    expect(serialDistance(2, 1)).toBe(1);
    expect(serialDistance(0, 0xffff_ffff)).toBe(1);
    expect(serialDistance(0x7fff_ffff, 0xffff_ffff)).toBeLessThan(0);
  });
});
