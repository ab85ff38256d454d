import { describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { StoreUnavailable } from '../../../src/store/database/failure.ts';
import {
  AUTO_REPLY,
  acknowledgement,
  aggregateReport,
  arf,
  dsn,
  PLAIN_MAIL,
  readReceipt,
  tlsReport,
} from './mails.ts';
import { HOST, RETURN, startMx } from './setup.ts';

describe('a bounce', () => {
  it('changes the message of the return path to bounced, once', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const client = await setup.client();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    expect(await client.mail('', to, dsn())).toMatch(/^250 2\.6\.0 /);
    expect(setup.status(message)).toBe('bounced');
    expect(setup.events(message)).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
    expect(setup.suppressed(message)).toEqual(['hard_bounce']);
    expect(setup.kept()).toEqual([]);

    expect(await client.mail('', to.toUpperCase(), dsn())).toMatch(/^250 /);
    expect(setup.events(message)).toHaveLength(3);
  });

  it('to the postmaster is matched by the signed id in the returned part, and kept', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const returned = `X-Postrider-Id: ${setup.tokens.of('acct_one').signedId(message.message_id)}`;
    const client = await setup.client();
    expect(await client.mail('', `postmaster@${HOST}`, dsn({ returned }))).toMatch(/^250 /);
    expect(setup.status(message)).toBe('bounced');
    expect(setup.kept()).toMatchObject([{ box: 'postmaster', kind: 'dsn', message_seq: message.seq }]);
  });

  it.each([
    ['no id', () => 'Message-ID: <known@example.com>'],
    ['an unsigned id', (id: string) => `X-Postrider-Id: ${id}\r\nMessage-ID: <${id}@example.com>`],
    ['an id with an invalid signature', (id: string) => `X-Postrider-Id: ${'a'.repeat(40)}\r\nX-Id: ${id}`],
  ])('with %s is kept and changes no message', async (_, returned) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const client = await setup.client();
    const mail = dsn({ returned: returned(message.message_id) });
    for (const to of [`postmaster@${HOST}`, `abuse@${HOST}`, `fbl@${HOST}`, `dmarc@${RETURN}`])
      expect(await client.mail('', to, mail)).toMatch(/^250 /);
    expect(setup.status(message)).toBe('delivered');
    expect(setup.kept().map(({ box }) => box)).toEqual(['postmaster', 'abuse', 'feedback', 'dmarc']);
  });

  it('about a deleted message is accepted and discarded', async () => {
    const setup = await startMx();
    const client = await setup.client();
    const to = `${setup.tokens.of('acct_one').returnPath(setup.ids.make('msg'))}@${HOST}`;
    expect(await client.mail('', to, dsn())).toMatch(/^250 /);
    expect(setup.kept()).toEqual([]);
  });

  it('to the return paths of several messages applies to each', async () => {
    const setup = await startMx();
    const messages = [await setup.delivered(), await setup.delivered({ recipient: 'bob@example.net' })];
    const to = messages.map(
      ({ message_id }) => `${setup.tokens.of('acct_one').returnPath(message_id)}@${HOST}`,
    );
    expect(await (await setup.client()).mail('', to, dsn())).toMatch(/^250 /);
    expect(messages.map(setup.status)).toEqual(['bounced', 'bounced']);
    // The report has Ada's address: nothing is proven about Bob's.
    expect(messages.map(setup.suppressed)).toEqual([['hard_bounce'], []]);
  });
});

describe('a complaint', () => {
  it.each([
    ['the complaint address', 'feedback' as const],
    ['the return path', 'returnPath' as const],
  ])('to %s of a message applies to that message', async (_, token) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one')[token](message.message_id)}@${RETURN}`;
    expect(await (await setup.client()).mail('fbl@provider.example', to, arf())).toMatch(/^250 /);
    expect(setup.status(message)).toBe('complained');
    expect(setup.suppressed(message)).toEqual(['complaint']);
  });

  it('from a feedback loop is matched by the signed id', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const returned = `X-Postrider-Id: ${setup.tokens.of('acct_one').signedId(message.message_id)}`;
    const client = await setup.client();
    expect(await client.mail('fbl@provider.example', `fbl@${HOST}`, arf('fraud', returned))).toMatch(/^250 /);
    expect(setup.events(message).at(-1)).toBe('email_complained');
    expect(setup.kept()).toEqual([]);
  });

  it('of type not-spam changes nothing', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').feedback(message.message_id)}@${RETURN}`;
    expect(await (await setup.client()).mail('fbl@provider.example', to, arf('not-spam'))).toMatch(/^250 /);
    expect(setup.status(message)).toBe('delivered');
    expect(setup.kept()).toMatchObject([{ box: 'feedback', kind: 'arf', message_seq: message.seq }]);
  });
});

describe('mail to the unsubscribe address', () => {
  it('is an opt-out, whatever its content', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').unsubscribe(message.message_id)}@${RETURN}`;
    const client = await setup.client();
    expect(await client.mail('ada@example.net', to, PLAIN_MAIL)).toMatch(/^250 /);
    expect(setup.optedOut).toEqual([message.message_id]);
  });

  it.each([
    ['with the null sender', '', 'From: ada@example.net\r\nSubject: Unsubscribe\r\n\r\n'],
    [
      'that a provider generated',
      'ada@example.net',
      'From: ada@example.net\r\nAuto-Submitted: auto-generated\r\nSubject: unsubscribe me\r\n\r\n',
    ],
    [
      'of Apple Mail',
      'ada@example.net',
      'From: ada@example.net\r\nAuto-Submitted: auto-replied\r\nX-Apple-Unsubscribe: true\r\nSubject: unsubscribe\r\n\r\n',
    ],
  ])('is an opt-out when it is a request %s', async (_, from, mail) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').unsubscribe(message.message_id)}@${RETURN}`;
    expect(await (await setup.client()).mail(from, to, mail)).toMatch(/^250 /);
    expect(setup.optedOut).toEqual([message.message_id]);
  });

  it.each([
    ['a bounce', '', dsn()],
    [
      'a bounce in unknown words',
      '',
      'From: MAILER-DAEMON@example.net\r\nSubject: Fehler\r\n\r\nNicht zustellbar\r\n',
    ],
    [
      'a mail with the null sender and no subject',
      '',
      'From: MAILER-DAEMON@example.net\r\n\r\nNicht zustellbar\r\n',
    ],
    ['a read receipt', 'ada@example.net', readReceipt()],
    ['a generated acknowledgement', 'support@example.net', acknowledgement('Hello')],
    ['an automatic reply', 'ada@example.net', AUTO_REPLY],
  ])('is no opt-out when it is %s', async (_, from, mail) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').unsubscribe(message.message_id)}@${RETURN}`;
    expect(await (await setup.client()).mail(from, to, mail)).toMatch(/^250 /);
    expect(setup.optedOut).toEqual([]);
    expect(setup.status(message)).toBe('delivered');
    expect(setup.kept()).toMatchObject([{ box: 'unsubscribe' }]);
  });
});

describe('mail that changes nothing', () => {
  it.each([
    ['an automatic reply', AUTO_REPLY, 'auto-reply'],
    ['a read receipt', readReceipt(), 'auto-reply'],
    ['a reply of a person to the return path', PLAIN_MAIL, 'unknown'],
  ])('is kept for the operator: %s', async (_, mail, kind) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    expect(await (await setup.client()).mail('ada@example.net', to, mail)).toMatch(/^250 /);
    expect(setup.events(message)).toEqual(['email_sent', 'email_delivered']);
    expect(setup.kept()).toMatchObject([
      {
        box: 'bounce',
        kind,
        recipient: to,
        sender: 'ada@example.net',
        remote_address: '127.0.0.1',
        message_seq: message.seq,
        size: mail.length,
      },
    ]);
    expect(setup.tables.keptMail.get(setup.kept()[0]?.seq ?? 0)?.raw.toString()).toBe(mail);
  });

  it.each([
    'If the parcel could not be delivered, it waits at the post office.',
    'Your mail was not delivered.\n<ada@example.net>: 550 5.1.1 User unknown',
  ])('is kept when it only quotes words of a bounce: %j', async (quoted) => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    expect(await (await setup.client()).mail('', to, acknowledgement(quoted))).toMatch(/^250 /);
    expect(setup.events(message)).toEqual(['email_sent', 'email_delivered']);
    expect(setup.suppressed(message)).toEqual([]);
    expect(setup.kept()).toMatchObject([{ box: 'bounce', kind: 'auto-reply' }]);
  });

  it('is not kept when it is about an erased person', async () => {
    const setup = await startMx();
    const message = await setup.delivered({ recipient: 'email_0cc175b9c0f1b6a831c399e269772661' });
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    expect(await (await setup.client()).mail('ada@example.net', to, AUTO_REPLY)).toMatch(/^250 /);
    expect(setup.kept()).toEqual([]);
  });

  it('is truncated when it is long', async () => {
    const setup = await startMx();
    const client = await setup.client();
    const long = `Subject: long\r\n\r\n${'x'.repeat(78).concat('\r\n').repeat(5000)}`;
    expect(await client.mail('bob@example.org', 'postmaster', long)).toMatch(/^250 /);
    const [head] = setup.kept();
    expect(head?.size).toBe(long.length);
    expect(setup.tables.keptMail.get(head?.seq ?? 0)?.raw).toHaveLength(256 * 1024);
  });
});

describe('a report on a domain', () => {
  const PERIOD = { from: 0, to: Date.UTC(2027, 0), limit: 100 };

  it('is stored once, with sums by source', async () => {
    const setup = await startMx();
    const client = await setup.client();
    for (const mail of [aggregateReport('example.com'), aggregateReport('example.com')])
      expect(await client.mail('reports@receiver.example', `dmarc@${RETURN}`, mail)).toMatch(/^250 /);
    expect(setup.tables.dmarcReports.list('example.com', PERIOD)).toMatchObject([
      { organization: 'Receiver', report_id: '1', messages: 15, truncated: 0, end_at: 1768435199000 },
    ]);
    expect(setup.tables.dmarcReports.sources('example.com', PERIOD)).toEqual([
      {
        source_ip: '192.0.2.25',
        messages: 10,
        passed: 10,
        dkim_passed: 10,
        spf_passed: 10,
        quarantined: 0,
        rejected: 0,
      },
      {
        source_ip: '203.0.113.9',
        messages: 5,
        passed: 0,
        dkim_passed: 0,
        spf_passed: 0,
        quarantined: 0,
        rejected: 5,
      },
    ]);
    expect(setup.kept()).toEqual([]);
  });

  it('about TLS is stored once, with sums by failure', async () => {
    const setup = await startMx();
    const client = await setup.client();
    for (const id of ['1', '1', '2'])
      expect(await client.mail('', `tlsrpt@${RETURN}`, tlsReport(RETURN, id))).toMatch(/^250 /);
    expect(setup.tables.tlsReports.list(RETURN, PERIOD)).toHaveLength(2);
    expect(setup.tables.tlsReports.failures(RETURN, PERIOD)).toEqual([
      { type: 'certificate-expired', receiving_host: 'mx.postrider.example', reason: '', sessions: 8 },
    ]);
  });

  it.each([
    ['DMARC on another domain', `dmarc@${HOST}`, aggregateReport('unknown.example')],
    [
      "DMARC on another domain, to a customer's address",
      `dmarc@${RETURN}`,
      aggregateReport('unknown.example'),
    ],
    ['TLS on another host', `tlsrpt@${HOST}`, tlsReport('mx.unknown.example')],
    ['no report', `dmarc@${RETURN}`, PLAIN_MAIL],
  ])('is kept and not stored: %s', async (_, to, mail) => {
    const setup = await startMx();
    expect(await (await setup.client()).mail('', to, mail)).toMatch(/^250 /);
    expect(setup.kept()).toHaveLength(1);
    for (const domain of ['example.com', 'unknown.example'])
      expect(setup.tables.dmarcReports.list(domain, PERIOD)).toEqual([]);
    expect(setup.tables.tlsReports.list('mx.unknown.example', PERIOD)).toEqual([]);
  });

  it('that ends in the future ends now', async () => {
    const setup = await startMx();
    const mail = aggregateReport('example.com').replace(/(?<=base64\r\n\r\n)[\s\S]*(?=\r\n--B--)/, (base64) =>
      Buffer.from(Buffer.from(base64, 'base64').toString().replace('1768435199', '99999999999')).toString(
        'base64',
      ),
    );
    expect(await (await setup.client()).mail('', `dmarc@${RETURN}`, mail)).toMatch(/^250 /);
    const [report] = setup.tables.dmarcReports.list('example.com', PERIOD);
    expect(report?.end_at).toBeLessThan(setup.clock.now() + DAY);
  });
});

describe('the listener', () => {
  it.each([
    ['another domain', 'ada@example.net', /^550 5\.7\.1 /],
    ['an unknown name', `info@${HOST}`, /^550 5\.1\.1 /],
    ['a forged token', `b-${'a'.repeat(40)}@${RETURN}`, /^550 5\.1\.1 /],
  ])('rejects %s at RCPT', async (_, to, reply) => {
    const setup = await startMx();
    expect(await (await setup.client()).mail('', to, dsn())).toMatch(reply);
  });

  it('announces its extensions without AUTH', async () => {
    const setup = await startMx();
    const client = await setup.client();
    expect(client.greeting).toBe(`220 ${HOST} ESMTP`);
    const keywords = (await client.say('EHLO again.example')).split('\n').map((line) => line.slice(4));
    expect(keywords).toEqual([
      HOST,
      'PIPELINING',
      '8BITMIME',
      'SMTPUTF8',
      'ENHANCEDSTATUSCODES',
      'STARTTLS',
      'SIZE 36700160',
    ]);
    for (const command of ['AUTH PLAIN AGEAYg==', 'XCLIENT ADDR=192.0.2.1', 'WIZ please', 'EXPN staff'])
      expect(await client.say(command)).toMatch(/^500 /);
  });

  it('replies 451 while another process holds the lock of the database', async () => {
    const busy = new StoreUnavailable('busy', 'another process has held the lock of the database for 5 s');
    const writer = {
      run: () => Promise.reject(busy),
      durable: () => Promise.resolve(),
      afterCommit: () => {},
      isCrowded: () => false,
      versionOfOthers: () => 0,
      checkpoint: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
    const { client } = await startMx({ deps: { writer } });
    const to = `postmaster@${HOST}`;
    expect(await (await client()).mail('', to, 'Subject: hello\r\n\r\nhello')).toMatch(/^451 4\.3\.0 /);
  });

  it('rejects mail to the operator while the disk is nearly full, but not bounces and opt-outs', async () => {
    let isDiskLow = true;
    const setup = await startMx({ deps: { isDiskLow: () => isDiskLow } });
    const message = await setup.delivered();
    const { returnPath } = setup.tokens.of('acct_one');
    const client = await setup.client();
    const postmaster = `postmaster@${HOST}`;
    expect(await client.mail('', postmaster, 'Subject: hello\r\n\r\nhello')).toMatch(/^452 4\.3\.1 /);
    expect(await client.mail('', `${returnPath(message.message_id)}@${RETURN}`, dsn())).toMatch(/^250 /);
    isDiskLow = false;
    expect(await client.mail('', postmaster, 'Subject: hello\r\n\r\nhello')).toMatch(/^250 /);
  });

  it('replies 451 when the database fails', async () => {
    const setup = await startMx();
    const to = `${setup.tokens.of('acct_one').returnPath(setup.ids.make('msg'))}@${RETURN}`;
    const client = await setup.client();
    await client.say('MAIL FROM:<>');
    await client.say(`RCPT TO:<${to}>`);
    await client.say('DATA');
    await setup.writer.close();
    client.write(dsn());
    expect(await client.say('\r\n.')).toMatch(/^451 4\.3\.0 /);
    setup.db.close();
    expect(await client.mail('', to, dsn())).toMatch(/^451 4\.3\.0 /);
  });

  it('rejects a mail that is too large, at MAIL and after DATA', async () => {
    const setup = await startMx({ mx: { mailBytes: 10_000 } });
    const client = await setup.client();
    expect(await client.say('MAIL FROM:<> SIZE=10001')).toMatch(/^552 5\.3\.4 /);
    const mail = `Subject: large\r\n\r\n${'x\r\n'.repeat(4000)}`;
    expect(await client.mail('', `postmaster@${HOST}`, mail)).toMatch(/^552 5\.3\.4 /);
    expect(await client.mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
  });

  it('disconnects a client that sends more than twice the limit', async () => {
    const setup = await startMx({ mx: { mailBytes: 10_000 } });
    const client = await setup.client();
    await client.say('MAIL FROM:<>');
    await client.say(`RCPT TO:<postmaster@${HOST}>`);
    await client.say('DATA');
    client.write('x\r\n'.repeat(40_000));
    expect(await client.reply()).toMatch(/^421 /);
    await client.end;
  });

  it('disconnects a client that tries many addresses', async () => {
    const setup = await startMx();
    const client = await setup.client();
    await client.say('MAIL FROM:<>');
    const replies: string[] = [];
    for (let n = 0; n < 20; n++) replies.push(await client.say(`RCPT TO:<user${n}@${HOST}>`));
    expect(replies.slice(0, 19).every((reply) => reply.startsWith('550 5.1.1'))).toBe(true);
    expect(replies[19]).toMatch(/^421 /);
    await client.end;
  });

  it('disconnects a client that sends before the greeting', async () => {
    const setup = await startMx();
    const client = await setup.client({ first: 'EHLO eager.example\r\n' }).catch(() => null);
    expect(client).toBeNull();
  });
});

describe('under PROXY protocol', () => {
  it('records the address of the client', async () => {
    const setup = await startMx({ mx: { proxyProtocol: ['127.0.0.1'] } });
    const client = await setup.client({ first: 'PROXY TCP4 203.0.113.7 192.0.2.1 40000 25\r\n' });
    expect(await client.mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
    expect(setup.kept()).toMatchObject([{ remote_address: '203.0.113.7' }]);
  });

  it('rejects a PROXY header from an unknown proxy', async () => {
    const setup = await startMx();
    const client = await setup
      .client({ first: 'PROXY TCP4 203.0.113.7 192.0.2.1 40000 25\r\n' })
      .catch(() => null);
    expect(client).toBeNull();
  });
});

describe('closing', () => {
  it('accepts a mail in progress and disconnects an idle client', async () => {
    const setup = await startMx();
    const message = await setup.delivered();
    const to = `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`;
    const idle = await setup.client();
    const busy = await setup.client();
    await busy.say('MAIL FROM:<>');
    await busy.say(`RCPT TO:<${to}>`);
    await busy.say('DATA');
    const closed = setup.mx.close(20_000);
    expect(await idle.reply()).toMatch(/^421 /);
    busy.write(dsn());
    expect(await busy.say('\r\n.')).toMatch(/^250 /);
    expect(await busy.reply()).toMatch(/^421 /);
    busy.destroy();
    idle.destroy();
    await closed;
    expect(setup.status(message)).toBe('bounced');
  });
});
