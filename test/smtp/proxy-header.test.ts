import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readProxyHeader } from '../../src/smtp/sockets.ts';
import { sample } from '../support/samples.ts';
import { PLAIN_MAIL } from './mx/mails.ts';
import { HOST, startMx } from './mx/setup.ts';
import { plain, startSubmission } from './submission/setup.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const [PROXIED, LOCAL, TCP4, TCP6] = ['21', '20', '11', '21'];
/** 203.0.113.7 to 192.0.2.1, ports 40000 and 25. */
const FROM_IPV4 = 'cb007107c00002019c400019';
const FROM_IPV6 = `20010db8${'0'.repeat(23)}720010db8${'0'.repeat(23)}19c400019`;

const header = (command: string, family: string, payload: string) =>
  Buffer.from(
    SIGNATURE + command + family + (payload.length / 2).toString(16).padStart(4, '0') + payload,
    'hex',
  );

describe('a binary PROXY header', () => {
  it.each([
    ['of an IPv4 connection', PROXIED, TCP4, FROM_IPV4, 'PROXY TCP4 203.0.113.7 192.0.2.1 40000 25\r\n'],
    ['of an IPv6 connection', PROXIED, TCP6, FROM_IPV6, 'PROXY TCP6 2001:db8::7 2001:db8::1 40000 25\r\n'],
    [
      'with TLVs after the addresses',
      PROXIED,
      TCP4,
      `${FROM_IPV4}04000400000000`,
      'PROXY TCP4 203.0.113.7 192.0.2.1 40000 25\r\n',
    ],
    ['of the proxy itself', LOCAL, '00', '', 'PROXY UNKNOWN\r\n'],
    ['of a local socket', PROXIED, '31', '00'.repeat(216), 'PROXY UNKNOWN\r\n'],
  ])('is translated to version 1: %s', (_, command, family, payload, line) => {
    const bytes = header(command, family, payload);
    expect(readProxyHeader(Buffer.concat([bytes, Buffer.from('EHLO')]))).toEqual({
      line,
      length: bytes.length,
    });
  });

  it.each([
    ['of another version', header('31', TCP4, FROM_IPV4)],
    ['with an unknown command', header('22', TCP4, FROM_IPV4)],
    ['too short for its addresses', header(PROXIED, TCP4, FROM_IPV4.slice(2))],
    ['longer than the maximum', Buffer.from(`${SIGNATURE}2111ffff`, 'hex')],
  ])('is malformed: %s', (_, bytes) => {
    expect(readProxyHeader(bytes)).toBe('malformed');
  });

  it.each([
    ['version 1', 'PROXY TCP4 203.0.113.7 192.0.2.1 40000 25\r\n'],
    ['a greeting', 'EHLO mta.example\r\n'],
    ['empty lines', '\r\n\r\nEHLO'],
  ])('is absent in %s', (_, text) => {
    expect(readProxyHeader(Buffer.from(text))).toBe('absent');
  });

  it.each([
    ['alone', 'PROXY UNKNOWN\r\n'],
    ['with addresses', sample('mx-proxy-unknown.txt').toString()],
    ['with other text', 'PROXY UNKNOWN x\r\n'],
  ])('of version 1 without an address is translated: %s', (_, line) => {
    expect(readProxyHeader(Buffer.from(`${line}EHLO mta.example`))).toEqual({
      line: 'PROXY UNKNOWN\r\n',
      length: line.length,
    });
    expect(readProxyHeader(Buffer.from(line.slice(0, -1)))).toBe('incomplete');
  });

  it('of version 1 is absent when it is longer than the maximum', () => {
    expect(readProxyHeader(Buffer.from(`PROXY UNKNOWN ${'x'.repeat(200)}`))).toBe('absent');
  });

  it('is incomplete wherever it is cut', () => {
    const whole = header(PROXIED, TCP6, FROM_IPV6);
    for (let n = 0; n < whole.length; n++) expect(readProxyHeader(whole.subarray(0, n))).toBe('incomplete');
  });

  it('with random bytes never exceeds its length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const mail = Buffer.concat([Buffer.from(SIGNATURE, 'hex'), bytes]);
        const read = readProxyHeader(mail);
        if (typeof read === 'object') {
          expect(read.length).toBeLessThanOrEqual(mail.length);
          expect(read.line).toMatch(/^PROXY (?:UNKNOWN|TCP[46] [\da-f.:]+ [\da-f.:]+ \d+ \d+)\r\n$/);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a connection through a known proxy', () => {
  const proxied = () => startMx({ mx: { proxyProtocol: ['127.0.0.1'] } });

  it.each([
    ['version 1', Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 40000 25\r\n'), '203.0.113.7'],
    ['version 2', header(PROXIED, TCP4, FROM_IPV4), '203.0.113.7'],
    ['version 2 over IPv6', header(PROXIED, TCP6, FROM_IPV6), '2001:db8::7'],
    ['version 1 without an address', sample('mx-proxy-unknown.txt'), '127.0.0.1'],
    ['version 2, a health check of the proxy', header(LOCAL, '00', ''), '127.0.0.1'],
  ])('has the address in the header: %s', async (_, first, address) => {
    const setup = await proxied();
    const client = await setup.client({ first });
    expect(await client.mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
    expect(setup.kept()).toMatchObject([{ remote_address: address }]);
  });

  it('supports STARTTLS', async () => {
    const setup = await proxied();
    const client = await setup.client({ first: header(PROXIED, TCP4, FROM_IPV4) });
    await client.startTls();
    await client.say('EHLO mta.example');
    expect(await client.mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
    expect(setup.kept()).toMatchObject([{ remote_address: '203.0.113.7' }]);
  });

  it.each([
    ['version 1', Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 40000 465\r\n')],
    ['version 2', header(PROXIED, TCP4, FROM_IPV4)],
  ])('supports implicit TLS: %s', async (_, first) => {
    const setup = await startSubmission({
      submission: { implicitTls: true, proxyProtocol: ['127.0.0.1'] },
    });
    const { secret } = await setup.key({ allowIps: ['203.0.113.7'] });
    const raw = connect(setup.port, '127.0.0.1');
    // One packet for the header and the TLS handshake.
    raw.cork();
    raw.write(first);
    const socket = connectTls({ socket: raw, rejectUnauthorized: false });
    onTestFinished(() => void socket.destroy());
    const replies = createInterface({ input: socket })[Symbol.asyncIterator]();
    const reply = async () => String((await replies.next()).value);
    raw.uncork();
    expect(await reply()).toMatch(/^220 /);
    socket.write('EHLO app.example\r\n');
    for (let line = await reply(); line.startsWith('250-'); ) line = await reply();
    socket.write(`${plain('acct_one', secret)}\r\n`);
    expect(await reply()).toMatch(/^235 /);
  });

  it('counts for the client, not for the proxy', async () => {
    const setup = await startMx({ mx: { proxyProtocol: ['127.0.0.1'], connectionsPerAddress: 1 } });
    await setup.client({ first: header(PROXIED, TCP4, FROM_IPV4) });
    await setup.client({ first: header(PROXIED, TCP6, FROM_IPV6) });
    await expect(setup.client({ first: header(PROXIED, TCP4, FROM_IPV4) })).rejects.toThrow(
      'closed the connection',
    );
  });

  it.each([
    ['a malformed header', header('31', TCP4, FROM_IPV4)],
    ['no header', Buffer.from('EHLO mta.example\r\n')],
  ])('%s ends the connection', async (_, first) => {
    const setup = await proxied();
    await expect(setup.client({ first })).rejects.toThrow();
  });

  it('without a header does not delay closing', async () => {
    const setup = await proxied();
    const silent = setup.client();
    const ended = expect(silent).rejects.toThrow('closed the connection');
    await new Promise((resolve) => setTimeout(resolve, 50));
    await setup.mx.close(20_000);
    await ended;
  });
});

it('rejects a header from an unknown proxy', async () => {
  const setup = await startMx({ mx: { proxyProtocol: ['192.0.2.1'] } });
  for (const first of ['PROXY TCP4 203.0.113.7 192.0.2.1 40000 25\r\n', header(PROXIED, TCP4, FROM_IPV4)])
    expect(await setup.client({ first }).catch(() => null)).toBeNull();
  const client = await setup.client();
  expect(await client.mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
  expect(setup.kept()).toMatchObject([{ remote_address: '127.0.0.1' }]);
});
