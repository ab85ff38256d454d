import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sentContent } from '../../../src/sending/sent-content.ts';
import { DATABASE_FILE, openConnection } from '../../../src/store/database/connection.ts';
import type { ApiClient, CreatedDomain } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { publishMailHost } from '../../support/recipients.ts';
import { type Sink, startSink } from '../../support/smtp-sink.ts';

/** The content of messages over HTTP, compared with what the recipient's host received. */
interface Content {
  headers: { name: string; value: string }[];
  html: string | null;
  text: string | null;
  attachments: { name: string; contentType: string; size: number; isInline: boolean }[];
  size: number;
}

const MAIL = {
  from: 'Shop <shop@sender.example>',
  to: 'Ada <ada@recipient.example>',
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
let messageId: string;

beforeAll(async () => {
  sink = await startSink();
  daemon = await startInProcess({ 'delivery.port': sink.port, 'delivery.allowPrivateNetworks': true });
  publishMailHost(daemon.dns, 'recipient.example', sink.host);
  client = await daemon.account('Shop');
  const input = { domain: 'sender.example', useCaseId: 'tx-local' };
  const { data } = await client.put<CreatedDomain>('/web-setup/domains', input);
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await client.post(`/web-setup/domains/${data.domainId}/verify`);
  const sent = await client.send(MAIL);
  expect(sent.status, sent.text).toBe(200);
  messageId = sent.data.messageId;
  await eventually('the message to arrive', () => sink.messages.length === 1);
});

afterAll(async () => {
  await daemon.stop();
  await sink.close();
});

const contentOf = (id: string, caller = client) => caller.get<Content>(`/web-setup/messages/${id}/content`);
const sourceOf = (id: string, caller = client) =>
  caller.get<{ source: string }>(`/web-setup/messages/${id}/source`);
const received = () => sink.messages[0]?.raw.toString() ?? '';

describe('the content of a message', () => {
  it('is what its recipient got', async () => {
    const { status, data } = await contentOf(messageId);
    expect(status).toBe(200);
    const parsed = await simpleParser(received());
    expect(data.html?.trim()).toBe(String(parsed.html).trim());
    expect(data.html).not.toContain('https://shop.example/order');
    expect(data.text).toContain('Hello');
    expect(data.attachments).toEqual([
      { name: 'a.txt', contentType: 'text/plain', size: 12, isInline: false },
    ]);
    expect(data.headers.find(({ name }) => name === 'To')?.value).toBe('Ada <ada@recipient.example>');
    expect(data.headers.find(({ name }) => name === 'List-Unsubscribe')?.value).toMatch(
      /^<https?:\/\/.*>, <mailto:/,
    );
  });

  it('has the source that was signed and sent', async () => {
    const { data } = await sourceOf(messageId);
    const unsigned = received().replace(/^(?:DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*)+/, '');
    expect(data.source).toBe(unsigned);
    expect((await contentOf(messageId)).data.size).toBe(Buffer.byteLength(data.source));
  });

  it('is not shown to another account', async () => {
    const other = await daemon.account('Other');
    for (const answer of [await contentOf(messageId, other), await sourceOf(messageId, other)])
      expect([answer.status, answer.error.code]).toEqual([404, 'MESSAGE_NOT_FOUND']);
  });

  it('is not even read for another account, so that the time of a response does not show that it exists', () => {
    const { accountId } = client;
    expect(sentContent.run(daemon.tables, { accountId, messageId })?.content).not.toBeNull();
    expect(sentContent.run(daemon.tables, { accountId: 'acct_other', messageId })).toBeNull();
  });

  it('is missing after retention has deleted it, with the reason', async () => {
    const { data } = await client.send({ ...MAIL, to: 'late@recipient.example' });
    await eventually('the second message to arrive', () => sink.messages.length === 2);
    const row = daemon.tables.messages.byId(data.messageId);
    const db = openConnection(join(daemon.dataDir, DATABASE_FILE), {});
    db.prepare('DELETE FROM contents WHERE content_id = ?').run(row?.content_id);
    db.close();
    const answer = await contentOf(data.messageId);
    expect([answer.status, answer.error.code]).toEqual([404, 'MESSAGE_NOT_FOUND']);
    expect(answer.text).toContain('retention');
  });
});
