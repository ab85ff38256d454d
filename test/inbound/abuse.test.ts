import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createTokens } from '../../src/mail/tokens.ts';
import { AUTO_REPLY, dsn, readReceipt } from '../smtp/mx/mails.ts';
import { HOST, RETURN } from '../smtp/mx/setup.ts';
import { insertAccount, insertDomain } from '../support/store.ts';
import { mailOf, PUBLIC_URL, startInboundMx, storeMail } from './setup.ts';

const SUPPORT = 'support@in.example.com';

/** A mail with two attachments of these texts. */
function withFiles(...texts: string[]): string {
  const parts = texts.map(
    (text, n) =>
      `--x\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename="${n}.txt"\r\n\r\n${text}\r\n`,
  );
  return mailOf(
    { 'MIME-Version': '1.0', 'Content-Type': 'multipart/mixed; boundary=x' },
    `${parts.join('')}--x--\r\n`,
  );
}

describe('the link of an attachment', () => {
  async function start() {
    const mx = await startInboundMx();
    await mx.route(SUPPORT);
    insertAccount(mx.tables, 'acct_two', mx.clock.now());
    const client = await mx.client();
    await client.mail('grace@example.net', SUPPORT, withFiles('first', 'second'));
    await mx.parsed();
    const [event] = mx.received();
    const inboundId = event?.inboundId ?? '';
    const links = event?.attachments.map(({ url }) => url.slice(`${PUBLIC_URL}/f/`.length)) ?? [];
    const read = async (token: string) => {
      const file = await mx.inbound.linked(token)?.read();
      return file === undefined || isRefusal(file) ? null : file.bytes.toString().trim();
    };
    return { ...mx, inboundId, link: links[0] ?? '', links, read };
  }

  /** The token with other data and the signature of the first. */
  function altered(token: string, change: (data: [string, number | 'raw', number]) => unknown[]): string {
    const bytes = Buffer.from(token, 'base64url');
    const [head, data, signature] = [bytes.subarray(0, 6), bytes.subarray(6, -16), bytes.subarray(-16)];
    // Sound: `file` of mail/tokens.ts writes it.
    const changed = change(JSON.parse(data.toString()) as [string, number | 'raw', number]);
    return Buffer.concat([head, Buffer.from(JSON.stringify(changed)), signature]).toString('base64url');
  }

  it('opens this attachment only', async () => {
    const { link, links, read, ...mx } = await start();
    expect(await Promise.all(links.map(read))).toEqual(['first', 'second']);
    expect(await read(altered(link, (data) => data))).toBe('first');
    const other = storeMail(mx, { raw: withFiles('other') });
    for (const token of [
      altered(link, ([id, , until]) => [id, 1, until]),
      altered(link, ([id, , until]) => [id, 'raw', until]),
      altered(link, ([, part, until]) => [other, part, until]),
      altered(link, ([id, part, until]) => [id, part, until + DAY]),
    ])
      expect(await read(token)).toBeNull();
  });

  it('does not open with the signature of another account, of another purpose or of another installation', async () => {
    const { link, inboundId, read, ...mx } = await start();
    const until = mx.clock.now() + DAY;
    const file = { inboundId, part: 0, until };
    expect(await read(mx.tokens.of('acct_one').file(file))).toBe('first');
    expect(await read(mx.tokens.of('acct_two').file(file))).toBeNull();
    const elsewhere = createTokens(createSeal(Buffer.alloc(32, 8), systemRandom));
    expect(await read(elsewhere.of('acct_one').file(file))).toBeNull();
    const signUp = { groupId: inboundId, email: '0', firstName: '', lastName: '', at: until, language: null };
    expect(await read(mx.tokens.of('acct_one').signUp(signUp))).toBeNull();
    // The head of the token names its account.
    const two = Buffer.from(mx.tokens.of('acct_two').file(file), 'base64url').subarray(0, 6);
    const one = Buffer.from(link, 'base64url').subarray(6);
    expect(await read(Buffer.concat([two, one]).toString('base64url'))).toBeNull();
    expect(await read(`${link}.html`)).toBeNull();
  });

  it('ends after seven days, with its mail, and for positions that the mail does not have', async () => {
    const { link, inboundId, read, ...mx } = await start();
    const { file } = mx.tokens.of('acct_one');
    const until = mx.clock.now() + 365 * DAY;
    for (const part of [2, -1, 0.5, 1e9])
      expect(await read(file({ inboundId, part, until })), `part ${part}`).toBeNull();
    mx.clock.advance(7 * DAY);
    expect(await read(link)).toBe('first');
    mx.clock.advance(1);
    expect(await read(link)).toBeNull();
    const later = file({ inboundId, part: 0, until });
    expect(await read(later)).toBe('first');
    await mx.inbound.remove('acct_one', inboundId);
    expect(await read(later)).toBeNull();
  });
});

describe('a route for every address', () => {
  it('does not get mail to the return path, complaint and opt-out addresses of any message', async () => {
    const mx = await startInboundMx({ parses: false });
    await mx.route('*@in.example.com');
    await mx.route('*@example.com');
    const tokens = mx.tokens.of('acct_one');
    const client = await mx.client();
    // A host that received bounces before it got a route, such as the former name of the server.
    for (const host of [RETURN, HOST, 'in.example.com', 'example.com']) {
      const bounced = await mx.delivered();
      expect(await client.mail('', `${tokens.returnPath(bounced.message_id)}@${host}`, dsn())).toMatch(
        /^250/,
      );
      expect(mx.status(bounced), host).toBe('bounced');
      const complained = await mx.delivered({ recipient: 'bob@example.net' });
      const feedback = `"${tokens.feedback(complained.message_id)}"@${host}`.toUpperCase();
      expect(await client.mail('fbl@example.net', feedback, mailOf({}, 'spam\r\n'))).toMatch(/^250/);
      const left = await mx.delivered({ recipient: 'cy@example.net' });
      const optOut = `${tokens.unsubscribe(left.message_id)}@${host}`;
      expect(
        await client.mail('cy@example.net', optOut, mailOf({ Subject: 'unsubscribe' }, 'x\r\n')),
      ).toMatch(/^250/);
      expect(mx.optedOut, host).toContain(left.message_id);
    }
    expect(mx.rows()).toEqual([]);
    // What only looks like one is mail for the route.
    const guessed = `b-${'a'.repeat(48)}@in.example.com`;
    expect(await client.mail('grace@example.net', guessed, mailOf({}, 'x\r\n'))).toMatch(/^250/);
    expect(mx.rows().map(({ recipient }) => recipient)).toEqual([guessed]);
  });

  it('cannot be at a host that receives bounces', async () => {
    const { inbound, tables, clock } = await startInboundMx({ parses: false });
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_host', name: 'postrider.example' },
      clock.now(),
    );
    for (const [domainId, host] of [
      ['domain_one', RETURN],
      ['domain_one', RETURN.toUpperCase()],
      ['domain_one', `${RETURN}.`],
      ['domain_one', 'return-a.in.example.com'],
      ['domain_host', HOST],
    ] as const)
      expect(
        await inbound.routes.create('acct_one', {
          name: 'Catch',
          match: `*@${host}`,
          domainId,
          action: 'store',
          spamPolicy: 'mark',
          isActive: true,
        }),
        host,
      ).toMatchObject({ code: 'VALIDATION_ERROR' });
  });
});

describe('mail that a program may answer for ever', () => {
  it('is refused after 100 servers, whatever they write between the fields of others', async () => {
    const mx = await startInboundMx({ parses: false });
    await mx.route(SUPPORT);
    const client = await mx.client();
    const hop = (n: number) => `Received: from a.example by b${n}.example with ESMTP id ${n}; today\r\n`;
    const trace = `X-Trace: ${'x'.repeat(40)}\r\n`.repeat(30);
    const passed = (hops: number, between = '') =>
      Array.from({ length: hops }, (_, n) => `${hop(n)}${between}`).join('') + mailOf({}, 'x\r\n');
    const send = (mail: string) => client.mail('grace@example.net', SUPPORT, mail);
    expect(await send(passed(100))).toMatch(/^250/);
    expect(await send(passed(101))).toMatch(/^554 5\.4\.6/);
    expect(await send(passed(101).replaceAll('Received:', 'received :'))).toMatch(/^554 5\.4\.6/);
    expect(await send(passed(100, trace))).toMatch(/^250/);
    expect(await send(passed(101, trace))).toMatch(/^554 5\.4\.6/);
    // A returned mail in the body has not passed them.
    expect(await send(`${mailOf({}, '')}${passed(150)}`)).toMatch(/^250/);
    expect(mx.rows()).toHaveLength(3);
  });

  it('is limited when its envelope sender differs in each mail, as those of another installation do', async () => {
    const mx = await startInboundMx({ parses: false });
    await mx.route(SUPPORT);
    const client = await mx.client();
    const replies: string[] = [];
    for (let n = 0; n < 61; n++) {
      const token = n.toString(2).padStart(48, 'a').replaceAll('0', 'b').replaceAll('1', 'c');
      replies.push(await client.mail(`b-${token}@return-a.example.net`, SUPPORT, mailOf({}, 'x\r\n')));
    }
    expect(replies.map((reply) => reply.slice(0, 3))).toEqual([...Array(60).fill('250'), '450']);
    const other = `b-${'a'.repeat(48)}@return-a.example.org`;
    expect(await client.mail(other, SUPPORT, mailOf({}, 'x\r\n'))).toMatch(/^250/);
  });

  it.each([
    ['RFC 3834', mailOf({ 'Auto-Submitted': 'auto-replied' }, 'x'), 'reply'],
    ['an automatic reply with all its fields', AUTO_REPLY, 'reply'],
    ['an older responder', mailOf({ 'X-Autoresponder': 'yes' }, 'x'), 'reply'],
    ['a precedence', mailOf({ Precedence: 'auto_reply' }, 'x'), 'reply'],
    ['Exchange', mailOf({ 'X-Auto-Response-Suppress': 'All' }, 'x'), 'generated'],
    ['a bounce', dsn().replace('Auto-Submitted: auto-replied\r\n', ''), 'generated'],
    ['a read receipt', readReceipt(), 'generated'],
    ['a person', mailOf({ 'Auto-Submitted': 'no', 'X-Autoreply': 'no' }, 'x'), null],
    [
      'a reply after the fields of many servers',
      `${'X-Trace: x\r\n'.repeat(400)}${mailOf({ 'Auto-Submitted': 'auto-replied' }, 'x')}`,
      'reply',
    ],
  ])('is marked as such: %s', async (_, mail, automatic) => {
    const mx = await startInboundMx();
    await mx.route(SUPPORT);
    expect(await (await mx.client()).mail('grace@example.net', SUPPORT, mail)).toMatch(/^250/);
    await mx.parsed();
    expect(mx.received()).toMatchObject([{ automatic }]);
  });

  it('is marked without an envelope sender, which programs must not answer', async () => {
    const mx = await startInboundMx();
    await mx.route(SUPPORT);
    await (await mx.client()).mail('', SUPPORT, mailOf({}, 'x\r\n'));
    await mx.parsed();
    expect(mx.received()).toMatchObject([{ sender: '', automatic: 'generated' }]);
  });
});
