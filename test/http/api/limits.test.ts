import { afterAll, describe, expect, it } from 'vitest';
import { runProgram } from '../../cli/run.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

// Starts the whole daemon and a process for each command, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const COMPLIANCE = '{{company_address_html}}{{unsubscribe_email_html}}';

/** `postrider account limits`, as a separate process. */
async function setLimits(api: ApiClient, ...options: string[]): Promise<void> {
  const args = ['account', 'limits', api.accountId, ...options];
  const { status, err } = await runProgram(args, { POSTRIDER_DATA__DIR: daemon.dataDir });
  if (status !== 0) throw new Error(err);
}

function verifiedDomain(api: ApiClient, name: string): void {
  const ids = { account_id: api.accountId, domain_id: `domain_${name}`, name };
  insertDomain(daemon.tables, { ...ids, group_id: groupOf(api) }, Date.now());
}

function groupOf(api: ApiClient): string {
  const group = daemon.tables.domainGroups.defaultOf(api.accountId);
  if (group === null) throw new Error('no default group');
  return group.group_id;
}

describe('limits set on the command line', () => {
  it('apply to domains in the running daemon; an existing one still gets 200', async () => {
    const api = await daemon.account('Domains');
    const domain = (name: string) => ({ domain: name, useCaseId: 'tx-local' });
    expect((await api.put('/web-setup/domains', domain('a.example'))).status).toBe(201);
    await setLimits(api, '--domains', '1');
    const refused = await api.put('/web-setup/domains', domain('b.example'));
    expect(refused.status).toBe(409);
    expect(refused.error).toMatchObject({
      code: 'LIMIT_REACHED',
      message: 'This account has reached its limit of 1 domains',
      details: [{ name: 'domains' }],
    });
    expect((await api.put('/web-setup/domains', domain('a.example'))).status).toBe(200);
    await setLimits(api, '--default', 'domains');
    expect((await api.put('/web-setup/domains', domain('b.example'))).status).toBe(201);
  });

  it('apply to templates, webhooks and contacts', async () => {
    const api = await daemon.account('Counts');
    await setLimits(api, '--templates', '1', '--webhooks', '0', '--contacts', '1');
    const code = async (path: string, body: object) => {
      const answer = await api.post(path, body);
      return answer.status < 300 ? answer.status : answer.error.code;
    };
    const template = { name: 'Order', html: COMPLIANCE };
    expect(await code('/web-setup/templates', template)).toBe(201);
    expect(await code('/web-setup/templates', template)).toBe('LIMIT_REACHED');
    const hook = { url: 'http://127.0.0.1:9/', events: ['email_sent'] };
    expect(await code('/web-setup/webhooks', hook)).toBe('LIMIT_REACHED');
    expect(await code('/web-setup/contacts', { email: 'a@example.net' })).toBe(201);
    expect(await code('/web-setup/contacts', { email: 'b@example.net' })).toBe('LIMIT_REACHED');
    const imported = await api.call<{ rejected: number; updated: number }>(
      'POST',
      '/web-setup/contacts/import',
      {
        rawBody: 'email,firstName\na@example.net,Ada\nb@example.net,Eve\n',
        headers: { 'Content-Type': 'text/csv' },
      },
    );
    expect(imported.data).toMatchObject({ rejected: 1, updated: 1 });
  });

  it('apply to campaigns, subscription groups and suppressions, but not to opt-outs', async () => {
    const api = await daemon.account('More');
    await setLimits(api, '--campaigns', '1', '--subscription-groups', '1', '--suppressions', '1');
    const code = async (path: string, body: object) => {
      const answer = await api.post(path, body);
      return answer.status < 300 ? answer.status : answer.error.code;
    };
    for (const path of ['/web-setup/campaigns', '/web-setup/contacts/subscription-groups']) {
      expect(await code(path, { name: 'One' })).toBe(201);
      expect(await code(path, { name: 'Two' })).toBe('LIMIT_REACHED');
    }
    const suppressions = '/web-setup/suppressions';
    expect(await code(suppressions, { email: 'a@example.net' })).toBe(201);
    expect(await code(suppressions, { email: 'a@example.net' })).toBe(200);
    expect(await code(suppressions, { email: 'b@example.net' })).toBe('LIMIT_REACHED');
    expect(await code(suppressions, { email: 'b@example.net', reason: 'unsubscribe' })).toBe(201);
  });

  it('apply to the bytes that an account stores, until it deletes some', async () => {
    const api = await daemon.account('Bytes');
    verifiedDomain(api, 'bytes.example');
    const mail = { to: 'a@example.net', from: 'shop@bytes.example', subject: 'Hello', html: COMPLIANCE };
    const usage = async () => {
      const { data } =
        await api.get<Record<'limits' | 'usage', { storedBytes: number }>>('/web-setup/account');
      return [data.limits.storedBytes, data.usage.storedBytes];
    };
    expect(await usage()).toEqual([5 * 1024 ** 3, expect.any(Number)]);
    const contact = { email: 'a@example.net', customFields: { note: 'x'.repeat(20_000) } };
    expect((await api.post('/web-setup/contacts', contact)).status).toBe(201);
    await setLimits(api, '--stored-bytes', '20000');
    const [limit, used = 0] = await usage();
    expect(limit).toBe(20_000);
    expect(used).toBeGreaterThan(20_000);
    const refused = await api.post('/web-setup/contacts', { email: 'b@example.net' });
    expect(refused.status).toBe(409);
    expect(refused.error).toMatchObject({ code: 'LIMIT_REACHED', details: [{ name: 'storedBytes' }] });
    const imported = await api.call('POST', '/web-setup/contacts/import', {
      rawBody: 'email\nb@example.net\n',
      headers: { 'Content-Type': 'text/csv' },
    });
    expect(imported.error.code).toBe('LIMIT_REACHED');
    expect((await api.send(mail)).error.code).toBe('LIMIT_REACHED');
    expect((await api.post('/web-setup/suppressions', { email: 'c@example.net' })).status).toBe(201);
    const { data } = await api.get<{ contacts: { contactIdentifier: string }[] }>('/web-setup/contacts');
    const id = data.contacts[0]?.contactIdentifier ?? '';
    expect((await api.call('DELETE', `/web-setup/contacts/${id}`)).status).toBe(200);
    expect((await api.post('/web-setup/contacts', { email: 'b@example.net' })).status).toBe(201);
    const before = (await usage())[1] ?? 0;
    expect((await api.send(mail)).status).toBe(200);
    expect((await usage())[1]).toBeGreaterThan(before);
  });

  it('apply to messages, counted by recipient, in single and batch sends', async () => {
    const api = await daemon.account('Messages');
    verifiedDomain(api, 'messages.example');
    const mail = (to: string | string[]) => ({
      to,
      from: 'shop@messages.example',
      subject: 'Hello',
      html: COMPLIANCE,
    });
    expect((await api.send(mail('a@example.net'))).status).toBe(200);
    await setLimits(api, '--messages-per-hour', '4');
    const three = ['b@example.net', 'c@example.net', 'd@example.net', 'e@example.net'];
    const refused = await api.send(mail(three));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000);
    expect(refused.headers.get('ratelimit-policy')).toBe('"messages-per-hour";q=4;w=3600');
    expect(refused.error).toMatchObject({
      code: 'RATE_LIMITED',
      message: "This account's limit of 4 messages per hour does not allow 4 recipients now",
      details: [{ name: 'messagesPerHour' }],
    });
    interface Item {
      reasonCode?: string;
      error?: { retryAfter?: number };
    }
    const batch = await api.call<{ accepted: number; results: Item[] }>('POST', '/transactional/send-batch', {
      body: { messages: three.map(mail) },
    });
    expect(batch.data.accepted).toBe(3);
    expect(batch.data.results.map(({ reasonCode }) => reasonCode).filter(Boolean)).toEqual(['RATE_LIMITED']);
    expect(batch.data.results.find(({ error }) => error !== undefined)?.error?.retryAfter).toBeGreaterThan(
      3000,
    );
    await setLimits(api, '--messages-per-hour', 'unlimited');
    expect((await api.send(mail(three))).status).toBe(200);
  });

  it('apply to messages to the simulator, also those that are sent again', async () => {
    const api = await daemon.account('Simulated');
    verifiedDomain(api, 'simulated.example');
    const to = `delivered@simulator.${PLATFORM}`;
    const mail = { to, from: 'shop@simulated.example', subject: 'Hello', html: COMPLIANCE };
    await setLimits(api, '--messages-per-hour', '2');
    const sent = await api.send(mail);
    expect(sent.status, sent.text).toBe(200);
    const batch = await api.call<{ accepted: number }>('POST', '/transactional/send-batch', {
      body: { messages: [mail, mail] },
    });
    expect(batch.data.accepted).toBe(1);
    expect((await api.send(mail)).error.code).toBe('RATE_LIMITED');
    const { messageId } = sent.data;
    await eventually('the result', async () => (await api.message(messageId)).status === 'delivered');
    expect((await api.post('/transactional/resend', { messageId })).error.code).toBe('RATE_LIMITED');
  });
});
