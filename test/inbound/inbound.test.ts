import { describe, expect, it } from 'vitest';
import { attachmentOf, parseInbound } from '../../src/inbound/parse-mail.ts';
import { granted } from '../support/refusal.ts';
import { enqueue, insertAccount, insertDomain } from '../support/store.ts';
import { mailOf, PUBLIC_URL, startInboundMx, storeMail } from './setup.ts';

const MAIL = mailOf({}, 'Thank you.\r\n');

describe('mail for an inbound route', () => {
  it('is stored as it was sent, parsed and reported', async () => {
    const mx = await startInboundMx();
    const route = await mx.route('support@in.example.com');
    const client = await mx.client();
    expect(await client.mail('grace@example.net', 'Support@in.example.com', MAIL)).toMatch(/^250/);
    const [row] = await mx.parsed();
    expect(row).toMatchObject({
      route_id: route.route_id,
      account_id: 'acct_one',
      sender: 'grace@example.net',
      recipient: 'Support@in.example.com',
      from_address: 'grace@example.net',
      subject: 'Hello',
      parse_error: null,
    });
    const raw = granted(await mx.inbound.file('acct_one', row?.inbound_id ?? '', 'raw'));
    expect(raw.bytes.toString()).toBe(MAIL);
    expect(mx.received()).toMatchObject([
      {
        inboundId: row?.inbound_id,
        routeId: route.route_id,
        from: 'grace@example.net',
        to: ['Support@in.example.com'],
        subject: 'Hello',
        text: 'Thank you.\n',
        attachments: [],
        inReplyToMessageId: null,
        automatic: null,
        loop: false,
      },
    ]);
  });

  it('goes to the route of its address before that of every address of the host', async () => {
    const mx = await startInboundMx({ parses: false });
    const any = await mx.route('*@in.example.com');
    const own = await mx.route('support@in.example.com');
    const client = await mx.client();
    await client.mail('grace@example.net', ['sales@in.example.com', 'support@in.example.com'], MAIL);
    expect(mx.rows().map(({ route_id }) => route_id)).toEqual([any.route_id, own.route_id]);
    // One source for both.
    expect(new Set(mx.rows().map(({ source_seq }) => source_seq)).size).toBe(1);
  });

  it('is refused for unknown addresses, inactive routes and hosts without a route', async () => {
    const mx = await startInboundMx({ parses: false });
    await mx.route('support@in.example.com');
    await mx.route('old@in.example.com', { isActive: false });
    const client = await mx.client();
    await client.say('MAIL FROM:<grace@example.net>');
    expect(await client.say('RCPT TO:<sales@in.example.com>')).toMatch(/^550 5\.1\.1/);
    expect(await client.say('RCPT TO:<old@in.example.com>')).toMatch(/^550 5\.1\.1/);
    expect(await client.say('RCPT TO:<support@elsewhere.example>')).toMatch(/^550 5\.7\.1/);
    expect(await client.say('RCPT TO:<support@in.example.com>')).toMatch(/^250/);
  });

  it('is refused for the time that the account or the machine cannot store it', async () => {
    let isDiskLow = false;
    const mx = await startInboundMx({ parses: false, isDiskLow: () => isDiskLow });
    await mx.route('support@in.example.com');
    const client = await mx.client();
    const answer = async () => {
      await client.say('RSET');
      await client.say('MAIL FROM:<grace@example.net>');
      return client.say('RCPT TO:<support@in.example.com>');
    };
    expect(await answer()).toMatch(/^250/);
    isDiskLow = true;
    expect(await answer()).toMatch(/^452 4\.3\.1/);
    isDiskLow = false;
    const set = (table: string, column: string, value: string | number) =>
      mx.writer.run(() => mx.db.prepare(`UPDATE ${table} SET ${column} = ?`).run(value));
    await set('domains', 'status', 'FAILED');
    expect(await answer()).toMatch(/^450 4\.3\.5/);
    await set('domains', 'status', 'SUCCESS');
    await set('accounts', 'status', 'disabled');
    expect(await answer()).toMatch(/^450 4\.2\.1/);
    await set('accounts', 'status', 'active');
    expect(await answer()).toMatch(/^250/);
  });

  it('is refused when the account has stored as much as it may', async () => {
    const mx = await startInboundMx({ parses: false, storedBytes: 500 });
    await mx.route('support@in.example.com');
    const client = await mx.client();
    expect(await client.mail('grace@example.net', 'support@in.example.com', MAIL)).toMatch(/^250/);
    expect(await client.mail('grace@example.net', 'support@in.example.com', MAIL)).toMatch(/^452 4\.2\.2/);
  });

  it('of one sender is limited, and that of others is not', async () => {
    const mx = await startInboundMx({ parses: false });
    await mx.route('support@in.example.com');
    const client = await mx.client();
    let replies = 0;
    for (; replies < 100; replies++) {
      const reply = await client.mail('loop@example.net', 'support@in.example.com', MAIL);
      if (!reply.startsWith('250')) {
        expect(reply).toMatch(/^450 4\.7\.1/);
        break;
      }
    }
    expect(replies).toBe(60);
    expect(await client.mail('grace@example.net', 'support@in.example.com', MAIL)).toMatch(/^250/);
  });

  it('comes to each account with a route at the address of its own domain', async () => {
    const mx = await startInboundMx({ parses: false });
    await mx.route('*@in.example.com');
    insertAccount(mx.tables, 'acct_two', mx.clock.now());
    insertDomain(
      mx.tables,
      { account_id: 'acct_two', domain_id: 'domain_two', name: 'in.example.com' },
      mx.clock.now(),
    );
    const route = granted(
      await mx.inbound.routes.create('acct_two', {
        name: 'Own',
        match: '*@in.example.com',
        domainId: 'domain_two',
        action: 'store',
        spamPolicy: 'mark',
        isActive: true,
      }),
    );
    const client = await mx.client();
    await client.mail('grace@example.net', 'support@in.example.com', MAIL);
    // The more specific domain has the mail.
    expect(mx.rows().map(({ route_id }) => route_id)).toEqual([route.route_id]);
  });

  it('comes to the verified domain, however many others have registered a more specific one', async () => {
    const mx = await startInboundMx({ parses: false });
    const own = await mx.route('support@in.example.com');
    const now = mx.clock.now();
    for (let n = 0; n < 12; n++) {
      const [accountId, domainId] = [`acct_other${n}`, `domain_other${n}`];
      insertAccount(mx.tables, accountId, now);
      insertDomain(
        mx.tables,
        { account_id: accountId, domain_id: domainId, name: 'in.example.com', status: 'PENDING' },
        now,
      );
      for (const match of ['*@in.example.com', 'support@in.example.com'])
        await mx.inbound.routes.create(accountId, {
          name: match,
          match,
          domainId,
          action: 'store',
          spamPolicy: 'mark',
          isActive: true,
        });
    }
    const client = await mx.client();
    expect(await client.mail('grace@example.net', 'support@in.example.com', MAIL)).toMatch(/^250/);
    expect(mx.rows().map(({ route_id }) => route_id)).toEqual([own.route_id]);
  });

  it('names the message of the account that it answers', async () => {
    const mx = await startInboundMx();
    await mx.route('support@in.example.com');
    const message = enqueue(mx.tables, mx.clock.now(), { message_id: mx.ids.make('msg') });
    const client = await mx.client();
    const fields = {
      'In-Reply-To': '<other@example.net>',
      References: `<${message.message_id}@example.com> <other@example.net>`,
    };
    await client.mail('grace@example.net', 'support@in.example.com', mailOf(fields, 'Thanks\r\n'));
    await mx.parsed();
    expect(mx.received()).toMatchObject([{ inReplyToMessageId: message.message_id }]);
  });

  it('is marked when a program sent it or when it was here before', async () => {
    const mx = await startInboundMx();
    await mx.route('support@in.example.com');
    const client = await mx.client();
    const send = (fields: Record<string, string>) =>
      client.mail('grace@example.net', 'support@in.example.com', mailOf(fields, 'x\r\n'));
    await send({ 'Auto-Submitted': 'auto-replied (vacation)' });
    await send({ 'List-Id': '<news.example.net>' });
    await send({ Precedence: 'bulk' });
    await send({ Received: 'from a.example by mx.postrider.example with ESMTP id 1; today' });
    await mx.parsed();
    expect(mx.received().map(({ automatic, loop }) => [automatic, loop])).toEqual([
      ['reply', false],
      ['list', false],
      ['bulk', false],
      [null, true],
    ]);
  });

  it('has attachments, which a link opens for a limited time', async () => {
    const mx = await startInboundMx();
    await mx.route('support@in.example.com');
    const client = await mx.client();
    const body = [
      '--x',
      'Content-Type: text/html; charset=utf-8',
      '',
      '<p>See the file</p>',
      '--x',
      'Content-Type: application/pdf',
      'Content-Disposition: attachment; filename="../../a\u202e.pdf"',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from('%PDF-1').toString('base64'),
      '--x--',
      '',
    ].join('\r\n');
    const mail = mailOf({ 'MIME-Version': '1.0', 'Content-Type': 'multipart/mixed; boundary=x' }, body);
    await client.mail('grace@example.net', 'support@in.example.com', Buffer.from(mail));
    await mx.parsed();
    const [event] = mx.received();
    expect(event).toMatchObject({
      text: expect.stringContaining('See the file'),
      attachments: [{ name: 'a.pdf', type: 'application/pdf', size: 6 }],
    });
    const url = event?.attachments[0]?.url ?? '';
    expect(url.startsWith(`${PUBLIC_URL}/f/`)).toBe(true);
    const token = url.slice(`${PUBLIC_URL}/f/`.length);
    const part = mx.inbound.linked(token);
    if (part === null) throw new Error('the link is not valid');
    expect(part.accountId).toBe('acct_one');
    const file = granted(await part.read());
    expect(file).toMatchObject({ name: 'a.pdf', type: 'application/octet-stream' });
    expect(file.bytes.toString()).toBe('%PDF-1');
    expect(mx.inbound.linked(`${token.slice(0, -1)}A`)).toBeNull();
    mx.clock.advance(8 * 24 * 3_600_000);
    expect(mx.inbound.linked(token)).toBeNull();
  });

  it('is rejected when a route rejects forged mail and the policy of its author does, too', async () => {
    const mx = await startInboundMx();
    mx.dns.set('_dmarc.bank.example', 'TXT', ['v=DMARC1; p=reject']);
    await mx.route('support@in.example.com', { spamPolicy: 'reject' });
    await mx.route('open@in.example.com');
    const client = await mx.client();
    const forged = mailOf({ From: 'Bank <info@bank.example>' }, 'Pay\r\n');
    expect(await client.mail('info@bank.example', 'support@in.example.com', forged)).toMatch(/^550 5\.7\.1/);
    expect(await client.mail('info@bank.example', 'open@in.example.com', forged)).toMatch(/^250/);
    await mx.parsed();
    expect(mx.received()).toMatchObject([
      { authentication: { spf: 'none', dkim: 'none', dmarc: 'fail', dmarcPolicy: 'reject' } },
    ]);
    mx.dns.set('good.example', 'TXT', ['v=spf1 ip4:127.0.0.1 -all']);
    mx.dns.set('_dmarc.good.example', 'TXT', ['v=DMARC1; p=reject']);
    const good = mailOf({ From: 'info@good.example' }, 'Hello\r\n');
    expect(await client.mail('info@good.example', 'support@in.example.com', good)).toMatch(/^250/);
    mx.dns.set('_dmarc.silent.example', 'TXT', 'SERVFAIL');
    const unknown = mailOf({ From: 'info@silent.example' }, 'Hello\r\n');
    expect(await client.mail('info@silent.example', 'support@in.example.com', unknown)).toMatch(/^451/);
  });

  it('that the parser does not read is reported with its header', async () => {
    const mx = await startInboundMx();
    await mx.route('support@in.example.com');
    const client = await mx.client();
    const parts = Array.from({ length: 600 }, () => '--x\r\nContent-Type: text/plain\r\n\r\na\r\n').join('');
    const mail = mailOf({ 'Content-Type': 'multipart/mixed; boundary=x' }, `${parts}--x--\r\n`);
    expect(await client.mail('grace@example.net', 'support@in.example.com', mail)).toMatch(/^250/);
    await mx.parsed();
    expect(mx.received()).toMatchObject([
      { from: 'grace@example.net', subject: 'Hello', text: '', parseError: 'failed' },
    ]);
    // A rejection would end the thread, and delay the mail of all accounts.
    expect(await parseInbound(Buffer.from(mail), 'mx.example.net')).toEqual({ unreadable: 'failed' });
    expect(await attachmentOf(Buffer.from(mail), 0)).toBeNull();
  });

  it('is reported to the webhook of its route, whatever that subscribes to', async () => {
    const mx = await startInboundMx();
    const webhook = mx.tables.webhooks.insert({
      webhook_id: 'webhook_one',
      account_id: 'acct_one',
      name: 'Support',
      description: null,
      url: 'https://example.com/hooks',
      events: '["email_bounced"]',
      format: 'postrider',
      filter: null,
      headers: null,
      is_active: 1,
      off_reason: null,
      failing_since: null,
      created_at: 0,
      updated_at: 0,
    });
    await mx.route('support@in.example.com', { action: 'webhook', webhookId: 'webhook_one' });
    await mx.route('other@in.example.com');
    const client = await mx.client();
    await client.mail('grace@example.net', ['support@in.example.com', 'other@in.example.com'], MAIL);
    await mx.parsed();
    expect(mx.received()).toHaveLength(2);
    const deliveries = mx.db.prepare('SELECT webhook FROM webhook_deliveries').pluck().all();
    expect(deliveries).toEqual([webhook]);
  });

  it('is deleted with its source when it is the last one', async () => {
    const mx = await startInboundMx();
    await mx.route('support@in.example.com');
    const client = await mx.client();
    await client.mail('grace@example.net', 'support@in.example.com', MAIL);
    const [row] = await mx.parsed();
    expect(await mx.inbound.remove('acct_two', row?.inbound_id ?? '')).toMatchObject({
      code: 'INBOUND_NOT_FOUND',
    });
    granted(await mx.inbound.remove('acct_one', row?.inbound_id ?? ''));
    await mx.sourcesRemoved();
  });

  it('of an account with too many mails that wait is refused, and that of others is not', async () => {
    const mx = await startInboundMx({ parses: false });
    const route = await mx.route('support@in.example.com');
    await mx.writer.run(() => {
      for (let n = 0; n < 5000; n++) storeMail(mx);
    });
    const client = await mx.client();
    const send = () => client.mail('grace@example.net', 'support@in.example.com', MAIL);
    expect(await send()).toMatch(/^450 4\.2\.1 .*waits/);
    insertAccount(mx.tables, 'acct_two', mx.clock.now());
    const other = { ...granted(mx.inbound.routes.get('acct_one', route.route_id)), account_id: 'acct_two' };
    const from = { sender: 'grace@example.net', network: '127.0.0.0/24' };
    const matched = { ...other, account_status: 'active', domain_status: 'SUCCESS' } as const;
    expect(mx.inbound.reception.obstacle(matched, from)).toBeNull();
    mx.db.prepare("UPDATE inbound_mails SET status = 'parsed' WHERE seq = 1").run();
    expect(await send()).toMatch(/^250/);
  });

  it('is in memory up to a share of the account, until its responses have ended', async () => {
    const mx = await startInboundMx({ parses: false });
    insertAccount(mx.tables, 'acct_two', mx.clock.now());
    const size = 36_700_160;
    const inboundId = storeMail(mx, { size });
    const otherId = storeMail(mx, { size, accountId: 'acct_two' });
    const open = () => mx.inbound.file('acct_one', inboundId, 'raw');
    const files = (await Promise.all([open(), open(), open(), open()])).map(granted);
    expect(await open()).toMatchObject({ code: 'UNAVAILABLE' });
    granted(await mx.inbound.file('acct_two', otherId, 'raw'));
    // With mail of another account open its share is smaller, and closing twice has no effect.
    for (const file of [files[0], files[0], files[0]]) file?.close();
    expect(await open()).toMatchObject({ code: 'UNAVAILABLE' });
    files[1]?.close();
    granted(await open());
    expect(await open()).toMatchObject({ code: 'UNAVAILABLE' });
  });
});
