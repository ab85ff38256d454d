import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { decode, encode, type Packet } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createNameserver, type Nameserver } from '../../src/dns/nameserver.ts';
import { createResolver, type Resolver } from '../../src/dns/resolver.ts';
import { framed } from '../../src/dns/transport.ts';
import { optRecord } from '../../src/dns/wire.ts';
import type { ZoneRecord } from '../../src/dns/zone-record.ts';

const DKIM = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`;

const RECORDS: ZoneRecord[] = [
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
let faults: unknown[];
let nameserver: Nameserver;
let resolver: Resolver;

beforeEach(async () => {
  records = RECORDS;
  faults = [];
  nameserver = await createNameserver({
    zone: () => records,
    origins: ['mail.test', 'own.test.'],
    listen: { host: '127.0.0.1', port: 0 },
    onError: (error) => faults.push(error),
    clock: { now: () => 1_700_000_000_000 },
  });
  resolver = createResolver({
    resolvers: [`127.0.0.1:${nameserver.port}`],
    timeoutMs: 2000,
    clock: systemClock,
    random: systemRandom,
  });
});

afterEach(async () => {
  resolver.close();
  await nameserver.close();
});

/** One UDP datagram there, one back. */
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

describe('what it says', () => {
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
    ['a type that is never there', 'mail.test', 'SRV', NOERROR, 0],
    ['a type without a name', 'mail.test', 'UNKNOWN_65', NOERROR, 0],
  ])('no to %s, with the SOA', async (_, name, type, code, answers) => {
    const { packet, rcode } = await ask(name, type);
    expect(rcode).toBe(code);
    expect(packet.flag_aa).toBe(true);
    expect(packet.answers).toHaveLength(answers);
    expect(packet.authorities).toMatchObject([
      {
        type: 'SOA',
        name: 'mail.test',
        ttl: 60,
        data: { mname: 'ns.mail.test', serial: 1_700_000_000, minimum: 60 },
      },
    ]);
  });

  it('the SOA: its own record, or one made up', async () => {
    expect((await ask('own.test', 'SOA')).packet.answers).toMatchObject([{ data: { serial: 42 } }]);
    expect((await ask('mail.test', 'SOA')).packet.answers).toMatchObject([
      { data: { rname: 'hostmaster.mail.test' } },
    ]);
  });

  it('the letter case of the question comes back as it was', async () => {
    const { packet } = await ask('sPf.MaIl.TeSt', 'TXT');
    expect(packet.questions).toMatchObject([{ name: 'sPf.MaIl.TeSt' }]);
  });

  it('ANY gets next to nothing (RFC 8482)', async () => {
    const { packet } = await ask('mail.test', 'ANY');
    expect(packet.answers).toMatchObject([{ type: 'HINFO', data: { cpu: 'RFC8482' } }]);
    expect((await ask('nothing.mail.test', 'ANY')).rcode).toBe(NXDOMAIN);
  });

  it.each([
    ['a foreign name', 'example.com', 'A'],
    ['a name that only ends alike', 'notmail.test', 'A'],
    ['a record it was handed for a foreign name', 'stray.example', 'A'],
    ['a zone transfer', 'mail.test', 'AXFR'],
  ])('REFUSED to %s', async (_, name, type) => {
    const { packet, rcode } = await ask(name, type);
    expect(rcode).toBe(REFUSED);
    expect(packet.flag_aa).toBe(false);
    expect([...(packet.answers ?? []), ...(packet.authorities ?? [])]).toEqual([]);
  });

  it('REFUSED to a class that is not the Internet', async () => {
    expect(
      (await ask('version.bind', 'TXT', { questions: [{ name: 'mail.test', type: 'TXT', class: 'CH' }] }))
        .rcode,
    ).toBe(REFUSED);
  });

  it('SERVFAIL to a circle of aliases', async () => {
    expect((await ask('circle.mail.test', 'A')).rcode).toBe(SERVFAIL);
  });

  it('SERVFAIL to a malformed record, and tells the operator; the others are served', async () => {
    records = [...RECORDS, { name: 'bad.mail.test', type: 'A', value: 'not an address', ttl: 60 }];
    expect((await ask('bad.mail.test', 'A')).rcode).toBe(SERVFAIL);
    expect(faults).toEqual([new Error('malformed A record at bad.mail.test: "not an address"')]);
    expect((await ask('mail.test', 'A')).rcode).toBe(NOERROR);
  });

  it('what is in the zone now', async () => {
    expect((await ask('new.mail.test', 'A')).rcode).toBe(NXDOMAIN);
    records = [...RECORDS, { name: 'new.mail.test', type: 'A', value: '192.0.2.3', ttl: 60 }];
    expect((await ask('new.mail.test', 'A')).packet.answers).toHaveLength(1);
  });
});

describe('sizes', () => {
  it('an asker without EDNS gets 512 bytes at most', async () => {
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
  ])('EDNS with %i bytes and an answer of more than %i: cut %s', async (udpPayloadSize, length, cut) => {
    records = [{ name: 'sized.mail.test', type: 'TXT', value: 'x'.repeat(length), ttl: 60 }];
    const opt = { ...optRecord(true), udpPayloadSize };
    const { packet } = await ask('sized.mail.test', 'TXT', { additionals: [opt] });
    expect(packet.flag_tc).toBe(cut);
    expect(packet.answers).toHaveLength(cut ? 0 : 1);
    expect(packet.additionals).toMatchObject([{ type: 'OPT', udpPayloadSize: 1232, flag_do: true }]);
  });

  it('an unknown EDNS version is BADVERS (RFC 6891 §6.1.3)', async () => {
    const opt = { ...optRecord(false), ednsVersion: 1 };
    const { packet, rcode } = await ask('mail.test', 'A', { additionals: [opt] });
    expect(rcode).toBe(NOERROR);
    expect(packet.additionals).toMatchObject([{ extendedRcode: 1 }]);
    expect(packet.answers).toEqual([]);
  });

  it('our own resolver gets the whole by TCP, in strings of 255', async () => {
    const [strings] = (await resolver.txt('huge.mail.test')).records;
    expect(strings?.map(({ length }) => length)).toEqual([...Array<number>(11).fill(255), 195]);
    expect((await resolver.txt('abc.dkim.mail.test')).records[0]?.join('')).toBe(DKIM);
  });
});

describe('what is no proper question', () => {
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
    ['a header that promises more than there is', Buffer.from('000700000001000000000000', 'hex'), FORMERR],
    ['a name that is no text', question('m\u00e4il.test', 'A'), FORMERR],
    ['NOTIFY', question('mail.test', 'SOA', { flags: 4 << 11 }), NOTIMP],
    ['UPDATE', question('mail.test', 'SOA', { flags: 5 << 11 }), NOTIMP],
  ])('%s gets a bare header', async (_, bytes, rcode) => {
    const answer = await exchangeUdp(bytes);
    expect(answer).toHaveLength(12);
    expect(answer.readUInt16BE(0)).toBe(bytes.readUInt16BE(0));
    expect(answer.readUInt16BE(2) & 0x800f).toBe(0x8000 | rcode);
  });

  it('an answer gets no answer, nor do three bytes', async () => {
    const socket = createSocket('udp4');
    const heard: Buffer[] = [];
    socket.on('message', (bytes) => heard.push(bytes));
    const send = (bytes: Buffer) =>
      new Promise((sent) => socket.send(bytes, nameserver.port, '127.0.0.1', sent));
    await send(encode({ type: 'response', id: 1, questions: [{ name: 'mail.test', type: 'A' }] }));
    await send(Buffer.from('abc'));
    await send(question('mail.test', 'A'));
    await expect.poll(() => heard.length).toBeGreaterThan(0);
    expect(heard.map((bytes) => bytes.readUInt16BE(0))).toEqual([7]);
    socket.close();
  });
});

describe('over TCP', () => {
  it('several questions at once are answered on one connection, in pieces or whole', async () => {
    const client = connect({ host: '127.0.0.1', port: nameserver.port });
    let heard = Buffer.alloc(0);
    client.on('data', (chunk) => {
      heard = Buffer.concat([heard, chunk]);
    });
    const both = Buffer.concat([
      framed(question('mail.test', 'A')),
      framed(question('huge.mail.test', 'TXT')),
    ]);
    client.write(both.subarray(0, 5));
    await new Promise((resume) => setImmediate(resume));
    client.write(both.subarray(5));
    await expect.poll(() => heard.length).toBeGreaterThan(3000);
    const length = heard.readUInt16BE(0);
    expect(decode(heard.subarray(2, 2 + length)).answers).toHaveLength(1);
    expect(decode(heard.subarray(4 + length))).toMatchObject({ flag_tc: false, answers: [{ type: 'TXT' }] });
    client.destroy();
  });

  it('a client that announces more than a question may hold is cut off', async () => {
    const client = connect({ host: '127.0.0.1', port: nameserver.port });
    client.write(Buffer.from([0xff, 0xff]));
    await once(client, 'close');
    expect((await ask('mail.test', 'A')).rcode).toBe(NOERROR);
  });

  it('a hundred idle clients do not keep others from being served by UDP, nor from closing', async () => {
    const clients = Array.from({ length: 120 }, () => connect({ host: '127.0.0.1', port: nameserver.port }));
    for (const client of clients) client.on('error', () => {});
    await expect.poll(() => clients.filter((client) => client.destroyed).length).toBe(20);
    expect((await ask('mail.test', 'A')).rcode).toBe(NOERROR);
    await nameserver.close();
    await expect.poll(() => clients.every((client) => client.destroyed)).toBe(true);
    nameserver = await createNameserver({
      zone: () => [],
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
  it.skipIf(noIpv6)(`serves and is asked${noIpv6 ? ': this machine has no ::1' : ''}`, async () => {
    const sixth = await createNameserver({
      zone: () => RECORDS,
      origins: ['mail.test'],
      listen: { host: '::1', port: 0 },
      onError: () => {},
    });
    const asking = createResolver({
      resolvers: [`[::1]:${sixth.port}`],
      timeoutMs: 2000,
      clock: systemClock,
      random: systemRandom,
    });
    expect((await asking.a('mail.test')).records).toEqual(['192.0.2.1']);
    expect((await asking.txt('huge.mail.test')).records).toHaveLength(1);
    asking.close();
    await sixth.close();
  });
});

describe('a zone by look-up', () => {
  it('is asked for each name, and says what exists', async () => {
    const asked: string[] = [];
    const byLookup = await createNameserver({
      zone: {
        find: (name) => {
          asked.push(name);
          if (name === 'key.dkim.test') return [{ name, type: 'TXT', value: 'v=DKIM1; p=', ttl: 60 }];
          return name === 'empty.dkim.test' ? [] : undefined;
        },
      },
      origins: ['dkim.test'],
      listen: { host: '127.0.0.1', port: 0 },
      onError: () => {},
    });
    const asking = createResolver({
      resolvers: [`127.0.0.1:${byLookup.port}`],
      timeoutMs: 2000,
      clock: systemClock,
      random: systemRandom,
    });
    expect((await asking.txt('KEY.dkim.test')).records).toEqual([['v=DKIM1; p=']]);
    await expect(asking.txt('empty.dkim.test')).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(asking.txt('other.dkim.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(asked).toContain('key.dkim.test');
    // The origin exists, whatever the look-up knows of it.
    expect((await asking.soa('dkim.test')).records).toMatchObject([{ mname: 'dkim.test', minimum: 60 }]);
    await expect(asking.a('dkim.test')).rejects.toMatchObject({ code: 'ENODATA' });
    asking.close();
    await byLookup.close();
  });
});

/** Skipped where the program is missing, except in CI. */
function needs(program: string): string | false {
  const missing = !(process.env.PATH ?? '').split(':').some((dir) => existsSync(`${dir}/${program}`));
  return missing && !process.env.CI ? `${program} is not installed` : false;
}

describe.each(['dig', 'kdig'])('as %s sees it', (program) => {
  const skip = needs(program);
  const run = async (...args: string[]) => {
    const all = ['@127.0.0.1', '-p', String(nameserver.port), '+norecurse', ...args];
    return (await promisify(execFile)(program, all)).stdout.replace(/\s+/g, ' ');
  };

  it.skipIf(skip)(`by UDP${skip ? `: ${skip}` : ''}`, async () => {
    const said = await run('mail.test', 'MX');
    expect(said).toContain('NOERROR');
    expect(said).toMatch(/qr aa/i);
    expect(said).toContain('mail.test. 3600 IN MX 10 mx.mail.test.');
    expect(said).not.toMatch(/warning|malformed/i);
  });

  it.skipIf(skip)(`by TCP${skip ? `: ${skip}` : ''}`, async () => {
    expect(await run('+tcp', '_25._tcp.mail.test', 'TLSA')).toMatch(/IN TLSA 3 1 1 ABABAB/);
    expect(await run('+tcp', 'huge.mail.test', 'TXT')).toContain(`"${'x'.repeat(255)}" "${'x'.repeat(255)}"`);
  });

  it.skipIf(skip)(`by TCP after a cut answer${skip ? `: ${skip}` : ''}`, async () => {
    expect(await run('huge.mail.test', 'TXT')).toContain(`"${'x'.repeat(195)}"`);
  });
});
