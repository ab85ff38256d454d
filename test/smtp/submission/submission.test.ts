import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { createTransport } from 'nodemailer';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { eventLoopTurns } from '../../../src/core/concurrency/slices.ts';
import { insertAccount, insertDomain } from '../../support/store.ts';
import { startMx } from '../mx/setup.ts';
import { mail, plain, startSubmission } from './setup.ts';

const ADA = 'ada@example.net';
const FROM = 'shop@example.com';

describe('a submitted mail', () => {
  it('is queued as over HTTP, and its id is in the reply', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const reply = await client.mail(FROM, ADA, mail({ head: 'X-Order: 1\r\nX-Postrider-Track: opens\r\n' }));
    const [message, ...others] = setup.stored();
    expect(others).toEqual([]);
    expect(reply).toBe(`250 2.6.0 OK: queued as ${message?.message_id}`);
    expect(message).toMatchObject({
      recipient: ADA,
      role: 'to',
      from_address: FROM,
      use_case: 'tx',
      status: 'queued',
      subject: 'Hello',
      track_opens: 1,
      track_clicks: 0,
      content: {
        from: { name: 'Shop', address: FROM },
        to: [{ name: 'Ada', address: ADA }],
        headers: [['X-Order', '1']],
      },
    });
    expect(message?.content.html).toContain('Example Ltd');
    expect(setup.tables.queue.get(message?.seq ?? 0)).toMatchObject({ priority: 0, ready: 1 });
  });

  it('may have neither a subject nor a text, and names everybody that the author named', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const head = `From: ${FROM}\r\nTo: Ada <${ADA}>, list@example.com\r\nMIME-Version: 1.0\r\n`;
    const scan = `${head}Content-Type: application/pdf; name=scan.pdf\r\n\r\nx\r\n`;
    expect(await client.mail(FROM, ADA, scan)).toMatch(/^250 /);
    expect(setup.stored().map(({ recipient }) => recipient)).toEqual([ADA]);
    expect(setup.stored()[0]?.content).toMatchObject({
      subject: '',
      to: [
        { name: 'Ada', address: ADA },
        { name: '', address: 'list@example.com' },
      ],
      attachments: [{ name: 'scan.pdf' }],
    });
  });

  it('is read in turns of its account', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const next = vi.spyOn(eventLoopTurns, 'next');
    onTestFinished(() => next.mockRestore());
    const head = 'Content-Disposition: attachment; filename=a.txt\r\n';
    const reply = await client.mail(FROM, ADA, mail({ head, body: 'text text\r\n'.repeat(180_000) }));
    expect(reply).toMatch(/^250 /);
    const turns = next.mock.calls.filter(([owner]) => owner === 'acct_one');
    // 2 MB in chunks of up to 64 KiB, at least as many of which are read in a turn.
    expect(turns.length).toBeGreaterThanOrEqual(16);
  });

  it('is one message for each recipient of the envelope', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const to = [ADA, 'copy@example.net', 'blind@example.net'];
    expect(await client.mail(FROM, to, mail({ head: 'Cc: copy@example.net\r\n' }))).toMatch(/^250 /);
    expect(setup.stored().map(({ recipient, role }) => `${role} ${recipient}`)).toEqual([
      `to ${ADA}`,
      'cc copy@example.net',
      'bcc blind@example.net',
    ]);
    expect(JSON.stringify(setup.stored()[0]?.content)).not.toContain('blind@');
  });

  it('is sent once for one idempotency key', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const once = mail({ head: 'X-Postrider-Idempotency-Key: order-1\r\n' });
    const first = await client.mail(FROM, ADA, once);
    expect(first).toMatch(/^250 /);
    expect(await client.mail(FROM, ADA, once)).toBe(first);
    expect(setup.stored()).toHaveLength(1);
    const other = mail({ head: 'X-Postrider-Idempotency-Key: order-1\r\nX-Other: 1\r\n' });
    expect(await client.mail(FROM, ADA, other)).toMatch(/^554 5\.5\.4 IDEMPOTENCY_KEY_REUSED: /);
  });

  const textMail = (body: string) => mail({ body }).replace('text/html', 'text/plain');

  it('with text only has no HTML', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const text = 'Hi! {{company_address}} {{unsubscribe_url}}';
    expect(await client.mail(FROM, ADA, textMail(text))).toMatch(/^250 /);
    const content = setup.stored()[0]?.content;
    expect(content?.html).toBe('');
    expect(content?.text).toContain('Hi! Example Ltd, 1 Main St');
    expect(content?.text).not.toContain('This message was sent to');
  });

  it('with other text in braces is sent as it is', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const code = '{{name}} {{{raw}}} {{ $value | json }} \\{{name}} {{name|none}}';
    const head = 'X-Test: 1\r\nSubject: {{name}} failed\r\n';
    const body = `<pre>${code}</pre>{{company_address_html}}{{unsubscribe_email_html}}`;
    const submitted = mail({ head, body }).replace('Subject: Hello\r\n', '');
    expect(await client.mail(FROM, ADA, submitted)).toMatch(/^250 /);
    expect(await client.mail(FROM, ADA, textMail(`${code} {{company_address}} {{unsubscribe_url}}`))).toMatch(
      /^250 /,
    );
    const [html, text] = setup.stored().map(({ content }) => content);
    expect(html?.subject).toBe('{{name}} failed');
    expect(html?.html).toContain(`<pre>${code}</pre>`);
    expect(html?.html).toContain('Example Ltd');
    expect(text?.text).toContain(`${code} Example Ltd, 1 Main St`);
  });

  it('without the compliance variables gets the footer, in text and HTML', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    expect(await client.mail(FROM, ADA, textMail('Hi!'))).toMatch(/^250 /);
    expect(await client.mail(FROM, ADA, mail({ body: '<html><body><p>Hi!</p></body></html>' }))).toMatch(
      /^250 /,
    );
    const half = '<p>Hi!</p>{{company_address_html}}';
    expect(await client.mail(FROM, ADA, mail({ body: half }))).toMatch(/^250 /);
    const both = `--b\r\n\r\nHi!\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>Hi!</p>\r\n--b--`;
    const alternative = mail({ body: both }).replace('text/html', 'multipart/alternative; boundary=b');
    expect(await client.mail(FROM, ADA, alternative)).toMatch(/^250 /);
    const [text, html, completed, pair] = setup.stored().map(({ content }) => content);
    const inText =
      /^Hi!\n\nExample Ltd\n1 Main St, Town, 12345, GB\n\nThis message was sent to .* Unsubscribe <.*>\n$/;
    expect(text?.html).toBe('');
    expect(text?.text).toMatch(inText);
    expect(html?.html).toMatch(
      /^<html><body><p>Hi!<\/p>\n<p><span .*Example Ltd.*<\/p>\n<p><span .*Unsubscribe.*<\/p>\n<\/body><\/html>\s*$/s,
    );
    expect(html?.text).toBeNull();
    expect(completed?.html.match(/Example Ltd/g)).toHaveLength(1);
    expect(completed?.html).toContain('>Unsubscribe</a>');
    expect(pair?.text).toMatch(inText);
    expect(pair?.html).toContain('>Unsubscribe</a>');
  });

  it('without the compliance variables is rejected with a strict key', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn({ strictCompliance: true });
    expect(await client.mail(FROM, ADA, textMail('Hi!'))).toMatch(
      /^554 5\.6\.0 COMPLIANCE_TEMPLATE_MISSING: /,
    );
    expect(await client.mail(FROM, ADA, mail({ body: 'Hi!' }))).toMatch(
      /^554 5\.6\.0 COMPLIANCE_TEMPLATE_MISSING: /,
    );
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
  });

  it('of a test key is simulated', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn({ livemode: false });
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
    expect(setup.stored().map(({ simulated }) => simulated)).toEqual([1]);
  });

  it('whose markup would hide the footer is rejected', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    expect(await client.mail(FROM, ADA, mail({ body: '<p>Hi!</p><!-- ' }))).toMatch(
      /^554 5\.6\.0 COMPLIANCE_TEMPLATE_MISSING: /,
    );
  });

  it('that is essential has no unsubscribe link, and needs a key that may send it', async () => {
    const setup = await startSubmission();
    const essential = mail({ head: 'X-Postrider-Essential: yes\r\n', body: '<p>1234</p>' });
    const client = await setup.loggedIn();
    expect(await client.mail(FROM, ADA, essential)).toMatch(/^250 /);
    const [stored] = setup.stored();
    expect(stored?.essential).toBe(1);
    expect(stored?.content.html).toContain('Example Ltd');
    expect(stored?.content.html).not.toContain('Unsubscribe');
    const barred = await setup.loggedIn({ allowEssential: false });
    expect(await barred.mail(FROM, ADA, essential)).toMatch(/^550 5\.7\.1 KEY_NOT_ALLOWED: /);
  });

  it('keeps its Message-ID, which is not compared for idempotency', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const key = 'X-Postrider-Idempotency-Key: order-2\r\nReferences: <0@example.com>\r\n';
    const sent = (id: string) => client.mail(FROM, ADA, mail({ head: `${key}Message-ID: <${id}>\r\n` }));
    const first = await sent('1@mail.example.com');
    expect(await sent('2@mail.example.com')).toBe(first);
    expect(setup.stored()).toHaveLength(1);
    expect(setup.stored()[0]?.content).toMatchObject({
      messageId: '1@mail.example.com',
      headers: [['References', '<0@example.com>']],
    });
    await client.mail(FROM, ADA, mail({ head: 'Message-ID: <1@elsewhere.example>\r\n' }));
    expect(setup.stored()[1]?.content.messageId).toMatch(/^msg_\d+_\w+@example\.com$/);
  });
});

describe('a mail that HTTP refuses is rejected', () => {
  it.each<[string, Parameters<typeof mail>[0], RegExp]>([
    [
      'a From domain that is not registered',
      { from: 'a@unknown.example' },
      /^550 5\.7\.1 DOMAIN_NOT_REGISTERED: /,
    ],
    [
      'a From domain that is not verified',
      { from: 'a@pending.example' },
      /^550 5\.7\.1 DOMAIN_NOT_VERIFIED: /,
    ],
    ['a From domain for the other stream', { from: 'a@news.example' }, /^550 5\.7\.1 USE_CASE_MISMATCH: /],
    ['no From', { from: '' }, /^554 5\.6\.0 VALIDATION_ERROR: From: is required/],
    ['two From', { from: 'a@example.com, b@example.com' }, /^554 5\.6\.0 VALIDATION_ERROR: From: /],
    [
      'a campaign',
      { head: 'X-Postrider-Campaign: x\r\n' },
      /^554 5\.6\.0 VALIDATION_ERROR: X-Postrider-campaign/,
    ],
    [
      'an unknown control field',
      { head: 'X-Postrider-Other: x\r\n' },
      /^554 5\.6\.0 VALIDATION_ERROR: X-Postrider-other/,
    ],
    [
      'signed mail',
      { head: 'Content-Type: multipart/signed; boundary=b\r\n', body: '--b\r\n\r\nx\r\n--b--' },
      /^554 5\.6\.0 .*signed/,
    ],
  ])('%s', async (_, changes, reply) => {
    const setup = await startSubmission();
    const now = setup.clock.now();
    const domain = { account_id: 'acct_one' };
    insertDomain(
      setup.tables,
      { ...domain, domain_id: 'domain_p', name: 'pending.example', status: 'PENDING' },
      now,
    );
    insertDomain(
      setup.tables,
      { ...domain, domain_id: 'domain_n', name: 'news.example', use_case: 'mk' },
      now,
    );
    const client = await setup.loggedIn();
    expect(await client.mail(FROM, ADA, mail(changes))).toMatch(reply);
    expect(setup.stored()).toEqual([]);
    // The connection can still be used.
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
  });

  it('a suppressed recipient', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    await client.mail(FROM, ADA, mail());
    const [message] = setup.stored();
    if (message === undefined) throw new Error('not stored');
    await setup.writer.run((tx) =>
      tx.suppressions.add({
        account_id: 'acct_one',
        recipient_hash: message.recipient_hash,
        stream: 'all',
        reason: 'hard_bounce',
        email: ADA,
        message_seq: null,
        created_at: 0,
      }),
    );
    expect(await client.mail(FROM, ADA, mail())).toMatch(
      /^550 5\.7\.1 RECIPIENT_SUPPRESSED: .*ada@example\.net/,
    );
  });

  it('attachments over their limit', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    const parts = [
      'Content-Type: text/html\r\n\r\n{{company_address_html}}{{unsubscribe_email_html}}',
    ].concat(Array.from({ length: 11 }, () => 'Content-Type: image/png\r\n\r\nx'));
    const body = parts.map((part) => `--b\r\n${part}\r\n`).join('');
    const many = mail({ head: 'MIME-Version: 1.0\r\n', body: `${body}--b--` }).replace(
      'Content-Type: text/html',
      'Content-Type: multipart/mixed; boundary=b',
    );
    expect(await client.mail(FROM, ADA, many)).toMatch(/^554 5\.6\.0 TOO_MANY_ATTACHMENTS: /);
  });

  it.each([
    ['no domain', 'ada', /^501 /],
    [
      'a domain of one label',
      'ada@localhost',
      /^553 5\.1\.3 Recipient address: the part after the "@" is not a domain name$/,
    ],
    ['an address literal', 'ada@[192.0.2.1]', /^553 5\.1\.3 Recipient address: /],
  ])('an address with %s, at RCPT', async (_, address, reply) => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    await client.say(`MAIL FROM:<${FROM}>`);
    expect(await client.say(`RCPT TO:<${address}>`)).toMatch(reply);
  });

  it('more than a hundred recipients, one by one, so that the client sends the rest later', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    await client.say(`MAIL FROM:<${FROM}>`);
    const replies: string[] = [];
    for (let n = 0; n < 101; n++) replies.push(await client.say(`RCPT TO:<user${n}@example.net>`));
    expect(replies.filter((reply) => reply.startsWith('250'))).toHaveLength(100);
    expect(replies.at(-1)).toMatch(/^452 4\.5\.3 /);
    await client.say('DATA');
    expect(await client.say(`${mail()}.`)).toMatch(/^250 /);
    expect(setup.tables.queue.count()).toBe(100);
  });

  it('more than the key may send, temporarily', async () => {
    const setup = await startSubmission({ sendRate: { burst: 1, perSecond: 1 } });
    const client = await setup.loggedIn();
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^450 4\.7\.1 RATE_LIMITED: /);
    setup.clock.advance(1000);
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
  });

  it('more messages than the account may send in an hour, temporarily', async () => {
    const setup = await startSubmission({ account: { messagesPerHour: 2 } });
    const client = await setup.loggedIn();
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
    expect(await client.mail(FROM, [ADA, 'eve@example.net'], mail())).toMatch(
      /^450 4\.7\.1 RATE_LIMITED: This account's limit of 2 messages per hour /,
    );
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
    expect(setup.stored()).toHaveLength(2);
  });

  it('more messages to the simulator than the account may send in an hour, temporarily', async () => {
    const setup = await startSubmission({ account: { messagesPerHour: 1 } });
    const client = await setup.loggedIn();
    const simulated = 'delivered@simulator.mail.test';
    expect(await client.mail(FROM, simulated, mail())).toMatch(/^250 /);
    expect(await client.mail(FROM, simulated, mail())).toMatch(/^450 4\.7\.1 RATE_LIMITED: /);
    expect(setup.stored()).toHaveLength(1);
  });

  it('more bytes than over HTTP', async () => {
    const setup = await startSubmission({ limits: { sendBytes: 2000 } });
    const client = await setup.loggedIn();
    expect(await client.say('EHLO app.example')).toContain('SIZE 2000');
    expect(await client.mail(FROM, ADA, mail({ body: 'x'.repeat(3000) }))).toMatch(/^552 5\.3\.4 /);
  });
});

describe('login', () => {
  it('is required', async () => {
    const setup = await startSubmission();
    const client = await setup.connect();
    await client.say('EHLO app.example');
    expect(await client.say(`MAIL FROM:<${FROM}>`)).toMatch(/^530 5\.7\.0 /);
  });

  it.each<[string, (secret: string) => [string, string]]>([
    ['a wrong key', () => ['acct_one', `pr_${'x'.repeat(43)}`]],
    ['no key', () => ['acct_one', '']],
    ["another's account", (secret) => ['acct_two', secret]],
    ['key and account exchanged', (secret) => [secret, 'acct_one']],
  ])('has the same reply for %s', async (_, credentials) => {
    const setup = await startSubmission();
    const { secret } = await setup.key();
    const client = await setup.connect();
    await client.say('EHLO app.example');
    expect(await client.say(plain(...credentials(secret)))).toBe(
      '535 5.7.8 UNAUTHENTICATED: The user name must be an account id, and the password a key of that account',
    );
    expect(await client.say(`MAIL FROM:<${FROM}>`)).toMatch(/^530 /);
  });

  it.each([
    ['an empty authentication identity (RFC 4616 §2)', 'acct_one\0\0'],
    ['another authorization identity', 'acct_two\0acct_one\0'],
  ])('rejects %s', async (_, identities) => {
    const setup = await startSubmission();
    const { secret } = await setup.key();
    const client = await setup.connect();
    await client.say('EHLO app.example');
    const token = Buffer.from(`${identities}${secret}`).toString('base64');
    expect(await client.say(`AUTH PLAIN ${token}`)).toMatch(/^535 5\.7\.8 UNAUTHENTICATED: /);
    expect(await client.say(`MAIL FROM:<${FROM}>`)).toMatch(/^530 /);
  });

  it.each([
    [
      'PLAIN in one step',
      async (client: { say(line: string): Promise<string> }, secret: string) =>
        client.say(plain('acct_one', secret)),
    ],
    [
      'LOGIN step by step',
      async (client: { say(line: string): Promise<string> }, secret: string) => {
        await client.say('AUTH LOGIN');
        await client.say(Buffer.from('acct_one').toString('base64'));
        return client.say(Buffer.from(secret).toString('base64'));
      },
    ],
  ])('accepts a valid key by %s', async (_, logIn) => {
    const setup = await startSubmission();
    const { secret } = await setup.key();
    const client = await setup.connect();
    expect(await client.say('EHLO app.example')).toContain('AUTH PLAIN LOGIN');
    expect(await logIn(client, secret)).toMatch(/^235 2\.7\.0 |^235 /);
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
  });

  it('rejects a setup key', async () => {
    const setup = await startSubmission();
    await expect(setup.loggedIn({ scopes: ['setup'] })).rejects.toThrow(/^535 5\.7\.8 INSUFFICIENT_SCOPE: /);
  });

  it('rejects a key from an address outside its allow-list', async () => {
    const setup = await startSubmission();
    await expect(setup.loggedIn({ allowIps: ['192.0.2.0/24'] })).rejects.toThrow(
      /^550 5\.7\.1 KEY_NOT_ALLOWED: /,
    );
  });

  it('limits a key to its From domains', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn({ allowFrom: ['other.example'] });
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^550 5\.7\.1 KEY_NOT_ALLOWED: /);
  });

  it('rejects the next mail after the key is revoked', async () => {
    const setup = await startSubmission();
    const { secret, keyId } = await setup.key();
    const client = await setup.connect();
    await client.say('EHLO app.example');
    await client.say(plain('acct_one', secret));
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
    await setup.keys.revoke(keyId);
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^535 5\.7\.8 UNAUTHENTICATED: /);
  });

  it('rejects a disabled account', async () => {
    const setup = await startSubmission();
    const account = setup.tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    await setup.writer.run((tx) => tx.accounts.update({ ...account, status: 'disabled' }));
    await expect(setup.loggedIn()).rejects.toThrow(/^525 5\.7\.13 ACCOUNT_DISABLED: /);
  });

  it('ends the connection at the tenth invalid key', async () => {
    const setup = await startSubmission();
    const client = await setup.connect();
    await client.say('EHLO app.example');
    const replies: string[] = [];
    for (let n = 0; n < 10; n++) replies.push(await client.say(plain('acct_one', `pr_${n}`)));
    expect(replies.slice(0, 9).filter((reply) => reply.startsWith('535 5.7.8 '))).toHaveLength(9);
    expect(replies[9]).toMatch(/^421 4\.7\.0 Too many failed logins/);
    await client.end;
    // For ten minutes its address has one attempt per connection; a valid key is always accepted.
    const next = await setup.connect();
    await next.say('EHLO app.example');
    expect(await next.say(plain('acct_one', 'pr_11'))).toMatch(/^421 /);
    await next.end;
    await setup.loggedIn();
    setup.clock.advance(10 * MINUTE);
    const later = await setup.connect();
    await later.say('EHLO app.example');
    expect(await later.say(plain('acct_one', 'pr_12'))).toMatch(/^535 /);
  });

  it('logs failed logins as one line per address and minute', async () => {
    const lines: string[] = [];
    const setup = await startSubmission({ log: (line) => lines.push(line) });
    const client = await setup.connect();
    await client.say('EHLO app.example');
    for (let n = 0; n < 10; n++) await client.say(plain('acct_one', `pr_${n}`));
    await client.end;
    const refusals = () => lines.filter((line) => line.includes('SMTP logins refused'));
    expect(refusals()).toEqual([]);
    await setup.close();
    expect(refusals().map((line): unknown => JSON.parse(line))).toEqual([
      expect.objectContaining({ count: 10, code: 'UNAUTHENTICATED' }),
    ]);
  });
});

describe('marketing mail', () => {
  it('is sent with a marketing key to contacts with consent', async () => {
    const setup = await startSubmission();
    insertDomain(
      setup.tables,
      { account_id: 'acct_one', domain_id: 'domain_mk', name: 'example.com', use_case: 'mk' },
      setup.clock.now(),
    );
    const client = await setup.loggedIn({ scopes: ['marketing'] });
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^550 5\.7\.1 CONSENT_REQUIRED: /);
    const group = mail({ head: 'X-Postrider-Group: sgroup_1_nobody\r\n' });
    expect(await client.mail(FROM, ADA, group)).toMatch(/^554 5\.5\.4 SUBSCRIPTION_GROUP_NOT_FOUND: /);
  });

  it('is sent with a key for both streams when it names a group or a campaign', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn({ scopes: ['marketing', 'transactional'] });
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
    const campaign = mail({ head: 'X-Postrider-Campaign: campaign_1_nobody\r\n' });
    expect(await client.mail(FROM, ADA, campaign)).toMatch(/^554 5\.5\.4 CAMPAIGN_NOT_FOUND: /);
    expect(setup.stored().map(({ use_case }) => use_case)).toEqual(['tx']);
  });
});

describe('implicit TLS', () => {
  it('accepts mail', async () => {
    const setup = await startSubmission({ submission: { implicitTls: true } });
    const { secret } = await setup.key();
    const transport = createTransport({
      host: '127.0.0.1',
      port: setup.port,
      secure: true,
      auth: { user: 'acct_one', pass: secret },
      tls: { rejectUnauthorized: false },
    });
    const html = '{{company_address_html}}{{unsubscribe_email_html}}';
    const sent = await transport.sendMail({ from: FROM, to: ADA, subject: 'Hello', html });
    expect(sent.response).toMatch(/^250 2\.6\.0 OK: queued as msg_/);
    expect(setup.stored()).toHaveLength(1);
  });
});

describe('an account that holds endless uploads', () => {
  it('does not block other accounts', async () => {
    const setup = await startSubmission({ limits: { sendBytes: 200_000 } });
    insertAccount(setup.tables, 'acct_two', setup.clock.now());
    insertDomain(
      setup.tables,
      { account_id: 'acct_two', domain_id: 'domain_two', name: 'second.example' },
      setup.clock.now(),
    );
    for (let n = 0; n < 45; n++) {
      const client = await setup.loggedIn();
      await client.say(`MAIL FROM:<${FROM}>`);
      await client.say(`RCPT TO:<${ADA}>`);
      await client.say('DATA');
      client.write(`${'x'.repeat(78)}\r\n`.repeat(2480));
    }
    const { secret } = await setup.key({ accountId: 'acct_two' });
    const other = await setup.connect();
    await other.say('EHLO app.example');
    expect(await other.say(plain('acct_two', secret))).toMatch(/^235 /);
    const large = mail({
      from: 'shop@second.example',
      body: `{{company_address_html}}{{unsubscribe_email_html}}${'<p>Hello</p>\r\n'.repeat(11_000)}`,
    });
    expect(await other.mail('shop@second.example', ADA, large)).toMatch(/^250 /);
  });
});

describe('the TLS of submission', () => {
  const handshake = (port: number, options: ConnectionOptions) =>
    new Promise<string>((resolve) => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
      socket.once('secureConnect', () => {
        resolve(socket.getCipher().name);
        socket.destroy();
      });
      socket.once('error', () => resolve('refused'));
    });
  const tls12 = { maxVersion: 'TLSv1.2' } as const;

  it.each<[string, ConnectionOptions, RegExp]>([
    ['uses TLS 1.3', {}, /^TLS_/],
    ['uses AEAD suites in TLS 1.2', tls12, /^ECDHE-.*(?:GCM|POLY1305)/],
    [
      'refuses CBC suites',
      { ...tls12, ciphers: 'ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384' },
      /^refused$/,
    ],
    ['refuses suites without forward secrecy', { ...tls12, ciphers: 'AES128-GCM-SHA256' }, /^refused$/],
    [
      'refuses TLS 1.1',
      { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' },
      /^refused$/,
    ],
  ])('%s', async (_, options, outcome) => {
    const setup = await startSubmission({ submission: { implicitTls: true } });
    expect(await handshake(setup.port, options)).toMatch(outcome);
  });

  it.each(['ECDHE-ECDSA-AES128-SHA', 'AES128-GCM-SHA256', 'AES128-SHA'])(
    'of the MX listener refuses %s as well, unless mx.ciphers has it',
    async (ciphers) => {
      const setup = await startMx();
      await expect((await setup.client()).startTls({ ...tls12, ciphers })).rejects.toThrow();
    },
  );

  it('of the MX listener has the suites of mx.ciphers', async () => {
    const ciphers = 'ECDHE-ECDSA-AES128-SHA';
    const setup = await startMx({ mx: { ciphers } });
    const secure = await (await setup.client()).startTls({ ...tls12, ciphers });
    expect(secure.getCipher().name).toBe(ciphers);
  });
});

describe('off loopback', () => {
  /** The listener uses the address that a proxy states. */
  const REMOTE_CLIENT = { first: 'PROXY TCP4 203.0.113.7 192.0.2.1 40000 587\r\n' };
  const PROXIED = { submission: { proxyProtocol: ['127.0.0.1'] } };

  it('offers no AUTH without encryption', async () => {
    const setup = await startSubmission(PROXIED);
    const { secret } = await setup.key();
    const client = await setup.connect(REMOTE_CLIENT);
    const keywords = await client.say('EHLO app.example');
    expect(keywords).toContain('STARTTLS');
    expect(keywords).not.toContain('AUTH');
    expect(await client.say(plain('acct_one', secret))).toMatch(/^500 /);
    expect(await client.say(`MAIL FROM:<${FROM}>`)).toBe('530 5.7.0 Must issue a STARTTLS command first');
  });

  it('offers AUTH on an encrypted connection', async () => {
    const setup = await startSubmission(PROXIED);
    const { secret } = await setup.key({ allowIps: ['203.0.113.7'] });
    const client = await setup.connect(REMOTE_CLIENT);
    await client.say('EHLO app.example');
    await client.startTls();
    expect(await client.say('EHLO app.example')).toContain('AUTH PLAIN LOGIN');
    expect(await client.say(plain('acct_one', secret))).toMatch(/^235 /);
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
  });

  it('treats loopback behind a proxy like other addresses', async () => {
    const setup = await startSubmission(PROXIED);
    const client = await setup.connect({ first: 'PROXY TCP4 127.0.0.1 127.0.0.1 40000 587\r\n' });
    expect(await client.say('EHLO app.example')).not.toContain('AUTH');
  });

  it('discards a login before STARTTLS', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    await client.startTls();
    await client.say('EHLO app.example');
    expect(await client.say(`MAIL FROM:<${FROM}>`)).toMatch(/^530 /);
  });
});

describe('a failure of the database', () => {
  it('at AUTH is a temporary failure', async () => {
    const setup = await startSubmission();
    const { secret } = await setup.key();
    setup.db.exec('ALTER TABLE api_keys RENAME TO elsewhere');
    const client = await setup.connect();
    await client.say('EHLO app.example');
    expect(await client.say(plain('acct_one', secret))).toMatch(
      /^454 4\.7\.0 Temporary authentication failure/,
    );
    setup.db.exec('ALTER TABLE elsewhere RENAME TO api_keys');
    expect(await client.say(plain('acct_one', secret))).toMatch(/^235 /);
  });

  it('while a mail is stored is a temporary failure', async () => {
    const setup = await startSubmission();
    const client = await setup.loggedIn();
    setup.db.exec('ALTER TABLE queue RENAME TO elsewhere');
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^451 4\.3\.0 /);
    setup.db.exec('ALTER TABLE elsewhere RENAME TO queue');
    expect(await client.mail(FROM, ADA, mail())).toMatch(/^250 /);
  });
});
