import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomainOf } from '../../support/store.ts';

/* Sign-up forms of groups: from the form over the confirmation mail to the member. */
let daemon: InProcess;
let client: ApiClient;
let groupPath: string;
let form: string;

interface Group {
  subscriptionGroupId: string;
  signUp: { from: string; subject: string | null; intro: string | null } | null;
  signUpUrl: string | null;
}
interface Members {
  subscribers: {
    email: string;
    firstName: string;
    isActive: boolean;
    globalStatus: string;
    consentMethod: string;
    source: string;
  }[];
}

const GROUPS = '/web-setup/contacts/subscription-groups';
const SIGN_UP = {
  from: 'News <news@shop.test>',
  subject: 'Is it you?',
  intro: 'Hello {{name}} & <b>you</b>',
};

beforeAll(async () => {
  daemon = await startInProcess({
    'public.url': 'http://127.0.0.1:0',
    'public.trustedProxies': ['127.0.0.1'],
  });
  client = await daemon.account('Shop');
  insertDomainOf(daemon, client, { domain_id: 'domain_1', name: 'shop.test' });
  const { data } = await client.post<{ group: Group }>(GROUPS, { name: 'News <b>', signUp: SIGN_UP });
  groupPath = `${GROUPS}/${data.group.subscriptionGroupId}`;
  form = data.group.signUpUrl ?? '';
  expect(data.group.signUp).toEqual(SIGN_UP);
});
afterAll(() => daemon?.stop());

const patch = (body: object) => client.call<{ group: Group }>('PATCH', groupPath, { body });

let clients = 0;

/** Sends a form from a new address. */
async function send(url: string, fields: Record<string, string> = {}, from = `192.0.2.${++clients}`) {
  const response = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams(fields),
    headers: { 'X-Forwarded-For': from, 'User-Agent': 'Browser/1' },
  });
  return { status: response.status, text: await response.text() };
}

async function mailsTo(recipient: string): Promise<{ messageId: string }[]> {
  const { data } = await client.get<{ messages: { messageId: string }[] }>(
    `/web-setup/messages?recipient=${encodeURIComponent(recipient)}`,
  );
  return data.messages;
}

/** The content of the only mail to an address. */
async function mailTo(recipient: string) {
  const mails = await mailsTo(recipient);
  expect(mails).toHaveLength(1);
  const { data } = await client.get<{
    html: string;
    text: string;
    headers: { name: string; value: string }[];
  }>(`/web-setup/messages/${mails[0]?.messageId}/content`);
  const link = /http:\S+\/k\/[\w-]+/.exec(data.text)?.[0] ?? '';
  return { ...data, link, subject: data.headers.find(({ name }) => name === 'Subject')?.value };
}

async function members(): Promise<Members['subscribers']> {
  const { data } = await client.get<Members>(`${groupPath}/subscriptions`);
  return data.subscribers;
}

describe('the sign-up form of a group', () => {
  it('adds a member with consent only after the confirmation of the link in the mail', async () => {
    const shown = await (await fetch(form)).text();
    expect(shown).toContain('Subscribe to News &lt;b&gt;');
    const sent = await send(form, { email: 'Ada@example.net', firstName: 'Ada', lastName: '' });
    expect(sent.status).toBe(200);
    expect(sent.text).toContain('Please confirm your address');
    const mail = await mailTo('ada@example.net');
    expect(mail.subject).toBe('Is it you?');
    expect(mail.html).toContain('Hello {{name}} &amp; &lt;b&gt;you&lt;/b&gt;');
    expect(mail.text).toContain('1 Main St');
    expect(await members()).toEqual([]);

    const asked = await (await fetch(mail.link)).text();
    expect(asked).toContain('Yes, subscribe');
    expect(await members()).toEqual([]);
    const confirmed = await send(mail.link, {}, '198.51.100.7');
    expect(confirmed.text).toContain('You are subscribed');
    expect(await members()).toMatchObject([
      {
        email: 'Ada@example.net',
        firstName: 'Ada',
        isActive: true,
        consentMethod: 'double_opt_in',
        source: 'sign_up_form',
      },
    ]);
    const [member] = (await client.get<{ contacts: object[] }>('/web-setup/contacts')).data.contacts;
    expect(member).toMatchObject({
      consentMethod: 'double_opt_in',
      consentIpAddress: '198.51.100.7',
      consentUserAgent: 'Browser/1',
      addedBy: 'recipient',
    });
  });

  it('is proved by the form, the mail and the confirmation', async () => {
    await send(form, { email: 'proof@example.net' });
    const { link } = await mailTo('proof@example.net');
    const [mail] = await mailsTo('proof@example.net');
    await send(link, {}, '198.51.100.9');
    const path = '/web-setup/contacts/email:proof@example.net/consent-proof';
    const before = await client.get<object>(path);
    expect(before.data).toMatchObject({
      email: 'proof@example.net',
      status: 'given',
      consent: { method: 'double_opt_in', ipAddress: '198.51.100.9', userAgent: 'Browser/1' },
      doubleOptIn: [
        {
          form: { group: 'News <b>' },
          confirmationMail: {
            messageId: mail?.messageId,
            from: 'news@shop.test',
            subject: 'Is it you?',
            intro: SIGN_UP.intro,
          },
          ipAddress: '198.51.100.9',
          userAgent: 'Browser/1',
        },
      ],
      memberships: [{ groupName: 'News <b>', isActive: true }],
      history: [{ action: 'given', recordedBy: 'recipient' }],
    });
    const body = { globalStatus: 'unsubscribed' };
    await client.call('PATCH', '/web-setup/contacts/email:proof@example.net', { body });
    const after = await client.get<{ status: string; history: object[] }>(path);
    expect(after.data.status).toBe('opted_out');
    expect(after.data.history).toHaveLength(2);
    const page = await client.call('GET', path, { headers: { Accept: 'text/html' } });
    expect(page.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    expect(page.text).toContain('News &lt;b&gt;');
    expect(page.text).not.toContain('<script');
    expect((await client.get(`${path}?format=html`)).text).toContain('<h1>Proof of consent</h1>');
    expect((await client.get(`${path}?format=pdf`)).error.details).toMatchObject([{ field: 'format' }]);
  });

  it('ends an opt-out of the person, but changes nothing else of the contact', async () => {
    const body = { email: 'bob@example.net', lastName: 'Builder', customFields: { plan: 'gold' } };
    await client.post('/web-setup/contacts', body);
    await client.post('/web-setup/suppressions', { email: body.email, reason: 'unsubscribe', stream: 'mk' });
    await send(form, { email: body.email, firstName: 'Bob' });
    const { link } = await mailTo(body.email);
    await send(link);
    await send(link);
    const [member] = await members();
    expect(member).toMatchObject({ ...body, firstName: 'Bob', isActive: true, globalStatus: 'active' });
  });

  it('sends no mail to a suppressed address, to a program and after two mails of a day, with the same page', async () => {
    const expected = (await send(form, { email: 'first@example.net' })).text;
    await client.post('/web-setup/suppressions', { email: 'blocked@example.net', reason: 'hard_bounce' });
    expect(await send(form, { email: 'blocked@example.net' })).toEqual({ status: 200, text: expected });
    expect(await mailsTo('blocked@example.net')).toEqual([]);
    expect((await send(form, { email: 'spam@example.net', website: 'x' })).text).toBe(expected);
    expect(await mailsTo('spam@example.net')).toEqual([]);
    for (const tag of ['', '+1', '+2', '+3'])
      expect((await send(form, { email: `eve${tag}@example.net` })).text).toBe(expected);
    expect(await mailsTo('eve@example.net')).toHaveLength(1);
    expect(await mailsTo('eve+1@example.net')).toHaveLength(1);
    expect(await mailsTo('eve+2@example.net')).toEqual([]);
  });

  it('limits the forms of one client', async () => {
    // At the same time: one after the other, they can take longer than a minute on a slow machine.
    const sent = Array.from({ length: 12 }, (_, n) =>
      send(form, { email: `many${n}@example.net` }, '203.0.113.1'),
    );
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(10).fill(200), 429, 429]);
  });

  it.each(['', 'no address', 'Name <a@example.net>', 'a@example.net, b@example.net'])(
    'shows the form again for the address "%s"',
    async (email) => {
      const { status, text } = await send(form, { email });
      expect(status).toBe(400);
      expect(text).toContain('role="alert"');
    },
  );

  it('rejects forged links, unknown groups, and everything after it is turned off', async () => {
    await send(form, { email: 'late@example.net' });
    const { link } = await mailTo('late@example.net');
    expect((await send(`${link.slice(0, -1)}${link.endsWith('A') ? 'B' : 'A'}`)).status).toBe(404);
    expect((await send(`${form}x`, { email: 'a@example.net' })).status).toBe(404);
    const { data } = await patch({ signUp: null });
    expect(data.group).toMatchObject({ signUp: null });
    expect(data.group).not.toHaveProperty('signUpUrl');
    expect((await send(form, { email: 'a@example.net' })).status).toBe(404);
    expect((await send(link)).status).toBe(404);
    expect((await members()).map(({ email }) => email)).not.toContain('late@example.net');
  });

  it('rejects a sender that is not an address', async () => {
    const { status, text } = await patch({ signUp: { from: 'nobody' } });
    expect(status).toBe(400);
    expect(text).toContain('signUp.from');
  });

  it('rejects a sender of a domain that is not registered', async () => {
    const { status, text } = await patch({ signUp: { from: 'news@other.test' } });
    expect(status).toBe(403);
    expect(text).toContain('DOMAIN_NOT_REGISTERED');
    expect(text).toContain('signUp.from');
  });

  it('rejects a sender of a domain that the key may not use', async () => {
    const { data } = await client.post<{ secret: string }>('/web-setup/keys', {
      name: 'restricted',
      scopes: ['setup'],
      allowFrom: ['other.test'],
    });
    const headers = { 'X-Api-Key': data.secret };
    for (const [method, path] of [
      ['POST', GROUPS],
      ['PATCH', groupPath],
    ] as const) {
      const refused = await client.call(method, path, {
        body: { name: 'Weekly', signUp: SIGN_UP },
        headers,
      });
      expect([refused.status, refused.error.code]).toEqual([403, 'KEY_NOT_ALLOWED']);
      expect(refused.error.details).toMatchObject([{ field: 'signUp.from' }]);
    }
  });
});
