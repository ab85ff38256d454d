import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { decode, encode, type Packet } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import type { DnsListener } from '../../src/dns/listener.ts';
import { createNameserver } from '../../src/dns/nameserver.ts';
import { createResolver, type Resolver } from '../../src/dns/resolver.ts';
import { framed } from '../../src/dns/transport.ts';
import { optRecord } from '../../src/dns/wire.ts';
import { zoneOfList } from '../../src/dns/zone.ts';
import type { ZoneRecord } from '../../src/dns/zone-record.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { requirePrograms } from '../support/required-programs.ts';

const DKIM = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`;

const RECORDS: ZoneRecord[] = [
  {
    name: 'mail.test',
    type: 'SOA',
    value: 'ns.mail.test hostmaster.mail.test 7 3600 600 86400 60',
    ttl: 3600,
  },
  { name: 'mail.test', type: 'NS', value: 'ns.mail.test', ttl: 3600 },
  { name: 'mail.test', type: 'A', value: '192.0.2.1', ttl: 3600 },
  { name: 'Mail.test.', type: 'MX', value: 'mx.mail.test', ttl: 3600, priority: 10 },
  { name: 'spf.mail.test', type: 'TXT', value: 'v=spf1 ip4:192.0.2.1 -all', ttl: 300 },
  { name: 'track.mail.test', type: 'CNAME', value: 'mail.test', ttl: 300 },
  { name: 'out.mail.test', type: 'CNAME', value: 'elsewhere.example', ttl: 300 },
  { name: 'dangling.mail.test', type: 'CNAME', value: 'nothing.mail.test', ttl: 300 },
  { name: 'circle.mail.test', type: 'CNAME', value: 'circle.mail.test', ttl: 300 },
  { name: 'abc.dkim.mail.test', type: 'TXT', value: DKIM, ttl: 300 },
  { name: 'huge.mail.test', type: 'TXT', value: 'x'.repeat(3000), ttl: 300 },
  { name: '_25._tcp.mail.test', type: 'TLSA', value: `3 1 1 ${'ab'.repeat(32)}`, ttl: 300 },
  { name: 'mail.test', type: 'CAA', value: '0 issue "ca.example"', ttl: 300 },
  { name: 'stray.example', type: 'A', value: '192.0.2.9', ttl: 300 },
  { name: 'own.test', type: 'SOA', value: 'ns.own.test admin.own.test 42 1 2 3 4', ttl: 300 },
];

let records: ZoneRecord[];
let errors: unknown[];
let nameserver: DnsListener;
let resolver: Resolver;

beforeEach(async () => {
  records = RECORDS;
  errors = [];
  nameserver = await createNameserver({
    zone: zoneOfList(() => records, ['mail.test', 'own.test']),
    origins: ['mail.test', 'own.test.'],
    listen: { host: '127.0.0.1', port: 0 },
    onError: (error) => errors.push(error),
    clock: { now: () => 1_700_000_000_000 },
  });
  resolver = createResolver({
    resolvers: [`127.0.0.1:${nameserver.port}`],
    timeoutMs: PATIENCE_MS,
    monotonic: monotonicClock,
    random: systemRandom,
  });
});

afterEach(async () => {
  resolver.close();
  await nameserver.close();
});

/** Sends one UDP datagram and returns the answer. */
async function exchangeUdp(bytes: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  try {
    socket.send(bytes, nameserver.port, '127.0.0.1');
    const [answer] = (await once(socket, 'message')) as [Buffer];
    return answer;
  } finally {
    socket.close();
  }
}

const question = (name: string, type: string, more: Partial<Packet> = {}) =>
  encode({ type: 'query', id: 7, questions: [{ name, type: type as 'A' }], ...more });
const ask = async (name: string, type: string, more: Partial<Packet> = {}) => {
  const bytes = await exchangeUdp(question(name, type, more));
  const packet = decode(bytes);
  return { packet, rcode: (packet.flags ?? 0) & 15, size: bytes.length };
};

const NOERROR = 0;
const FORMERR = 1;
const SERVFAIL = 2;
const NXDOMAIN = 3;
const NOTIMP = 4;
const REFUSED = 5;

describe('the name server answers', () => {
  it.each([
    ['mail.test', 'A', ['192.0.2.1']],
    ['MAIL.test', 'MX', [{ preference: 10, exchange: 'mx.mail.test' }]],
    ['mail.test', 'NS', ['ns.mail.test']],
    ['spf.mail.test', 'TXT', [[Buffer.from('v=spf1 ip4:192.0.2.1 -all')]]],
    ['track.mail.test', 'CNAME', ['mail.test']],
    ['track.mail.test', 'A', ['mail.test', '192.0.2.1']],
    ['out.mail.test', 'A', ['elsewhere.example']],
    ['mail.test', 'CAA', [{ flags: 0, tag: 'issue', value: 'ca.example', issuerCritical: false }]],
  ])('%s %s', async (name, type, data) => {
    const { packet, rcode } = await ask(name, type);
    expect(rcode).toBe(NOERROR);
    expect(packet).toMatchObject({ id: 7, flag_aa: true, flag_ra: false, flag_tc: false });
    expect(packet.answers?.map((record) => 'data' in record && record.data)).toEqual(data);
  });

  it.each([
    ['a name that does not exist', 'nothing.mail.test', 'A', NXDOMAIN, 0],
    ['an alias to one', 'dangling.mail.test', 'A', NXDOMAIN, 1],
    ['a name with other types', 'spf.mail.test', 'A', NOERROR, 0],
    ['a name that is only part of longer ones', 'dkim.mail.test', 'TXT', NOERROR, 0],
    ['an alias to a name with other types', 'track.mail.test', 'TXT', NOERROR, 1],
    ['a type without records', 'mail.test', 'SRV', NOERROR, 0],
    ['a type number without a name', 'mail.test', 'UNKNOWN_65', NOERROR, 0],
  ])('negatively for %s, with the SOA', async (_, name, type, code, answers) => {
    const { packet, rcode } = await ask(name, type);
    expect(rcode).toBe(code);
    expect(packet.flag_aa).toBe(true);
    expect(packet.answers).toHaveLength(answers);
    expect(packet.authorities).toMatchObject([
      {
        type: 'SOA',
        name: 'mail.test',
        ttl: 60,
        data: { mname: 'ns.mail.test', serial: 7, minimum: 60 },
      },
    ]);
  });

  it('SOA with the published record', async () => {
    expect((await ask('own.test', 'SOA')).packet.answers).toMatchObject([{ data: { serial: 42 } }]);
  });

  it('in the letter case of the question', async () => {
    const { packet } = await ask('sPf.MaIl.TeSt', 'TXT');
    expect(packet.questions).toMatchObject([{ name: 'sPf.MaIl.TeSt' }]);
  });

  it('ANY with HINFO (RFC 8482)', async () => {
    const { packet } = await ask('mail.test', 'ANY');
    expect(packet.answers).toMatchObject([{ type: 'HINFO', data: { cpu: 'RFC8482' } }]);
    expect((await ask('nothing.mail.test', 'ANY')).rcode).toBe(NXDOMAIN);
  });

  it.each([
    ['a foreign name', 'example.com', 'A'],
    ['a name with the same suffix', 'notmail.test', 'A'],
    ['a record outside of its zones', 'stray.example', 'A'],
    ['a zone transfer', 'mail.test', 'AXFR'],
  ])('REFUSED for %s', async (_, name, type) => {
    const { packet, rcode } = await ask(name, type);
    expect(rcode).toBe(REFUSED);
    expect(packet.flag_aa).toBe(false);
    expect([...(packet.answers ?? []), ...(packet.authorities ?? [])]).toEqual([]);
  });

  it('REFUSED for another class than IN', async () => {
    expect(
      (await ask('version.bind', 'TXT', { questions: [{ name: 'mail.test', type: 'TXT', class: 'CH' }] }))
        .rcode,
    ).toBe(REFUSED);
  });

  it('BADVERS for an unsupported EDNS version (RFC 6891 §6.1.3)', async () => {
    const opt = { ...optRecord(false), ednsVersion: 1 };
    const { packet, rcode } = await ask('mail.test', 'A', { additionals: [opt] });
    expect(rcode).toBe(NOERROR);
    expect(packet.additionals).toMatchObject([{ extendedRcode: 1 }]);
    expect(packet.answers).toEqual([]);
  });

  it('SERVFAIL for a loop of aliases', async () => {
    expect((await ask('circle.mail.test', 'A')).rcode).toBe(SERVFAIL);
  });

  it('SERVFAIL for a malformed record, and reports it', async () => {
    records = [...RECORDS, { name: 'bad.mail.test', type: 'A', value: 'not an address', ttl: 60 }];
    expect((await ask('bad.mail.test', 'A')).rcode).toBe(SERVFAIL);
    expect(errors).toEqual([new Error('malformed A record at bad.mail.test: "not an address"')]);
    expect((await ask('mail.test', 'A')).rcode).toBe(NOERROR);
  });

  it('with the current records', async () => {
    expect((await ask('new.mail.test', 'A')).rcode).toBe(NXDOMAIN);
    records = [...RECORDS, { name: 'new.mail.test', type: 'A', value: '192.0.2.3', ttl: 60 }];
    expect((await ask('new.mail.test', 'A')).packet.answers).toHaveLength(1);
  });
});

describe('sizes', () => {
  it('are at most 512 bytes without EDNS', async () => {
    const { packet, size } = await ask('abc.dkim.mail.test', 'TXT');
    expect(size).toBeLessThanOrEqual(512);
    expect(packet).toMatchObject({ answers: [{ type: 'TXT' }], flag_tc: false });
    const cut = await ask('huge.mail.test', 'TXT');
    expect(cut.packet).toMatchObject({ flag_tc: true, answers: [] });
  });

  it.each([
    [65_535, 1100, false],
    [65_535, 1300, true],
    [1232, 1100, false],
    [600, 1100, true],
    [600, 520, false],
    [1, 400, false],
    [1, 520, true],
  ])(
    'with EDNS of %i bytes and an answer of more than %i: truncated %s',
    async (udpPayloadSize, length, cut) => {
      records = [{ name: 'sized.mail.test', type: 'TXT', value: 'x'.repeat(length), ttl: 60 }];
      const opt = { ...optRecord(true), udpPayloadSize };
      const { packet } = await ask('sized.mail.test', 'TXT', { additionals: [opt] });
      expect(packet.flag_tc).toBe(cut);
      expect(packet.answers).toHaveLength(cut ? 0 : 1);
      expect(packet.additionals).toMatchObject([{ type: 'OPT', udpPayloadSize: 1232, flag_do: true }]);
    },
  );

  it('are complete over TCP, in strings of 255 bytes', async () => {
    const [strings] = (await resolver.txt('huge.mail.test')).records;
    expect(strings?.map(({ length }) => length)).toEqual([...Array<number>(11).fill(255), 195]);
    expect((await resolver.txt('abc.dkim.mail.test')).records[0]?.join('')).toBe(DKIM);
  });
});

describe('a malformed query', () => {
  it.each([
    [
      'two questions',
      question('mail.test', 'A', {
        questions: [
          { name: 'a.mail.test', type: 'A' },
          { name: 'mail.test', type: 'A' },
        ],
      }),
      FORMERR,
    ],
    ['no question', question('mail.test', 'A', { questions: [] }), FORMERR],
    [
      'a question with answers',
      question('mail.test', 'A', { answers: [{ type: 'A', name: 'x.test', data: '192.0.2.1' }] }),
      FORMERR,
    ],
    [
      'a header that counts more records than the message has',
      Buffer.from('000700000001000000000000', 'hex'),
      FORMERR,
    ],
    ['a name that is not ASCII', question('m\u00e4il.test', 'A'), FORMERR],
    ['NOTIFY', question('mail.test', 'SOA', { flags: 4 << 11 }), NOTIMP],
    ['UPDATE', question('mail.test', 'SOA', { flags: 5 << 11 }), NOTIMP],
  ])('%s is answered with a header only', async (_, bytes, rcode) => {
    const answer = await exchangeUdp(bytes);
    expect(answer).toHaveLength(12);
    expect(answer.readUInt16BE(0)).toBe(bytes.readUInt16BE(0));
    expect(answer.readUInt16BE(2) & 0x800f).toBe(0x8000 | rcode);
  });

  it('of three bytes, and a response, are not answered', async () => {
    const socket = createSocket('udp4');
    const received: Buffer[] = [];
    socket.on('message', (bytes) => received.push(bytes));
    const send = (bytes: Buffer) =>
      new Promise((sent) => socket.send(bytes, nameserver.port, '127.0.0.1', sent));
    await send(encode({ type: 'response', id: 1, questions: [{ name: 'mail.test', type: 'A' }] }));
    await send(Buffer.from('abc'));
    await send(question('mail.test', 'A'));
    await expect.poll(() => received.length).toBeGreaterThan(0);
    expect(received.map((bytes) => bytes.readUInt16BE(0))).toEqual([7]);
    socket.close();
  });
});

describe('over TCP', () => {
  it('answers several queries on one connection, in any segments', async () => {
    const client = connect({ host: '127.0.0.1', port: nameserver.port });
    let received = Buffer.alloc(0);
    client.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
    });
    const both = Buffer.concat([
      framed(question('mail.test', 'A')),
      framed(question('huge.mail.test', 'TXT')),
    ]);
    client.write(both.subarray(0, 5));
    await new Promise((resume) => setImmediate(resume));
    client.write(both.subarray(5));
    await expect.poll(() => received.length).toBeGreaterThan(3000);
    const length = received.readUInt16BE(0);
    expect(decode(received.subarray(2, 2 + length)).answers).toHaveLength(1);
    expect(decode(received.subarray(4 + length))).toMatchObject({
      flag_tc: false,
      answers: [{ type: 'TXT' }],
    });
    client.destroy();
  });

  it('disconnects a client that announces an oversized query', async () => {
    const client = connect({ host: '127.0.0.1', port: nameserver.port });
    client.write(Buffer.from([0xff, 0xff]));
    await once(client, 'close');
    expect((await ask('mail.test', 'A')).rcode).toBe(NOERROR);
  });

  it('serves UDP and closes with a hundred idle clients', async () => {
    const clients = Array.from({ length: 120 }, () => connect({ host: '127.0.0.1', port: nameserver.port }));
    for (const client of clients) client.on('error', () => {});
    await expect.poll(() => clients.filter((client) => client.destroyed).length).toBe(20);
    expect((await ask('mail.test', 'A')).rcode).toBe(NOERROR);
    await nameserver.close();
    await expect.poll(() => clients.every((client) => client.destroyed)).toBe(true);
    nameserver = await createNameserver({
      zone: zoneOfList(() => [], []),
      origins: [],
      listen: { host: '127.0.0.1', port: nameserver.port },
      onError: () => {},
    });
  });
});

const noIpv6 = !Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === '::1'),
);

describe('on IPv6', () => {
  it.skipIf(noIpv6)(`answers over IPv6${noIpv6 ? ': this machine has no ::1' : ''}`, async () => {
    const sixth = await createNameserver({
      zone: zoneOfList(() => RECORDS, ['mail.test']),
      origins: ['mail.test'],
      listen: { host: '::1', port: 0 },
      onError: () => {},
    });
    const resolver = createResolver({
      resolvers: [`[::1]:${sixth.port}`],
      timeoutMs: PATIENCE_MS,
      monotonic: monotonicClock,
      random: systemRandom,
    });
    expect((await resolver.a('mail.test')).records).toEqual(['192.0.2.1']);
    expect((await resolver.txt('huge.mail.test')).records).toHaveLength(1);
    resolver.close();
    await sixth.close();
  });
});

describe('a zone with a lookup function', () => {
  it('looks up each name', async () => {
    const names: string[] = [];
    const byLookup = await createNameserver({
      zone: {
        find: (name) => {
          names.push(name);
          if (name === 'key.dkim.test') return [{ name, type: 'TXT', value: 'v=DKIM1; p=', ttl: 60 }];
          return name === 'empty.dkim.test' ? [] : undefined;
        },
      },
      origins: ['dkim.test'],
      listen: { host: '127.0.0.1', port: 0 },
      onError: () => {},
    });
    const resolver = createResolver({
      resolvers: [`127.0.0.1:${byLookup.port}`],
      timeoutMs: PATIENCE_MS,
      monotonic: monotonicClock,
      random: systemRandom,
    });
    expect((await resolver.txt('KEY.dkim.test')).records).toEqual([['v=DKIM1; p=']]);
    await expect(resolver.txt('empty.dkim.test')).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.txt('other.dkim.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(names).toContain('key.dkim.test');
    // The origin exists without records in the zone.
    await expect(resolver.a('dkim.test')).rejects.toMatchObject({ code: 'ENODATA' });
    resolver.close();
    await byLookup.close();
  });
});

describe.each(['dig', 'kdig'] as const)('%s accepts the responses', (program) => {
  const required = requirePrograms(program);
  const run = async (...args: string[]) => {
    const all = ['@127.0.0.1', '-p', String(nameserver.port), '+norecurse', ...args];
    return (await promisify(execFile)(program, all)).stdout.replace(/\s+/g, ' ');
  };

  it.skipIf(required.missing)(`by UDP${required.reason}`, async () => {
    const output = await run('mail.test', 'MX');
    expect(output).toContain('NOERROR');
    expect(output).toMatch(/qr aa/i);
    expect(output).toContain('mail.test. 3600 IN MX 10 mx.mail.test.');
    expect(output).not.toMatch(/warning|malformed/i);
  });

  it.skipIf(required.missing)(`by TCP${required.reason}`, async () => {
    expect(await run('+tcp', '_25._tcp.mail.test', 'TLSA')).toMatch(/IN TLSA 3 1 1 ABABAB/);
    expect(await run('+tcp', 'huge.mail.test', 'TXT')).toContain(`"${'x'.repeat(255)}" "${'x'.repeat(255)}"`);
  });

  it.skipIf(required.missing)(`by TCP after a truncated response${required.reason}`, async () => {
    expect(await run('huge.mail.test', 'TXT')).toContain(`"${'x'.repeat(195)}"`);
  });
});
