import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isPublic } from '../../../src/dns/address-kinds.ts';
import { type ApiClient, type CreatedDomain, createApiClient } from '../../support/api-client.ts';
import { createAuthority } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { portOf } from '../../support/https-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';

/** Sends whose attachments are fetched from an https server of this machine, which counts as public under one address. */
const PUBLIC = '127.0.0.2';
const PRIVATE = '127.0.0.1';
const MIB = 1024 * 1024;

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const file =
  (content: string | Buffer, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    response.writeHead(200, { 'content-type': 'application/pdf', ...headers }).end(content);
const redirect =
  (location: string): Answer =>
  (_, response) =>
    response.writeHead(302, { location }).end();

const paths: Record<string, Answer> = {};
const requests: string[] = [];
const authority = createAuthority();
const server = createServer(
  authority.issue([PUBLIC, PRIVATE, 'files.example', 'inside.example']),
  (request, response) => {
    requests.push(request.url ?? '');
    (paths[request.url ?? ''] ?? ((_, missing) => missing.writeHead(404).end()))(request, response);
  },
);

let daemon: InProcess;
let shop: ApiClient;
let other: ApiClient;
let port: number;
let site: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  port = portOf(server);
  site = `https://files.example:${port}`;
  daemon = await startInProcess(
    { 'compat.enable': ['resend'] },
    {
      fileSources: {
        trusted: authority.cert,
        ports: new Set([String(port)]),
        mayConnect: (address) => address === PUBLIC || isPublic(address),
      },
    },
  );
  daemon.dns.set('files.example', 'A', [PUBLIC]);
  daemon.dns.set('inside.example', 'A', [PRIVATE]);
  shop = await sender('shop.example');
  other = await sender('other.example');
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await daemon.stop();
});

beforeEach(() => {
  for (const path of Object.keys(paths)) delete paths[path];
  requests.length = 0;
});

async function sender(domain: string): Promise<ApiClient> {
  const client = await daemon.account(domain);
  const input = { domain, useCaseId: 'tx-local' };
  const { data } = await client.put<CreatedDomain>('/web-setup/domains', input);
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await client.post(`/web-setup/domains/${data.domainId}/verify`);
  return client;
}

interface Linked {
  url?: string;
  name?: string;
  contentType?: string;
  content?: string;
  contentId?: string;
}

const mail = (attachments: Linked[], domain = 'shop.example') => ({
  from: `shop@${domain}`,
  to: 'ada@recipient.example',
  subject: 'Invoice',
  html: '<p>Hello</p>{{company_address_html}}{{unsubscribe_email_html}}',
  // The messages stay in the queue.
  scheduledAt: new Date(Date.now() + 3_600_000).toISOString(),
  attachments,
});
const messagesOf = async (client: ApiClient) => (await client.allMessages()).length;

async function attachmentsOf(messageId: string) {
  const { data } = await shop.get<{ source: string }>(`/web-setup/messages/${messageId}/source`);
  const { attachments } = await simpleParser(data.source);
  return attachments.map(({ filename, contentType, content, cid }) => [
    filename,
    contentType,
    content.toString(),
    cid,
  ]);
}

describe('attachments by address', () => {
  it('are fetched when the message is accepted, with the name of the path and the type of the response', async () => {
    paths['/a/bill%20%2F7.pdf?key=1'] = file('one', { 'content-type': 'application/pdf; x=1' });
    paths['/moved'] = redirect('/a/bill%20%2F7.pdf?key=1');
    paths['/'] = file('two', { 'content-type': 'message/rfc822' });
    const { status, data, text } = await shop.send(
      mail([
        { url: `${site}/a/bill%20%2F7.pdf?key=1` },
        { name: 'b.txt', contentType: 'text/plain', content: 'dHdv' },
        { url: `${site}/moved`, name: 'c.png', contentType: 'image/png', contentId: 'c' },
        { url: `${site}/` },
      ]),
    );
    expect(status, text).toBe(200);
    expect(await attachmentsOf(data.messageId)).toEqual(
      expect.arrayContaining([
        ['bill 7.pdf', 'application/pdf', 'one', undefined],
        ['b.txt', 'text/plain', 'two', undefined],
        ['c.png', 'image/png', 'one', 'c'],
        ['attachment-4', 'application/octet-stream', 'two', undefined],
      ]),
    );
    expect(requests).toHaveLength(4);
  });

  it('are fetched once for one Idempotency-Key', async () => {
    paths['/once.pdf'] = file('once');
    const body = mail([{ url: `${site}/once.pdf` }]);
    const headers = { 'Idempotency-Key': 'once' };
    const first = await shop.send(body, headers);
    delete paths['/once.pdf'];
    const again = await shop.send(body, headers);
    expect([first.status, again.status], again.text).toEqual([200, 200]);
    expect(again.data.messageId).toBe(first.data.messageId);
    expect(requests).toEqual(['/once.pdf']);
  });

  it('that cannot be fetched leave no trace: the same key works later', async () => {
    const body = mail([{ url: `${site}/later.pdf` }]);
    const headers = { 'Idempotency-Key': 'later' };
    const before = await messagesOf(shop);
    const refused = await shop.send(body, headers);
    expect(refused.status).toBe(422);
    expect(refused.error).toMatchObject({
      code: 'ATTACHMENT_NOT_FETCHED',
      message: 'attachments[0].url: responds with status 404 instead of 200',
      details: [{ field: 'attachments[0].url' }],
    });
    expect(await messagesOf(shop)).toBe(before);
    paths['/later.pdf'] = file('later');
    expect((await shop.send(body, headers)).status).toBe(200);
    expect(await messagesOf(shop)).toBe(before + 1);
  });

  it('are fetched for test keys, and for the messages of a batch', async () => {
    paths['/t.pdf'] = file('test');
    const input = { name: 'tests', scopes: ['transactional'], livemode: false };
    const { data } = await shop.post<{ secret: string }>(`/web-setup/accounts/${shop.accountId}/keys`, input);
    const test = createApiClient(daemon.url, { ...shop, keys: { ...shop.keys, transactional: data.secret } });
    const body = mail([{ url: `${site}/t.pdf` }]);
    expect((await test.send(body)).status).toBe(200);
    const messages = [body, mail([{ url: `${site}/missing` }]), body];
    const batch = await shop.post<{ results: { success: boolean; error?: { code: string } }[] }>(
      '/transactional/send-batch',
      { messages },
    );
    expect(batch.data.results.map(({ success, error }) => error?.code ?? success)).toEqual([
      true,
      'ATTACHMENT_NOT_FETCHED',
      true,
    ]);
    expect(requests).toHaveLength(4);
  });
});

describe('the path of an attachment of Resend', () => {
  const resend = async (attachments: object[]) => {
    const { from, to, subject, html, scheduledAt } = mail([]);
    const response = await fetch(`${daemon.url}/compat/resend/emails`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${shop.keys.transactional}` },
      body: JSON.stringify({ from, to, subject, html, scheduled_at: scheduledAt, attachments }),
    });
    return { status: response.status, json: JSON.parse(await response.text()) };
  };

  it('is fetched, and named when it cannot be', async () => {
    paths['/r.pdf'] = file('resend');
    const { status, json } = await resend([
      { path: `${site}/r.pdf` },
      { path: `${site}/r.pdf`, filename: 'b.png', content_type: 'image/png' },
    ]);
    expect(status).toBe(200);
    expect(await attachmentsOf(json.id)).toEqual([
      ['r.pdf', 'application/pdf', 'resend', undefined],
      ['b.png', 'image/png', 'resend', undefined],
    ]);
    for (const [attachment, name, message] of [
      [
        { path: `${site}/missing` },
        'invalid_attachment',
        /^attachments\[0\]\.path: responds with status 404/,
      ],
      [{ path: './invoice.pdf' }, 'validation_error', /^attachments\[0\]\.path: must be a URL/],
      [{ content: 'dHdv' }, 'validation_error', /^attachments\[0\]\.filename: is required/],
    ] as const)
      expect(await resend([attachment])).toMatchObject({
        status: 422,
        json: { name, message: expect.stringMatching(message) },
      });
  });
});

describe('an attachment by address is refused', () => {
  const refusalOf = async (...attachments: Linked[]) => {
    const before = await messagesOf(shop);
    const { status, error } = await shop.send(mail(attachments));
    expect(await messagesOf(shop)).toBe(before);
    return { status, code: error.code, field: error.details?.[0]?.field, message: error.message };
  };

  it.each<[string, Linked, RegExp]>([
    ['http', { url: 'http://files.example/' }, /must begin with https/],
    ['another scheme', { url: 'file:///etc/passwd' }, /must begin with https/],
    ['a password', { url: 'https://a:b@files.example/' }, /password/],
    ['no address', { url: 'nothing' }, /must be a URL/],
    ['an empty address', { url: '' }, /must be a URL/],
    ['a long address', { url: `https://files.example/${'x'.repeat(2048)}` }, /at most 2048/],
    ['content, too', { url: 'https://files.example/', content: 'dHdv' }, /together with content/],
  ])('as invalid, without a request: %s', async (_, attachment, message) => {
    const refusal = await refusalOf(attachment);
    expect(refusal).toMatchObject({ status: 400, code: 'VALIDATION_ERROR', field: 'attachments[0].url' });
    expect(refusal.message).toMatch(message);
    expect(requests).toEqual([]);
  });

  it.each([
    `https://${PRIVATE}`,
    'https://2130706433',
    'https://[::1]',
    'https://localhost',
    'https://inside.example',
  ])('at %s, whose address is private, as if it had none', async (origin) => {
    const refusal = await refusalOf({ url: `${origin}:${port}/` });
    expect(refusal).toEqual(await refusalOf({ url: `https://missing.example:${port}/` }));
    expect(refusal).toMatchObject({
      status: 422,
      field: 'attachments[0].url',
      message: 'attachments[0].url: has no public address',
    });
    expect(requests).toEqual([]);
  });

  it.each<[string, (site: string) => Answer, RegExp]>([
    ['a private address', () => redirect(`https://inside.example:${port}/`), /has no public address/],
    ['http', () => redirect(`http://files.example:${port}/`), /redirects to .* must begin with https/],
    ['another port', () => redirect('https://files.example:22/'), /must have the port/],
    ['itself', () => redirect('/a'), /more than 3 redirects/],
  ])('with a redirect to %s', async (_, answer, message) => {
    paths['/a'] = answer(site);
    const { status, message: found } = await refusalOf({ url: `${site}/a` });
    expect(status).toBe(422);
    expect(found).toMatch(message);
    expect(requests.every((path) => path === '/a')).toBe(true);
  });

  it('that is too large, alone or with the others, before it has arrived', async () => {
    let sent = 0;
    paths['/endless'] = (_, response) => {
      const send = () => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024))) sent += 64 * 1024;
      };
      response.writeHead(200).on('drain', send);
      send();
    };
    paths['/most'] = file(Buffer.alloc(1.5 * MIB));
    const tooLarge = { status: 413, code: 'ATTACHMENTS_TOO_LARGE' };
    expect(await refusalOf({ url: `${site}/endless` })).toMatchObject({
      ...tooLarge,
      field: 'attachments[0].url',
    });
    expect(sent).toBeLessThan(32 * MIB);
    expect(await refusalOf({ url: `${site}/most` }, { url: `${site}/most` })).toMatchObject({
      ...tooLarge,
      field: 'attachments[1].url',
    });
    const inline = { name: 'a', contentType: 'a/b', content: Buffer.alloc(MIB).toString('base64') };
    expect(await refusalOf(inline, { url: `${site}/most` })).toMatchObject({
      ...tooLarge,
      field: 'attachments[1].url',
    });
  });

  it('with compressed content, or without a valid certificate', async () => {
    paths['/gzip'] = file('x', { 'content-encoding': 'gzip' });
    expect((await refusalOf({ url: `${site}/gzip` })).message).toMatch(/compressed/);
    daemon.dns.set('unnamed.example', 'A', [PUBLIC]);
    expect((await refusalOf({ url: `https://unnamed.example:${port}/` })).message).toMatch(/certificate/);
  });

  it('of an account that cannot send, without a request', async () => {
    const refused = await shop.send(mail([{ url: `${site}/a` }], 'unknown.example'));
    expect(refused.error.code).toBe('DOMAIN_NOT_REGISTERED');
    expect(requests).toEqual([]);
  });
});

describe('slow downloads of an account', () => {
  it('wait for each other, are refused when they are too many, and delay no other send', async () => {
    const open: ServerResponse[] = [];
    paths['/slow'] = (_, response) => void open.push(response.writeHead(200));
    paths['/quick'] = file('quick');
    const slow = Array.from({ length: 40 }, () => shop.send(mail([{ url: `${site}/slow` }])));
    await eventually('the downloads to begin', () => open.length === 4);
    const quick = await other.send(mail([{ url: `${site}/quick` }], 'other.example'));
    const plain = await shop.send(mail([]));
    expect([quick.status, plain.status]).toEqual([200, 200]);
    expect(open).toHaveLength(4);
    paths['/slow'] = file('now');
    for (const response of open) response.end();
    const statuses = (await Promise.all(slow)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(36);
    expect(statuses.filter((status) => status === 429)).toHaveLength(4);
  });
});
