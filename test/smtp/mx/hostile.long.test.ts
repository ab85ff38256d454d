// Long: sends hundreds of malicious mails and keeps slow clients connected.
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { smtpClient } from '../../support/smtp-client.ts';
import { heldClock } from '../../support/store.ts';
import { zip } from '../../support/zip.ts';
import { dsn, PLAIN_MAIL } from './mails.ts';
import { HOST, RETURN, startMx } from './setup.ts';

const ALWAYS = { from: 0, to: Date.UTC(2100, 0), limit: 100 };
const REPORT =
  Buffer.from(`<feedback><report_metadata><report_id>2</report_id></report_metadata><policy_published>
<domain>example.com</domain></policy_published><record><row><source_ip>192.0.2.1</source_ip><count>1</count></row></record>
</feedback>`);
const HUGE_COUNTS = `<feedback><report_metadata><report_id>1</report_id></report_metadata><policy_published>
<domain>example.com</domain></policy_published>${`<record><row><source_ip>192.0.2.1</source_ip>
<count>9007199254740991</count></row></record>`.repeat(3000)}</feedback>`;

/*
 * Malicious mail: each is answered, none changes a message that it does not prove to be about, and the next genuine
 * bounce is processed normally.
 */
describe('hostile mail', () => {
  const nested = (depth: number): string =>
    depth === 0
      ? 'Content-Type: text/plain\r\n\r\nhello'
      : `Content-Type: multipart/mixed; boundary="b${depth}"\r\n\r\n--b${depth}\r\n${nested(depth - 1)}\r\n--b${depth}--\r\n`;
  const attached = (type: string, bytes: Buffer) =>
    `Subject: Report domain: example.com\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n` +
    bytes.toString('base64').replace(/.{76}/g, '$&\r\n');
  const inParts = (parts: readonly string[]) =>
    `Subject: Report domain: example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${parts.map((part) => `--b\r\n${part}\r\n`).join('')}--b--\r\n`;
  /** A report with spaces after it: it is stored if its archive is opened beyond the limits. */
  const inflated = (megabytes: number) => Buffer.concat([REPORT, Buffer.alloc(megabytes * 1_000_000, ' ')]);

  /** The number: reports that are stored. */
  it.each<[string, () => string | Buffer, number?]>([
    ['an empty mail', () => ''],
    ['a dot', () => '.'],
    ['multiparts in multiparts, 500 deep', () => nested(500)],
    [
      '100,000 parts',
      () => `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(100_000)}`,
    ],
    [
      'boundaries that overlap',
      () => `Content-Type: multipart/mixed; boundary="-"\r\n\r\n${'--'.repeat(500_000)}`,
    ],
    ['many lines that begin with dots', () => '..\r\n'.repeat(99_000)],
    ['a line of 4 MB', () => `Subject: long\r\n\r\n${'x'.repeat(4_000_000)}`],
    ['a header of 4 MB', () => `Subject: ${'x'.repeat(4_000_000)}`],
    ['300,000 header fields', () => 'X: y\r\n'.repeat(300_000)],
    ['endless folding', () => `Subject: a\r\n${' \r\n b'.repeat(500_000)}`],
    ['NULs', () => Buffer.alloc(1_000_000)],
    ['a report with NULs', () => dsn().replaceAll('a', 'a\0')],
    ['all bytes', () => Buffer.from(Array.from({ length: 256 * 1000 }, (_, n) => n % 256))],
    [
      'a report on 100,000 recipients',
      () => dsn().replace(/(Final-Recipient[\s\S]*?virtual mailbox table\r\n)/, '$1\r\n'.repeat(100_000)),
    ],
    ['encoded words without end', () => `Subject: ${'=?utf-8?q?a'.repeat(200_000)}\r\n\r\n${PLAIN_MAIL}`],
    ['gzip that grows a thousandfold', () => attached('application/gzip', gzipSync(inflated(9)))],
    ['a zip that grows a thousandfold', () => attached('application/zip', zip('r.xml', inflated(9)))],
    [
      'such a zip before a report',
      () => inParts([attached('application/zip', zip('r.xml', inflated(40))), attached('text/xml', REPORT)]),
    ],
    [
      'thirty zips without a report before one',
      () =>
        inParts([
          ...Array<string>(30).fill(attached('application/zip', zip('r.xml', Buffer.alloc(300_000)))),
          attached('text/xml', REPORT),
        ]),
    ],
    [
      'a zip that states a small size',
      () => {
        const bytes = zip('r.xml', inflated(40));
        // The uncompressed size in the central directory.
        bytes.writeUInt32LE(100, bytes.length - 22 - 'r.xml'.length - 46 + 24);
        return attached('application/zip', bytes);
      },
    ],
    ['deeply nested XML', () => attached('text/xml', Buffer.from(`<feedback>${'<a>'.repeat(500_000)}`))],
    [
      'XML with recursive entities',
      () =>
        attached(
          'text/xml',
          Buffer.from(
            `<!DOCTYPE x [<!ENTITY a "&b;&b;"><!ENTITY b "&a;&a;">]><feedback>${'&a;'.repeat(100_000)}</feedback>`,
          ),
        ),
    ],
    ['counts beyond the range of numbers', () => attached('text/xml', Buffer.from(HUGE_COUNTS)), 1],
    [
      'deeply nested JSON',
      () => attached('application/json', Buffer.from('{"policies":'.concat('['.repeat(1_000_000)))),
    ],
  ])(
    'has no effect on the next bounce: %s',
    async (_, make, storedReports = 0) => {
      const setup = await startMx();
      const message = await setup.delivered();
      const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
      const client = await setup.client();
      const mail = make();
      for (const address of [`postmaster@${HOST}`, `dmarc@${RETURN}`])
        expect(await client.mail('evil@unknown.example', address, mail)).toMatch(/^(?:250|552) /);
      expect(setup.status(message)).toBe('delivered');
      expect(await client.mail('', to, dsn())).toMatch(/^250 /);
      expect(setup.status(message)).toBe('bounced');
      expect(setup.tables.dmarcReports.list('example.com', ALWAYS)).toHaveLength(storedReports);
      // No mail exceeded the parser's time or memory limit.
      expect(setup.parserThreads()).toBe(1);
    },
    30_000,
  );

  it.each([
    [
      'a line of 80 MB',
      () => Buffer.concat([Buffer.from('Subject: long\r\n\r\n'), Buffer.alloc(80_000_000, 'x')]),
    ],
    ['a million lines that begin with dots', () => '..\r\n'.repeat(1_000_000)],
  ])('%s is disconnected and not kept', async (_, make) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const client = await setup.client();
    const reply = await client.mail('', `postmaster@${HOST}`, make()).catch(() => 'closed');
    expect(reply).toMatch(/^(?:421 |closed)/);
    expect(setup.kept()).toEqual([]);
    const honest = await setup.client();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    expect(await honest.mail('', to, dsn())).toMatch(/^250 /);
    expect(setup.parserThreads()).toBe(1);
  });

  it.each([
    ['LF.LF', '\n.\n'],
    ['LF.CRLF', '\n.\r\n'],
    ['CRLF.LF', '\r\n.\n'],
    ['CR.CR', '\r.\r'],
    ['CRLF.CR', '\r\n.\r'],
    ['CR.CRLF', '\r.\r\n'],
    ['a NUL before the dot', '\r\n\0.\r\n'],
  ])('treats commands after %s as part of the mail', async (_, end) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const client = await setup.client();
    const inner = [
      'MAIL FROM:<>',
      `RCPT TO:<${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}>`,
      'DATA',
      dsn(),
    ];
    await client.say('MAIL FROM:<evil@unknown.example>');
    await client.say(`RCPT TO:<postmaster@${HOST}>`);
    await client.say('DATA');
    client.write(`Subject: outer${end}${inner.join('\r\n')}`);
    expect(await client.say('\r\n.')).toMatch(/^250 /);
    expect(await client.say('NOOP')).toMatch(/^250 /);
    expect(setup.status(message)).toBe('delivered');
    expect(setup.kept()).toHaveLength(1);
  });

  it('rejects forged tokens', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const client = await setup.client();
    const right = setup.tokens.of('acct_one').returnPath(message.message_id);
    for (let n = 2; n < right.length; n += 5) {
      const wrong = right.slice(0, n) + (right[n] === 'a' ? 'b' : 'a') + right.slice(n + 1);
      expect(await client.mail('', `${wrong}@${RETURN}`, dsn())).toMatch(/^550 5\.1\.1 /);
    }
    expect(setup.status(message)).toBe('delivered');
  });
});

describe('a mail that ends the parser thread', () => {
  /** Exits at one mail, and classifies all others as unknown. */
  const FRAGILE = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', ({ raw, ready }) => {
  if (ready) return parentPort.postMessage({ ready });
  if (Buffer.from(raw).includes('poison')) process.exit(1);
  const parsed = { kind: 'unknown', from: '', reports: [], aggregate: null, tls: null, postriderId: null };
  parentPort.postMessage({ parsed, fingerprint: new Uint8Array(16), keyNames: [] });
});`;

  it('is kept unparsed for the operator, and other mails are parsed', async () => {
    const setup = await startMx({ deps: { startParserThread: () => new Worker(FRAGILE, { eval: true }) } });
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    const [one, other] = await Promise.all([setup.client(), setup.client()]);
    const answers = [one.mail('', to, 'Subject: poison\r\n\r\nx'), other.mail('', to, PLAIN_MAIL)];
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^250 /);
    expect(setup.kept().map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['unread: failed', 'unknown']),
    );
    expect(setup.status(message)).toBe('delivered');
  });
});

describe('hostile clients', () => {
  it('that send endless recipients are slowed down, while a bounce is accepted', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    const flood = `MAIL FROM:<>\r\n${`RCPT TO:<postmaster@${HOST}>\r\n`.repeat(90)}RSET\r\n`.repeat(20);
    let replies = 0;
    const clients = await Promise.all(Array.from({ length: 30 }, () => setup.client({ from: '127.0.0.2' })));
    for (const client of clients) {
      const count = (): Promise<void> =>
        client.reply().then(
          () => (replies++, count()),
          () => {},
        );
      void count();
      client.write(flood);
    }
    const honest = await setup.client({ from: '127.1.0.1' });
    expect(await honest.mail('', to, dsn())).toMatch(/^250 /);
    expect(setup.status(message)).toBe('bounced');
    await eventually('the burst to be answered', () => replies > 900);
    // 55,200 were sent. An address has 1,000, and then 200 a second.
    expect(replies).toBeLessThan(4000);
  });

  it('that repeat MAIL and RSET from many addresses lose their slot to a server with mail', async () => {
    const setup = await startMx({ mx: { connections: 8, connectionsPerAddress: 2 } });
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    const idle = await Promise.all(
      [0, 1, 2, 3, 4, 5, 6, 7].map((n) => setup.client({ from: `127.0.0.${2 + (n >> 1)}` })),
    );
    for (let n = 0; n < 3; n++) {
      setup.clock.advance(3500);
      for (const client of idle) {
        await client.say('MAIL FROM:<>');
        await client.say('RSET');
      }
    }
    const honest = await setup.client({ from: '127.1.0.1' });
    expect(await honest.mail('', to, dsn())).toMatch(/^250 /);
    expect(setup.status(message)).toBe('bounced');
    // It keeps its slot when the others reconnect.
    setup.clock.advance(4000);
    for (let n = 0; n < 4; n++) await setup.client({ from: `127.0.0.${2 + n}` });
    expect(honest.closed).toBe(false);
    expect(await honest.mail('', to, dsn())).toMatch(/^250 /);
    expect(setup.mx.connections()).toBe(8);
  });

  it('that open more sockets than connections are disconnected before the greeting', async () => {
    const setup = await startMx({ mx: { connectionsPerAddress: 2 } });
    const greeted = await Promise.allSettled(Array.from({ length: 40 }, () => smtpClient(setup.port)));
    const open = greeted.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(open.filter(({ greeting }) => greeting.startsWith('220'))).toHaveLength(2);
    // Ten at a time: the server closes each after its reply, before a slow machine has opened the last one.
    const refused = open.filter(({ greeting }) => greeting.startsWith('421')).length;
    expect(refused).toBeGreaterThanOrEqual(10);
    expect(open.length).toBeLessThan(greeted.length);
    for (const client of open) client.destroy();
    await expect(setup.client({ from: '127.0.0.9' })).resolves.toBeDefined();
  });

  it('that disconnect after STARTTLS are removed', async () => {
    const setup = await startMx({ mx: { connectionsPerAddress: 2 } });
    for (let n = 0; n < 15; n++) {
      const client = await setup.client();
      await client.startTls();
      client.destroy();
      await eventually('the connection to end', () => setup.mx.connections() === 0);
    }
  });

  it('that hold endless uploads do not block a bounce', async () => {
    const mailBytes = 400_000;
    const setup = await startMx({ mx: { mailBytes } });
    const message = await setup.delivered();
    const own = `${setup.tokens.of('acct_one').returnPath((await setup.delivered()).message_id)}@${RETURN}`;
    const upload = async (from: string, to: string, bytes: number) => {
      const client = await setup.client({ from });
      await client.say('MAIL FROM:<>');
      await client.say(`RCPT TO:<${to}>`);
      await client.say('DATA');
      client.write(`Subject: held\r\n\r\n${'x'.repeat(70)}\r\n`.repeat(Math.floor(bytes / 90)));
      return client;
    };
    // Eight from different networks, and eight more with a valid token.
    const held: Awaited<ReturnType<typeof upload>>[] = [];
    for (let n = 0; n < 16; n++)
      held.push(await upload(`127.0.${n}.1`, n < 8 ? `postmaster@${HOST}` : own, mailBytes - 10_000));
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    const honest = await setup.client({ from: '127.1.0.1' });
    // A large bounce gets the memory of the slowest upload.
    setup.clock.advance(5000);
    const large = `${dsn()}\r\n${'x\r\n'.repeat(60_000)}`;
    const ended = () => held.filter(({ closed }) => closed).length;
    // The first one may find free memory, while the uploads still arrive.
    await expect
      .poll(
        async () => {
          expect(await honest.mail('', to, large)).toMatch(/^250 /);
          return ended();
        },
        { interval: 100 },
      )
      .toBeGreaterThan(0);
    expect(ended()).toBeLessThanOrEqual(2);
    // A small one uses no shared memory.
    const small = await setup.delivered();
    const toSmall = `${setup.tokens.of('acct_one').returnPath(small.message_id)}@${RETURN}`;
    expect(await honest.mail('', toSmall, dsn())).toMatch(/^250 /);
    expect([setup.status(message), setup.status(small)]).toEqual(['bounced', 'bounced']);
    expect(ended()).toBeLessThanOrEqual(2);
  });

  it('that send a mail byte by byte are disconnected after a minute', async () => {
    const setup = await startMx();
    const client = await setup.client();
    await client.say('MAIL FROM:<>');
    await client.say(`RCPT TO:<postmaster@${HOST}>`);
    await client.say('DATA');
    client.write('Subject: slow\r\n');
    setup.clock.advance(MINUTE);
    expect(await client.reply()).toMatch(/^421 4\.3\.2 .*too slowly/);
    await client.end;
    expect(setup.kept()).toEqual([]);
  });

  it('are timed by a clock that setting the time of the system does not change', async () => {
    const monotonic = heldClock();
    const setup = await startMx({ deps: { monotonic } });
    const early = await setup.client();
    await early.say('MAIL FROM:<>');
    monotonic.advance(9 * MINUTE);
    const late = await setup.client();
    await late.say('MAIL FROM:<>');
    setup.clock.advance(DAY);
    // The same sweep ends the transaction of ten minutes and leaves the younger one.
    monotonic.advance(2 * MINUTE);
    expect(await early.reply()).toMatch(/^421 /);
    expect(await late.say('NOOP')).toMatch(/^250 /);
    setup.clock.advance(-2 * DAY);
    monotonic.advance(9 * MINUTE);
    expect(await late.reply()).toMatch(/^421 /);
  });

  it('that hold idle connections do not block others', async () => {
    const setup = await startMx({ mx: { connectionsPerAddress: 5 } });
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    const slow = await Promise.all(Array.from({ length: 5 }, () => setup.client()));
    for (const client of slow) await client.say('MAIL FROM:<>');
    await expect(setup.client()).rejects.toThrow('closed the connection');
    setup.clock.advance(6000);
    const honest = await setup.client();
    expect(await honest.mail('', to, dsn())).toMatch(/^250 /);
    expect(slow.filter(({ closed }) => closed).length).toBeLessThanOrEqual(1);
  });

  it('that send a few bytes per minute are disconnected', async () => {
    const setup = await startMx();
    const client = await setup.client();
    await client.say('MAIL FROM:<>');
    await client.say(`RCPT TO:<postmaster@${HOST}>`);
    await client.say('DATA');
    for (let minutes = 0; minutes < 11; minutes++) {
      client.write('x\r\n');
      setup.clock.advance(MINUTE);
    }
    expect(await client.reply()).toMatch(/^421 /);
    await client.end;
    expect(setup.mx.connections()).toBe(0);
    expect(setup.kept()).toEqual([]);
  });

  it('that abandon transactions repeatedly are disconnected', async () => {
    const setup = await startMx();
    const client = await setup.client();
    client.write('MAIL FROM:<>\r\nRSET\r\n'.repeat(1000));
    for (let n = 0; n < 40; n++) expect(await client.reply()).toMatch(/^250 /);
    expect(await client.reply()).toMatch(/^421 4\.7\.0 Too many transactions/);
    await client.end;
  });

  it('that send an endless command are disconnected', async () => {
    const setup = await startMx();
    const client = await setup.client();
    client.write(`NOOP ${'x'.repeat(2_000_000)}`);
    await client.end;
    expect(await (await setup.client()).mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
  });

  it('that disconnect during a mail release its memory', async () => {
    const setup = await startMx({ mx: { mailBytes: 20_000 } });
    // More than the whole budget.
    for (let n = 0; n < 12; n++) {
      const client = await setup.client();
      await client.say('MAIL FROM:<>');
      await client.say(`RCPT TO:<postmaster@${HOST}>`);
      await client.say('DATA');
      client.write('x\r\n'.repeat(5000));
      await new Promise((resolve) => setTimeout(resolve, 30));
      client.destroy();
    }
    const client = await setup.client();
    expect(await client.mail('', `postmaster@${HOST}`, `Subject: x\r\n\r\n${'x\r\n'.repeat(5000)}`)).toMatch(
      /^250 /,
    );
    expect(setup.kept()).toHaveLength(1);
  });

  it('that send too much concurrently get a temporary rejection', async () => {
    const setup = await startMx({ mx: { mailBytes: 100_000 } });
    const clients = await Promise.all(Array.from({ length: 12 }, () => setup.client()));
    for (const client of clients) {
      await client.say('MAIL FROM:<>');
      await client.say(`RCPT TO:<postmaster@${HOST}>`);
      await client.say('DATA');
      client.write(`Subject: x\r\n\r\n${'x\r\n'.repeat(30_000)}`);
    }
    const replies = await Promise.all(clients.map((client) => client.say('.')));
    expect(replies.filter((reply) => reply.startsWith('452 4.3.1')).length).toBeGreaterThan(0);
    expect(replies.filter((reply) => reply.startsWith('250')).length).toBe(setup.kept().length);
    const client = await setup.client();
    expect(await client.mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
  });
});
