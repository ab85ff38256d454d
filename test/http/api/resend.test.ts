import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, CreatedDomain, SendData } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { publishMailHost } from '../../support/recipients.ts';
import { type Sink, startSink } from '../../support/smtp-sink.ts';

/** Sending a message again over HTTP, compared with what the recipient's host received. */
const MAIL = {
  from: 'Shop <shop@sender.example>',
  to: 'Ada <ada@recipient.example>',
  cc: 'bob@recipient.example',
  subject: 'Grüße 7',
  html: '<p>Hello <a href="https://shop.example/order">order</a></p>{{company_address_html}}{{unsubscribe_email_html}}',
  enableClickTracking: true,
  attachments: [
    { name: 'a.txt', contentType: 'text/plain', content: Buffer.from('twelve bytes').toString('base64') },
  ],
};

let daemon: InProcess;
let sink: Sink;
let client: ApiClient;
let domainId: string;
let messageId: string;

beforeAll(async () => {
  sink = await startSink();
  daemon = await startInProcess({ 'delivery.port': sink.port, 'delivery.allowPrivateNetworks': true });
  publishMailHost(daemon.dns, 'recipient.example', sink.host);
  client = await daemon.account('Shop');
  const input = { domain: 'sender.example', useCaseId: 'tx-local' };
  const { data } = await client.put<CreatedDomain>('/web-setup/domains', input);
  ({ domainId } = data);
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await client.post(`/web-setup/domains/${domainId}/verify`);
  const sent = await client.send(MAIL);
  expect(sent.status, sent.text).toBe(200);
  messageId = sent.data.messageId;
  await eventually('the messages to arrive', () => sink.messages.length === 2);
  await eventually(
    'the message to be final',
    async () => (await client.message(messageId)).status === 'delivered',
  );
});

afterAll(async () => {
  await daemon.stop();
  await sink.close();
});

const resend = (id: string, headers: Record<string, string> = {}, caller = client) =>
  caller.call<SendData>('POST', '/transactional/resend', { body: { messageId: id }, headers });

describe('sending a message again', () => {
  it('sends its content to its recipient alone, as a new message', async () => {
    const before = sink.messages.length;
    const { status, data, text } = await resend(messageId);
    expect(status, text).toBe(200);
    expect(data.messageId).not.toBe(messageId);
    expect(data.recipients).toEqual([
      { email: 'ada@recipient.example', status: 'sent', role: 'to', messageId: data.messageId },
    ]);
    await eventually('the message to arrive', () => sink.messages.length > before);
    const [first, again] = await Promise.all(
      [sink.messages[0], sink.messages[before]].map((message) => simpleParser(message?.raw ?? '')),
    );
    expect(sink.messages[before]?.to).toEqual(['ada@recipient.example']);
    expect(again?.subject).toBe(first?.subject);
    expect([again?.to, again?.cc]).toEqual([first?.to, first?.cc]);
    expect(again?.attachments[0]?.content.toString()).toBe('twelve bytes');
    expect(again?.messageId).toBe(`<${data.messageId}@sender.example>`);
    // Its links are its own: clicks count for the new message.
    const links = (html: unknown) => [...String(html).matchAll(/href="([^"]+)"/g)].map(([, url]) => url);
    expect(links(again?.html)).toHaveLength(links(first?.html).length);
    expect(links(again?.html)[0]).not.toBe(links(first?.html)[0]);
    expect((await client.message(data.messageId)).subject).toBe('Grüße 7');
  });

  it('happens once for a key', async () => {
    const count = () => daemon.tables.messages.list({ accountId: client.accountId, limit: 100 }).rows.length;
    const before = count();
    const answers = [await resend(messageId, { 'Idempotency-Key': 'k1' })];
    answers.push(await resend(messageId, { 'Idempotency-Key': 'k1' }));
    expect(new Set(answers.map(({ data }) => data.messageId)).size).toBe(1);
    expect(answers[1]?.headers.get('idempotency-replayed')).toBe('true');
    expect(count()).toBe(before + 1);
    const other = await resend('msg_other', { 'Idempotency-Key': 'k1' });
    expect([other.status, other.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('is refused for messages of other accounts, and for unknown ones', async () => {
    const other = await daemon.account('Other');
    for (const answer of [await resend(messageId, {}, other), await resend('msg_none')])
      expect([answer.status, answer.error.code]).toEqual([404, 'MESSAGE_NOT_FOUND']);
  });

  it('is refused while the message may still arrive', async () => {
    const sent = await client.send(MAIL);
    const answer = await resend(sent.data.messageId);
    expect([answer.status, answer.error.code]).toEqual([409, 'INVALID_STATE']);
  });

  it('is refused for a suppressed recipient and for a domain that was deleted', async () => {
    const suppression = { email: 'ada@recipient.example' };
    const added = await client.post('/web-setup/suppressions', suppression);
    expect(added.status, added.text).toBeLessThan(300);
    const answer = await resend(messageId);
    expect(answer.error.code).toBe('RECIPIENT_SUPPRESSED');
    expect(answer.error.details?.[0]?.recipient).toBe('ada@recipient.example');
    await client.call('DELETE', `/web-setup/domains/${domainId}`);
    expect((await resend(messageId)).error.code).toBe('DOMAIN_NOT_REGISTERED');
  });
});
