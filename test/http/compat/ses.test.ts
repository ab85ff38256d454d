import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type Signing, signedHeaders } from '../../support/sigv4.ts';
import { hostileBodies, MK_FROM, startCompat, TX_FROM } from './setup.ts';

const { daemon, api, source } = await startCompat('ses');
const SEND = '/compat/ses/v2/email/outbound-emails';
const BULK = '/compat/ses/v2/email/outbound-bulk-emails';
const { host, hostname, port } = new URL(daemon.url);

interface Pair {
  keyId: string;
  secret: string;
}

async function pairOf(owner: typeof api, more: object = {}): Promise<Pair> {
  const body = { name: 'ses', scopes: ['transactional'], sigv4: true, ...more };
  const path = `/web-setup/accounts/${owner.accountId}/keys`;
  const { data } = await owner.post<{ key: { keyId: string }; secret: string }>(path, body);
  return { keyId: data.key.keyId, secret: data.secret };
}

const PAIR = await pairOf(api);
const MAIL = {
  FromEmailAddress: TX_FROM,
  Destination: { ToAddresses: ['ada@example.net'] },
  Content: { Simple: { Subject: { Data: 'Order 7' }, Body: { Html: { Data: '<p>Thank you</p>' } } } },
};

interface Answer {
  status: number;
  type: string | undefined;
  json: Record<string, unknown>;
  headers: Record<string, string | string[] | undefined>;
}

/** Sends header fields as they are, repeated ones included. */
function post(path: string, fields: readonly string[], body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = [
      ...fields,
      'content-length',
      String(Buffer.byteLength(body)),
      'content-type',
      'application/json',
    ];
    const sent = request({ host: hostname, port, path, method: 'POST', headers, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const type = res.headers['x-amzn-errortype']?.toString();
        resolve({ status: res.statusCode ?? 0, type, json: JSON.parse(text), headers: res.headers });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** A signed request; `change` alters its header fields after they were signed. */
function call(
  body: unknown,
  {
    path = SEND,
    change = (fields) => fields,
    sentBody,
    ...signing
  }: Partial<Signing> & {
    change?(fields: Record<string, string>): Record<string, string>;
    sentBody?: string;
  } = {},
): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const fields = signedHeaders({ ...PAIR, host, path, body: text, at: new Date(), ...signing });
  return post(path, Object.entries(change(fields)).flat(), sentBody ?? text);
}

const omit = (fields: Record<string, string>, name: string) =>
  Object.fromEntries(Object.entries(fields).filter(([each]) => each !== name));
const idOf = ({ json }: Answer) => String(json['MessageId']);

describe('an email', () => {
  it('is accepted with all fields of SES', async () => {
    const answer = await call({
      ...MAIL,
      Destination: {
        ToAddresses: ['Ada <ada@example.net>'],
        CcAddresses: ['carol@example.net'],
        BccAddresses: ['dave@example.net'],
      },
      ReplyToAddresses: ['help@kunde.example', 'shop@kunde.example'],
      Content: {
        Simple: {
          Subject: { Data: 'Grüße', Charset: 'UTF-8' },
          Body: { Html: { Data: '<img src="cid:b">' }, Text: { Data: 'Thank you' } },
          Headers: [{ Name: 'X-Order', Value: '7' }],
          Attachments: [
            { FileName: 'a.txt', RawContent: 'aGVsbG8=' },
            { FileName: 'b.png', RawContent: 'aGk=', ContentDisposition: 'INLINE', ContentId: 'b' },
          ],
        },
      },
      EmailTags: [{ Name: 'order', Value: '7' }],
      ConfigurationSetName: 'default',
      FeedbackForwardingEmailAddress: 'bounces@kunde.example',
    });
    expect(answer.status, JSON.stringify(answer.json)).toBe(200);
    expect(answer.json).toEqual({ MessageId: expect.stringMatching(/^msg_/) });
    const mail = await source(idOf(answer));
    expect(mail).toContain('X-Order: 7');
    expect(mail).toContain('Content-ID: <b>');
    expect(mail).toContain('filename="a.txt"');
    expect(mail).toContain('Reply-To: help@kunde.example, shop@kunde.example');
    expect(await api.message(idOf(answer))).toMatchObject({ metadata: { order: '7' }, subject: 'Grüße' });
  });

  it('is accepted as MIME, to its destination or to the recipients that it names', async () => {
    const mime = `From: ${TX_FROM}\r\nTo: Ada <ada@example.net>\r\nSubject: Raw\r\n\r\n{{hello}}\r\n`;
    const Content = { Raw: { Data: Buffer.from(mime).toString('base64') } };
    const named = await call({ Content, EmailTags: [{ Name: 'order', Value: '8' }] });
    expect(named.status, JSON.stringify(named.json)).toBe(200);
    expect(await source(idOf(named))).toContain('{{hello}}');
    expect(await api.message(idOf(named))).toMatchObject({
      recipient: 'ada@example.net',
      metadata: { order: '8' },
    });
    const other = await call({ Content, Destination: { BccAddresses: ['eve@example.net'] } });
    expect(await api.message(idOf(other))).toMatchObject({ recipient: 'eve@example.net' });
    expect(await call({ Content: { Raw: { Data: '?' } } })).toMatchObject({
      status: 400,
      type: 'BadRequestException',
      json: { message: expect.stringContaining('Data') },
    });
  });

  it('is rendered from a template with its data', async () => {
    const template = { name: 'welcome', subject: 'Hi {{name}}', html: '<p>{{name}}</p>' };
    await api.post('/web-setup/templates', template);
    const of = (Template: object) => call({ ...MAIL, Content: { Template } });
    const sent = await of({ TemplateName: 'welcome', TemplateData: '{"name":"Ada"}' });
    expect(await api.message(idOf(sent))).toMatchObject({ subject: 'Hi Ada' });
    const byArn = await of({
      TemplateArn: 'arn:aws:ses:eu-central-1:1:template/welcome',
      TemplateData: '{"name":"Bob"}',
    });
    expect(await api.message(idOf(byArn))).toMatchObject({ subject: 'Hi Bob' });
    expect(await of({ TemplateName: 'other' })).toMatchObject({ status: 404, type: 'NotFoundException' });
    for (const data of ['{', '[]', '7'])
      expect(await of({ TemplateName: 'welcome', TemplateData: data })).toMatchObject({
        status: 400,
        type: 'BadRequestException',
        json: { message: expect.stringContaining('TemplateData') },
      });
    const bulk = await call(
      {
        FromEmailAddress: TX_FROM,
        DefaultContent: { Template: { TemplateName: 'welcome', TemplateData: '{"name":"you"}' } },
        DefaultEmailTags: [{ Name: 'kind', Value: 'bulk' }],
        BulkEmailEntries: [
          { Destination: { ToAddresses: ['ada@example.net'] } },
          {
            Destination: { ToAddresses: ['bob@example.net'] },
            ReplacementEmailContent: { ReplacementTemplate: { ReplacementTemplateData: '{"name":"Bob"}' } },
            ReplacementTags: [{ Name: 'kind', Value: 'one' }],
          },
          { Destination: { ToAddresses: ['nobody'] } },
        ],
      },
      { path: BULK },
    );
    expect(bulk.json).toMatchObject({
      BulkEmailEntryResults: [
        { Status: 'SUCCESS', MessageId: expect.stringMatching(/^msg_/) },
        { Status: 'SUCCESS' },
        { Status: 'INVALID_PARAMETER', Error: expect.stringContaining('ToAddresses[0]') },
      ],
    });
    const [first, second] = bulk.json['BulkEmailEntryResults'] as { MessageId: string }[];
    expect(await api.message(first?.MessageId ?? '')).toMatchObject({ subject: 'Hi you' });
    expect(await api.message(second?.MessageId ?? '')).toMatchObject({
      subject: 'Hi Bob',
      metadata: { kind: 'one' },
    });
  });

  it('is sent once for all attempts of a call', async () => {
    const signed = { 'amz-sdk-invocation-id': '7ad53bbf-0c4c-4a83-8f36-8a2e4a3c1b70' };
    const first = await call(MAIL, { signed });
    const again = await call(MAIL, { signed });
    expect(again.json).toEqual(first.json);
    expect(again.headers['idempotency-replayed']).toBe('true');
    const changed = { ...MAIL, Destination: { ToAddresses: ['bob@example.net'] } };
    expect(await call(changed, { signed })).toMatchObject({ status: 409, type: 'ConflictException' });
    expect(idOf(await call(MAIL))).not.toBe(idOf(first));
  });

  it('that is refused has the exception of SES', async () => {
    await api.post('/web-setup/suppressions', { email: 'gone@example.net' });
    const cases: [object, number, string][] = [
      [{ FromEmailAddress: 'a@other.example' }, 400, 'MessageRejected'],
      [{ FromEmailAddress: MK_FROM }, 400, 'MessageRejected'],
      [{ FromEmailAddress: undefined }, 400, 'BadRequestException'],
      [{ Destination: { ToAddresses: ['gone@example.net'] } }, 400, 'MessageRejected'],
      [{ Destination: { ToAddresses: [] } }, 400, 'BadRequestException'],
      [{ Content: {} }, 400, 'BadRequestException'],
      [{ ListManagementOptions: { ContactListName: 'a' } }, 400, 'BadRequestException'],
    ];
    for (const [change, status, type] of cases)
      expect(await call({ ...MAIL, ...change }), JSON.stringify(change)).toMatchObject({
        status,
        type,
        json: { message: expect.any(String) },
      });
    await api.put('/web-setup/domains', { domain: 'pending.example', useCaseId: 'tx-local' });
    expect(await call({ ...MAIL, FromEmailAddress: 'a@pending.example' })).toMatchObject({
      status: 400,
      type: 'MailFromDomainNotVerifiedException',
    });
    expect(await call('{')).toMatchObject({ status: 400, type: 'SerializationException' });
    const unknown = '/compat/ses/v2/email/identities';
    expect(await call({}, { path: unknown })).toMatchObject({
      status: 404,
      type: 'UnknownOperationException',
    });
  });

  it('of a hostile body is refused or accepted, never an error of the server', async () => {
    const fields = ['ReplyToAddresses', 'EmailTags', 'ConfigurationSetName', 'ListManagementOptions'];
    const inner = hostileBodies(MAIL.Content.Simple, ['Headers', 'Attachments']).map((Simple) => ({
      ...MAIL,
      Content: { Simple },
    }));
    for (const body of [...hostileBodies(MAIL, fields), ...inner]) {
      const { status } = await call(body);
      expect([200, 400, 404], JSON.stringify(body).slice(0, 200)).toContain(status);
    }
    for (const body of hostileBodies({ DefaultContent: {}, BulkEmailEntries: [] }, ['DefaultEmailTags']))
      expect((await call(body, { path: BULK })).status).toBe(400);
  });
});

describe('a signature', () => {
  it('is verified with and without the hash of the body, for any region', async () => {
    expect(await call(MAIL, { statedHash: null })).toMatchObject({ status: 200 });
    expect(await call(MAIL, { region: 'us-east-1' })).toMatchObject({ status: 200 });
    expect(await call(MAIL, { signed: { 'x-amz-meta': '  two   words ' } })).toMatchObject({ status: 200 });
  });

  it('of another secret, body, path, method, service, time or host is refused', async () => {
    const changedBody = JSON.stringify({ ...MAIL, Destination: { ToAddresses: ['eve@example.net'] } });
    const cases: [string, Parameters<typeof call>[1], string][] = [
      ['secret', { secret: 'pr_wrong' }, 'SignatureDoesNotMatch'],
      ['body', { sentBody: changedBody }, 'SignatureDoesNotMatch'],
      ['body without its hash', { sentBody: changedBody, statedHash: null }, 'SignatureDoesNotMatch'],
      ['method', { method: 'PUT' }, 'SignatureDoesNotMatch'],
      ['host', { change: (fields) => ({ ...fields, host: 'localhost' }) }, 'SignatureDoesNotMatch'],
      [
        'time',
        { change: (fields) => ({ ...fields, 'x-amz-date': '20260131T120000Z' }) },
        'IncompleteSignatureException',
      ],
      ['old time', { at: new Date(Date.now() - 16 * 60_000) }, 'SignatureDoesNotMatch'],
      ['future', { at: new Date(Date.now() + 16 * 60_000) }, 'SignatureDoesNotMatch'],
      ['service', { service: 's3' }, 'IncompleteSignatureException'],
      ['key', { keyId: 'key_1_unknown' }, 'UnrecognizedClientException'],
      ['long key', { keyId: 'k'.repeat(5000) }, 'UnrecognizedClientException'],
      ['unsigned body', { statedHash: 'UNSIGNED-PAYLOAD' }, 'IncompleteSignatureException'],
      ['session', { signed: { 'x-amz-security-token': 'x' } }, 'UnrecognizedClientException'],
      [
        'field that is missing',
        {
          signed: { 'x-other': '1' },
          change: (fields) => omit(fields, 'x-other'),
        },
        'IncompleteSignatureException',
      ],
      [
        'field that was changed',
        { signed: { 'x-other': '1' }, change: (fields) => ({ ...fields, 'x-other': '2' }) },
        'SignatureDoesNotMatch',
      ],
      [
        'no time',
        {
          change: ({ authorization = '', ...fields }) => ({
            ...fields,
            authorization: authorization.replace(';x-amz-date', ''),
          }),
        },
        'IncompleteSignatureException',
      ],
    ];
    for (const [title, options, type] of cases)
      expect(await call(MAIL, options), title).toMatchObject({ status: 403, type });
    const path = `${SEND}?X-Amz-Signature=1`;
    const query = signedHeaders({ ...PAIR, host, path: SEND, body: '{}', at: new Date() });
    expect(await post(path, Object.entries(query).flat(), '{}')).toMatchObject({ status: 403 });
    expect(await post(SEND, ['host', host], '{}')).toMatchObject({
      status: 403,
      type: 'MissingAuthenticationTokenException',
    });
    for (const value of [
      '',
      'x',
      `Bearer ${PAIR.secret}`,
      'AWS4-HMAC-SHA256 Credential=, SignedHeaders=, Signature=',
    ])
      expect(await post(SEND, ['host', host, 'authorization', value], '{}')).toMatchObject({
        status: 403,
        type: 'IncompleteSignatureException',
      });
    expect(await api.allMessages({ recipient: 'eve@example.net' })).toHaveLength(1);
  });

  it('is refused when a field that it includes occurs twice', async () => {
    const body = JSON.stringify(MAIL);
    const fields = signedHeaders({ ...PAIR, host, path: SEND, body, at: new Date() });
    const other = signedHeaders({ ...PAIR, host, path: SEND, body, at: new Date(Date.now() - 60_000) });
    for (const name of ['authorization', 'x-amz-date', 'x-amz-content-sha256'])
      for (const value of [fields[name] ?? '', other[name] ?? '']) {
        const twice = [...Object.entries(fields).flat(), name, value];
        expect(await post(SEND, twice, body), name).toMatchObject({ status: 403 });
      }
    const hosts = await post(SEND, [...Object.entries(fields).flat(), 'host', 'other.example'], body);
    expect(hosts.status).toBeGreaterThanOrEqual(400);
  });

  it('of the path of another operation is refused, and other spellings of the path do not exist', async () => {
    const fields = signedHeaders({ ...PAIR, host, path: BULK, body: '{}', at: new Date() });
    expect(await post(SEND, Object.entries(fields).flat(), '{}')).toMatchObject({ status: 403 });
    for (const path of [
      `/${SEND}`,
      `${SEND}/`,
      SEND.replace('ses', 'SES'),
      SEND.replace('v2', 'v2/./x/..'),
      SEND.replace('-', '%2d'),
    ])
      expect((await call(MAIL, { path })).status, path).toBe(404);
  });

  it('of a key that is revoked, restricted, without the scope or of a disabled account is refused', async () => {
    const body = JSON.stringify(MAIL);
    const restricted = await pairOf(api, { allowIps: ['192.0.2.1'] });
    const setup = await pairOf(api, { scopes: ['setup'] });
    const plain = await pairOf(api, { sigv4: false });
    for (const [pair, type] of [
      [restricted, 'AccessDeniedException'],
      [setup, 'AccessDeniedException'],
      [plain, 'UnrecognizedClientException'],
    ] as const)
      expect(await call(body, pair)).toMatchObject({ status: 403, type });
    const revoked = await pairOf(api);
    expect(await call(body, revoked)).toMatchObject({ status: 200 });
    await api.call('DELETE', `/web-setup/accounts/${api.accountId}/keys/${revoked.keyId}`);
    expect(await call(body, revoked)).toMatchObject({ status: 403, type: 'UnrecognizedClientException' });
    expect(daemon.tables.apiKeys.get(revoked.keyId)?.signing_secret).toBeNull();
    const other = await daemon.account('B');
    const theirs = await pairOf(other);
    // The secret of one account with the id of another, and a domain of another account.
    expect(await call(body, { ...theirs, keyId: PAIR.keyId })).toMatchObject({ status: 403 });
    expect(await call(body, theirs)).toMatchObject({ status: 400, type: 'MessageRejected' });
  });

  it('of a test key is valid, and its mail never leaves', async () => {
    const sent = await call(MAIL, await pairOf(api, { livemode: false }));
    expect(await api.message(idOf(sent))).toMatchObject({ livemode: false });
  });

  it('is not needed for the key as a bearer token', async () => {
    const { keyId, secret } = await pairOf(api, { scopes: ['transactional', 'setup'] });
    const response = await fetch(`${daemon.url}/web-setup/keys`, {
      headers: { Authorization: `Bearer ${secret}` },
    });
    const { data } = (await response.json()) as { data: { keys: { keyId: string; sigv4: boolean }[] } };
    expect(data.keys.find((key) => key.keyId === keyId)).toMatchObject({ sigv4: true });
    const row = daemon.tables.apiKeys.get(keyId);
    expect(row?.signing_secret?.includes(secret)).toBe(false);
  });
});
