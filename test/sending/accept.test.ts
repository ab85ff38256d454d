import { describe, expect, it, vi } from 'vitest';
import { HOUR } from '../../src/core/clock.ts';
import { isRefusal, refuse } from '../../src/core/refusal.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { sendingObstacle } from '../../src/sending/checks.ts';
import type { LeasedMessage } from '../../src/sending/draft.ts';
import type { SendRequest } from '../../src/sending/request.ts';
import { refused } from '../support/refusal.ts';
import { contentOf, insertAccount, insertDomain } from '../support/store.ts';
import { templateThreads } from '../support/template-threads.ts';
import { accepted, BODY, HTML, startAcceptance } from './acceptance.ts';

/** Given at a time after every acceptance. */
const LEASE = { generation: 3, at: 4_000_000_000_000 };

describe('an accepted send', () => {
  it.each(['x', 'я', '字'])(
    'keeps its files whole after a long text of the character %s',
    async (character) => {
      const { send, contents } = startAcceptance();
      const html = `${HTML}${character.repeat(30_000)}`;
      const attachments = [30_000, 50_000].map((length, n) => ({
        name: `${n}.bin`,
        contentType: 'application/octet-stream',
        content: Buffer.alloc(length, n + 1).toString('base64'),
      }));
      accepted(await send({ ...BODY, html, attachments }));
      expect(contents()).toMatchObject([
        { html: expect.stringContaining(character.repeat(30_000)), attachments },
      ]);
    },
  );

  it('is stored, queued, announced and confirmed', async () => {
    const { send, stored, tables, announced } = startAcceptance();
    const { data, body } = accepted(await send());
    expect(data).toMatchObject({
      messageId: expect.stringMatching(/^msg_\d+_[0-9a-z]{12}$/),
      from: 'Shop <shop@example.com>',
      totalRecipients: 1,
      recipients: [{ email: 'ada@example.net', status: 'sent', role: 'to', messageId: data.messageId }],
      status: 'sent',
    });
    expect(JSON.parse(body)).toEqual({ success: true, data });
    const [message] = stored();
    expect(message).toMatchObject({
      message_id: data.messageId,
      status: 'queued',
      subject: 'Order 7',
      recipient_hash: emailIdentifier('ada@example.net'),
    });
    expect(tables.queue.get(message?.seq ?? 0)).toMatchObject({
      priority: 0,
      destination: 'example.net',
      ready: 1,
      lease: null,
    });
    expect(announced).toEqual([{ priority: 0, account_id: 'acct_one', destination: 'example.net' }]);
  });

  it('is leased when delivery can send it immediately, and given to delivery after the commit', async () => {
    const calls: unknown[] = [];
    const { send, stored, tables, announced } = startAcceptance({}, undefined, {
      leaseNow: (mail) => {
        calls.push(mail);
        return [LEASE];
      },
      accepted: (leased) => calls.push(leased.map(({ message }) => tables.queue.get(message.seq)?.lease)),
    });
    accepted(await send());
    const mail = { account_id: 'acct_one', use_case: 'tx', priority: 0, destination: 'example.net' };
    expect(calls).toMatchObject([[{ ...mail, domain_id: 'domain_one' }], [LEASE.generation]]);
    expect(stored()[0]).toMatchObject({ status: 'sending', sent_at: LEASE.at, updated_at: LEASE.at });
    expect(announced).toEqual([]);
  });

  it('is given to delivery as it would be read from the queue, with its content', async () => {
    const leased: LeasedMessage[] = [];
    const { send, stored, tables, db } = startAcceptance({}, undefined, {
      leaseNow: () => [LEASE],
      accepted: (messages) => leased.push(...messages),
    });
    accepted(await send());
    const seq = stored()[0]?.seq ?? 0;
    db.prepare('UPDATE queue SET lease = NULL').run();
    const { status, sent_at, ...read } = tables.queue.ready(seq) ?? expect.fail('no message');
    expect({ status, sent_at }).toEqual({ status: 'sending', sent_at: LEASE.at });
    expect(leased).toMatchObject([{ message: { ...read, updated_at: expect.any(Number) } }]);
    expect(leased[0]?.content.size).toBe(read.content_bytes);
  });

  it('is announced for the destinations whose messages wait in the queue', async () => {
    const { send, announced } = startAcceptance({}, undefined, {
      leaseNow: (mail) => mail.map(({ destination }) => (destination === 'one.test' ? LEASE : null)),
    });
    accepted(await send({ to: ['a@one.test', 'b@two.test', 'c@one.test', 'd@three.test'] }));
    expect(announced.map(({ destination }) => destination)).toEqual(['two.test', 'three.test']);
  });

  it('waits in the queue when it may no longer be sent at the commit', async () => {
    const { send, stored, tables, announced } = startAcceptance({}, undefined, {
      leaseNow: () => {
        const account = tables.accounts.get('acct_one') ?? expect.fail('no account');
        tables.accounts.update({ ...account, status: 'disabled' });
        return [LEASE];
      },
      accepted: (leased) => expect(leased).toEqual([]),
    });
    accepted(await send());
    expect(stored()[0]).toMatchObject({ status: 'queued', sent_at: null });
    expect(announced).toHaveLength(1);
  });

  it('waits in the queue when it cannot be read whether it may be sent', async () => {
    const { send, stored, tables, announced } = startAcceptance({}, undefined, {
      leaseNow: () => {
        tables.domains.sendingStop = () => {
          throw new Error('database disk image is malformed');
        };
        return [LEASE];
      },
      accepted: (leased) => expect(leased).toEqual([]),
    });
    accepted(await send());
    expect(stored()[0]).toMatchObject({ status: 'queued', sent_at: null });
    expect(announced).toHaveLength(1);
  });

  it('is not given to delivery when it cannot be stored', async () => {
    const { send, stored, tables } = startAcceptance({}, undefined, {
      leaseNow: (mail) => mail.map(() => LEASE),
      accepted: () => expect.unreachable(),
    });
    vi.spyOn(tables.queue, 'insert').mockImplementation(({ destination }) => {
      if (destination === 'two.test') throw new Error('disk full');
    });
    await expect(send({ to: ['a@one.test', 'b@two.test', 'c@one.test'] })).rejects.toThrow('disk full');
    expect(stored()).toEqual([]);
  });

  it('stores escaped values in html and marks for the parts that differ between copies', async () => {
    const { send, stored, tables } = startAcceptance();
    accepted(await send());
    const content = contentOf(tables, stored()[0]);
    expect(content).toMatchObject({
      subject: 'Order 7',
      from: { name: 'Shop', address: 'shop@example.com' },
      text: null,
    });
    expect(content.html).toContain('Hello &lt;Ada&gt;');
    expect(content.html).toContain('\u0000u\u0000');
    expect(content.messageId).toMatch(/^msg_.*@example\.com$/);
  });

  it('creates a message for each recipient with one shared content', async () => {
    const { send, stored, announced } = startAcceptance();
    const { data } = accepted(
      await send({
        to: ['a@one.test, b@two.test', 'B2 <b@Two.test>'],
        cc: 'c@one.test',
        bcc: 'd@three.test',
      }),
    );
    expect(data.totalRecipients).toBe(4);
    expect(data.recipients.map(({ email, role }) => `${role} ${email}`)).toEqual([
      'to a@one.test',
      'to b@two.test',
      'cc c@one.test',
      'bcc d@three.test',
    ]);
    expect(new Set(stored().map(({ content_id }) => content_id)).size).toBe(1);
    expect(new Set(data.recipients.map(({ messageId }) => messageId)).size).toBe(4);
    expect(announced.map(({ destination }) => destination)).toEqual(['one.test', 'two.test', 'three.test']);
  });

  it('can have only blind copies', async () => {
    const { send } = startAcceptance();
    const { to: _, ...rest } = BODY;
    expect(
      accepted(await send({ ...rest, to: undefined, bcc: 'd@three.test' })).data.recipients[0]?.role,
    ).toBe('bcc');
  });

  it('recognizes simulated mail', async () => {
    const { send, stored } = startAcceptance();
    accepted(await send({ to: 'bounced@simulator.mail.test' }));
    expect(stored()[0]?.simulated).toBe(1);
  });
});

describe('a refused send', () => {
  const REFUSED: [what: string, changes: Partial<SendRequest>, code: string, field: string][] = [
    ['an unregistered domain', { from: 'a@elsewhere.test' }, 'DOMAIN_NOT_REGISTERED', 'from'],
    ['a subdomain of a registered one', { from: 'a@sub.example.com' }, 'DOMAIN_NOT_REGISTERED', 'from'],
    ['a pending domain', { from: 'a@pending.test' }, 'DOMAIN_NOT_VERIFIED', 'from'],
    ['a failed domain', { from: 'a@failed.test' }, 'DOMAIN_NOT_VERIFIED', 'from'],
    ['a domain for marketing only', { from: 'a@marketing.test' }, 'USE_CASE_MISMATCH', 'from'],
    ['a domain pending here, verified for marketing', { from: 'a@half.test' }, 'DOMAIN_NOT_VERIFIED', 'from'],
    ['another account’s domain', { from: 'a@theirs.test' }, 'DOMAIN_NOT_REGISTERED', 'from'],
    ['no compliance variables', { html: '<p>Hi</p>' }, 'COMPLIANCE_TEMPLATE_MISSING', 'html'],
    ['an unresolved variable', { templateVariables: {} }, 'TEMPLATE_VARIABLE_MISSING', 'subject'],
    [
      'a variable that is an array',
      { templateVariables: { name: [], order: { number: 1 } } },
      'VALIDATION_ERROR',
      'templateVariables.name',
    ],
    ['a link in the subject', { subject: 'Leave: {{unsubscribe_url}}' }, 'VALIDATION_ERROR', 'subject'],
    [
      'a line break in a subject’s variable',
      { templateVariables: { name: 'x', order: { number: 'a\r\nBcc: x@y.z' } } },
      'VALIDATION_ERROR',
      'templateVariables.order.number',
    ],
    [
      'a reserved variable',
      { templateVariables: { name: 'x', unsubscribe_url: 'y' } },
      'VALIDATION_ERROR',
      'templateVariables.unsubscribe_url',
    ],
    [
      'an integer that cannot be represented',
      { templateVariables: { name: 2 ** 53, order: { number: 1 } } },
      'VALIDATION_ERROR',
      'templateVariables.name',
    ],
    [
      'a nested number that is too large',
      {
        templateVariables: { name: 'x', order: { number: 1, items: [{ price: 1 }, { price: 1e308 * 10 }] } },
      },
      'VALIDATION_ERROR',
      'templateVariables.order.items[1].price',
    ],
    ['a line break in the subject', { subject: 'a\nb' }, 'VALIDATION_ERROR', 'subject'],
    ['a NUL in the html', { html: `${HTML}\u0000` }, 'VALIDATION_ERROR', 'html'],
    ['an unpaired surrogate', { text: '\ud800' }, 'VALIDATION_ERROR', 'text'],
    ['no recipient', { to: [] }, 'VALIDATION_ERROR', 'to'],
    ['a malformed recipient', { cc: 'nobody' }, 'VALIDATION_ERROR', 'cc'],
    [
      '51 recipients',
      { to: Array.from({ length: 51 }, (_, n) => `a${n}@example.net`) },
      'VALIDATION_ERROR',
      'to',
    ],
    ['two senders', { from: 'a@example.com, b@example.com' }, 'VALIDATION_ERROR', 'from'],
    [
      'a header that the service sets',
      { headers: { 'Message-Id': 'x' } },
      'VALIDATION_ERROR',
      'headers.Message-Id',
    ],
    [
      'a header with a prefix of the service',
      { headers: { 'X-Postrider-Id': 'x' } },
      'VALIDATION_ERROR',
      'headers.X-Postrider-Id',
    ],
    ['a header with a line break', { headers: { 'X-A': 'a\r\nBcc: b' } }, 'VALIDATION_ERROR', 'headers.X-A'],
    ['a header given twice', { headers: { 'X-A': 'a', 'x-a': 'b' } }, 'VALIDATION_ERROR', 'headers.x-a'],
    [
      '51 headers',
      { headers: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`X-${n}`, 'a'])) },
      'VALIDATION_ERROR',
      'headers',
    ],
    ['headers over 8 KiB', { headers: { 'X-A': 'a'.repeat(8200) } }, 'VALIDATION_ERROR', 'headers'],
    [
      'an attachment that is not base64',
      { attachments: [{ name: 'a', contentType: 'a/b', content: '*' }] },
      'VALIDATION_ERROR',
      'attachments[0].content',
    ],
    [
      'base64 whose last bits are not zero',
      { attachments: [{ name: 'a', contentType: 'a/b', content: 'YR==' }] },
      'VALIDATION_ERROR',
      'attachments[0].content',
    ],
    [
      'an attachment with a path',
      { attachments: [{ name: '../a', contentType: 'a/b', content: '' }] },
      'VALIDATION_ERROR',
      'attachments[0].name',
    ],
    [
      'eleven attachments',
      { attachments: Array.from({ length: 11 }, () => ({ name: 'a', contentType: 'a/b', content: 'YQ==' })) },
      'TOO_MANY_ATTACHMENTS',
      'attachments',
    ],
    [
      '2 MB and a byte',
      {
        attachments: [{ name: 'a', contentType: 'a/b', content: Buffer.alloc(2_097_153).toString('base64') }],
      },
      'ATTACHMENTS_TOO_LARGE',
      'attachments',
    ],
  ];

  it('has the code and the field of its fault, and stores nothing', async () => {
    const { send, stored, tables, announced } = startAcceptance();
    insertAccount(tables, 'acct_two', 0);
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_p', name: 'pending.test', status: 'PENDING' },
      0,
    );
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_f', name: 'failed.test', status: 'FAILED' },
      0,
    );
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_m', name: 'marketing.test', use_case: 'mk' },
      0,
    );
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_h1', name: 'half.test', use_case: 'mk' },
      0,
    );
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_h2', name: 'half.test', status: 'PENDING' },
      0,
    );
    insertDomain(tables, { account_id: 'acct_two', domain_id: 'domain_t', name: 'theirs.test' }, 0);
    const actual: unknown[] = [];
    for (const [what, changes] of REFUSED) {
      const { code, extras } = refused(await send(changes));
      actual.push([what, code, extras.details?.[0]?.field]);
    }
    expect(actual).toEqual(REFUSED.map(([what, , code, field]) => [what, code, field]));
    expect(stored()).toEqual([]);
    expect(announced).toEqual([]);
  });

  it.each<[changes: Partial<SendRequest>, details: [field: string, message: string][]]>([
    [
      { to: ['ok@dest.example', 'bad addr', 'x@@y.example'] },
      [
        ['to[1]', 'bad addr: contains a space: put the address after a name in <angle brackets>'],
        ['to[2]', 'x@@y.example: the part after the "@" is not a domain name'],
      ],
    ],
    [{ to: 'nobody' }, [['to', 'has no "@"']]],
    [{ to: 'ok@dest.example, nobody' }, [['to', 'nobody: has no "@"']]],
    [
      { to: ['a@b.example, no', ''] },
      [
        ['to[0]', 'no: has no "@"'],
        ['to[1]', 'is empty'],
      ],
    ],
    [{ cc: ['nobody'] }, [['cc[0]', 'nobody: has no "@"']]],
    [
      { to: undefined, cc: ['nobody'] },
      [
        ['cc[0]', 'nobody: has no "@"'],
        ['to', 'is required'],
      ],
    ],
    [{ to: [] }, [['to', 'must name at least one recipient']]],
    [
      { to: [`${'x'.repeat(100)} y`] },
      [['to[0]', `${'x'.repeat(64)}…: contains a space: put the address after a name in <angle brackets>`]],
    ],
  ])('names each invalid recipient of %j', async (changes, details) => {
    const { send } = startAcceptance();
    const refusal = refused(await send(changes));
    expect(refusal.extras.details?.map(({ field, message }) => [field, message])).toEqual(details);
  });

  it('names at most 50 invalid recipients, and reads no further', async () => {
    const { send } = startAcceptance();
    const { message, extras } = refused(
      await send({ to: Array.from({ length: 50 }, () => 'x,'.repeat(30)) }),
    );
    expect(extras.details).toHaveLength(50);
    expect(message).toContain('(and 49 more)');
  });

  it('accepts exactly 2 MB of attachments', async () => {
    const { send } = startAcceptance();
    accepted(
      await send({
        attachments: [{ name: 'a', contentType: 'a/b', content: Buffer.alloc(2_097_152).toString('base64') }],
      }),
    );
  });

  it('accepts a domain that fails temporarily', async () => {
    const { send, tables } = startAcceptance();
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_tf', name: 'shaky.test', status: 'TEMPORARY_FAILURE' },
      0,
    );
    accepted(await send({ from: 'a@shaky.test' }));
  });

  it('refuses a domain that the key cannot use', async () => {
    const { send, tables } = startAcceptance();
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    expect(
      refused(
        await send(
          {},
          { sender: { account, useCase: 'tx', allowFrom: ['other.test'], allowEssential: true } },
        ),
      ).code,
    ).toBe('KEY_NOT_ALLOWED');
  });

  it('requires a company and its address where they are used', async () => {
    const { send, tables } = startAcceptance();
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    tables.accounts.update({ ...account, company_address: null });
    expect(refused(await send()).code).toBe('COMPANY_ADDRESS_MISSING');
  });

  it('accepts nothing under pressure', async () => {
    const { send, setPressure, stored } = startAcceptance();
    setPressure(refuse('UNAVAILABLE', 'the disk is nearly full'));
    expect(refused(await send()).status).toBe(503);
    expect(stored()).toEqual([]);
  });
});

describe('suppressed recipients', () => {
  const suppress = (
    setup: ReturnType<typeof startAcceptance>,
    email: string,
    reason: 'hard_bounce' | 'unsubscribe' | 'manual' | 'complaint',
    stream: 'all' | 'tx' | 'mk',
  ) =>
    setup.tables.suppressions.add({
      account_id: 'acct_one',
      recipient_hash: emailIdentifier(email),
      stream,
      reason,
      email,
      message_seq: null,
      created_at: setup.clock.now(),
    });

  it.each([
    ['hard_bounce', 'all', 'RECIPIENT_SUPPRESSED', 'bounced'],
    ['complaint', 'all', 'RECIPIENT_SUPPRESSED', 'complained'],
    ['manual', 'tx', 'RECIPIENT_SUPPRESSED', 'suppressed'],
    ['unsubscribe', 'tx', 'RECIPIENT_UNSUBSCRIBED', 'unsubscribed'],
  ] as const)('are refused: %s for %s', async (reason, stream, code, status) => {
    const setup = startAcceptance();
    suppress(setup, 'ada@example.net', reason, stream);
    const refusal = refused(await setup.send({ to: 'Ada <ADA@Example.net>' }));
    expect(refusal).toMatchObject({ code, extras: { subscriptionStatus: status } });
    expect(refusal.extras.details).toEqual([
      {
        field: 'to',
        code,
        recipient: expect.stringMatching(/ada@example\.net/i),
        reason,
        since: '2026-01-15T12:00:00.000Z',
        message: expect.stringContaining('is suppressed'),
      },
    ]);
  });

  it('do not affect the other stream', async () => {
    const setup = startAcceptance();
    suppress(setup, 'ada@example.net', 'unsubscribe', 'mk');
    accepted(await setup.send());
  });

  it('refuse the whole request, which lists each of them', async () => {
    const setup = startAcceptance();
    suppress(setup, 'b@example.net', 'unsubscribe', 'tx');
    suppress(setup, 'c@example.net', 'hard_bounce', 'all');
    const refusal = refused(await setup.send({ to: 'a@example.net, b@example.net', cc: 'c@example.net' }));
    expect(refusal.code).toBe('RECIPIENT_UNSUBSCRIBED');
    expect(
      refusal.extras.details?.map(({ field, recipient, code }) => `${field} ${recipient} ${code}`),
    ).toEqual(['to b@example.net RECIPIENT_UNSUBSCRIBED', 'cc c@example.net RECIPIENT_SUPPRESSED']);
    expect(setup.stored()).toEqual([]);
  });

  it('are recorded as events without a message', async () => {
    const setup = startAcceptance();
    suppress(setup, 'ada@example.net', 'hard_bounce', 'all');
    await setup.send();
    const { rows: events } = setup.tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 10 });
    expect(
      events.map(({ kind, message_seq, data }) => [kind, message_seq, JSON.parse(data).reasonCode]),
    ).toEqual([['email_suppressed', null, 'RECIPIENT_SUPPRESSED']]);
  });

  describe('in repeated requests', () => {
    const events = ({ db }: ReturnType<typeof startAcceptance>) =>
      db.prepare<[], number>('SELECT count(*) FROM events WHERE message_seq IS NULL').pluck().get();

    it('are recorded three times, then once in an hour for each reason', async () => {
      const setup = startAcceptance();
      suppress(setup, 'ada@example.net', 'hard_bounce', 'all');
      for (let n = 0; n < 20; n++) refused(await setup.send());
      expect(events(setup)).toBe(3);
      setup.clock.advance(HOUR);
      for (let n = 0; n < 20; n++) refused(await setup.send());
      expect(events(setup)).toBe(4);
      suppress(setup, 'b@example.net', 'hard_bounce', 'all');
      refused(await setup.send({ to: 'b@example.net' }));
      expect(events(setup)).toBe(5);
    });

    it('have at most as many events in an hour as the account may send messages', async () => {
      const setup = startAcceptance({ messagesPerHour: 4 });
      const to = Array.from({ length: 10 }, (_, n) => `p${n}@example.net`);
      for (const email of to) suppress(setup, email, 'manual', 'all');
      expect(refused(await setup.send({ to })).extras.details).toHaveLength(10);
      expect(events(setup)).toBe(4);
      setup.clock.advance(HOUR);
      refused(await setup.send({ to }));
      expect(events(setup)).toBe(8);
    });

    it('write a limited number of webhook deliveries, in small units of work of the account', async () => {
      const setup = startAcceptance();
      const { tables, writer, db } = setup;
      for (let n = 0; n < 50; n++)
        tables.webhooks.insert({
          webhook_id: setup.ids.make('webhook'),
          account_id: 'acct_one',
          name: 'Receiver',
          description: null,
          url: 'https://receiver.example/hook',
          events: '["*"]',
          format: 'postrider',
          filter: null,
          headers: null,
          is_active: 1,
          off_reason: null,
          failing_since: null,
          created_at: 1,
          updated_at: 1,
        });
      const run = vi.spyOn(writer, 'run');
      const rows = () => db.prepare<[], number>('SELECT count(*) FROM webhook_deliveries').pluck().get() ?? 0;
      const most: number[] = [];
      for (let n = 0; n < 10; n++) {
        const to = Array.from({ length: 50 }, (_, m) => `p${n}.${m}@example.net`);
        for (const email of to) suppress(setup, email, 'manual', 'all');
        run.mockClear();
        const before = rows();
        refused(await setup.send({ to }));
        most.push((rows() - before) / Math.max(1, run.mock.calls.length));
        expect(run.mock.calls.every(([, share]) => share === 'acct_one')).toBe(true);
      }
      expect(Math.max(...most)).toBeLessThanOrEqual(200);
      expect(rows() + (events(setup) ?? 0)).toBeLessThanOrEqual(20_000);
      expect(rows()).toBeGreaterThan(19_000);
    });
  });

  it('are checked again when the message leaves the queue', async () => {
    const setup = startAcceptance();
    accepted(await setup.send());
    const [message] = setup.stored();
    if (message === undefined) throw new Error('nothing stored');
    expect(sendingObstacle(setup.tables, message)).toBeNull();
    suppress(setup, 'ada@example.net', 'complaint', 'all');
    expect(sendingObstacle(setup.tables, message)).toEqual({
      kind: 'email_suppressed',
      fields: { reasonCode: 'RECIPIENT_SUPPRESSED', reason: 'complaint' },
    });
  });
});

describe('the message limits of an account', () => {
  it('count exactly the recipients of accepted sends, also concurrent ones', async () => {
    const { send, stored } = startAcceptance({ messagesPerHour: 10 });
    const to = ['a@example.net', 'b@example.net', 'c@example.net'];
    const refusedSends = Array.from({ length: 5 }, () => send({ to, from: 'x@unknown.example' }));
    const sends = Array.from({ length: 8 }, () => send({ to }));
    const [results] = await Promise.all([Promise.all(sends), Promise.all(refusedSends)]);
    expect(results.filter((result) => !isRefusal(result))).toHaveLength(3);
    accepted(await send());
    expect(refused(await send())).toMatchObject({ code: 'RATE_LIMITED', status: 429 });
    expect(stored()).toHaveLength(10);
  });

  it('do not refuse a repeated request', async () => {
    const { send } = startAcceptance({ messagesPerHour: 1 });
    const idempotency = { endpoint: 'transactional/send', key: 'k' };
    accepted(await send({}, { idempotency }));
    expect(await send({}, { idempotency })).toMatchObject({ kind: 'replayed' });
    const other = { endpoint: 'transactional/send', key: 'other' };
    expect(refused(await send({}, { idempotency: other })).code).toBe('RATE_LIMITED');
    // The refusal is not stored as the response of the key.
    expect(refused(await send({}, { idempotency: other })).code).toBe('RATE_LIMITED');
  });

  it('count simulated mail', async () => {
    const { send } = startAcceptance({ messagesPerHour: 2 });
    accepted(await send({ to: 'delivered@simulator.mail.test' }));
    accepted(await send());
    expect(refused(await send({ to: 'delivered@simulator.mail.test' })).code).toBe('RATE_LIMITED');
    expect(refused(await send()).code).toBe('RATE_LIMITED');
  });
});

describe('sends in Liquid', () => {
  it('are rendered in a bounded number at a time, of one account and of all', async () => {
    let stop = () => {};
    const stopped = new Promise<void>((resolve) => {
      stop = resolve;
    });
    const rendering: string[] = [];
    const threads = {
      ...templateThreads(),
      render: async (accountId: string) => {
        rendering.push(accountId);
        await stopped;
        return [{ unrun: 'slow' as const }];
      },
    };
    const { send, tables } = startAcceptance({}, undefined, { threads });
    insertAccount(tables, 'acct_two', 0);
    const sends = Array.from({ length: 40 }, () => send({ syntax: 'liquid' }));
    const others = Array.from({ length: 3 }, () => send({ syntax: 'liquid' }, { accountId: 'acct_two' }));
    await Promise.resolve();
    expect(rendering.filter((id) => id === 'acct_one')).toHaveLength(16);
    expect(rendering.filter((id) => id === 'acct_two')).toHaveLength(3);
    stop();
    const results = await Promise.all([...sends, ...others]);
    expect(results.map((result) => isRefusal(result))).not.toContain(false);
    expect(rendering).toHaveLength(43);
  });
});
