import { describe, expect, it } from 'vitest';
import { hostileBodies, MK_FROM, startCompat, TX_FROM } from './setup.ts';

const { api, call, daemon, source } = await startCompat('postmark');
const KEY = { 'X-Postmark-Server-Token': api.keys.transactional };
const MAIL = { From: TX_FROM, To: 'ada@example.net', Subject: 'Order 7', HtmlBody: '<p>Thank you {{x}}</p>' };

const email = (body: unknown, headers: Record<string, string> = KEY) => call('/email', { headers, body });

interface Accepted {
  MessageID: string;
}

describe('an email', () => {
  it('is accepted with all fields of Postmark', async () => {
    const { status, json } = await email({
      ...MAIL,
      To: '"Lovelace, Ada" <ada@example.net>, bob@example.net',
      Cc: 'carol@example.net',
      Bcc: 'dave@example.net',
      ReplyTo: 'Help <help@kunde.example>',
      TextBody: 'Thank you',
      Tag: 'orders',
      Metadata: { order: '7' },
      Headers: [{ Name: 'X-Order', Value: '7' }],
      Attachments: [
        { Name: 'a.txt', Content: 'aGVs\r\nbG8=', ContentType: 'text/plain' },
        { Name: 'b.png', Content: 'aGVsbG8=', ContentType: 'image/png', ContentID: 'cid:b.png' },
      ],
      TrackOpens: true,
      TrackLinks: 'HtmlAndText',
      MessageStream: 'outbound',
    });
    expect(status).toBe(200);
    expect(json).toEqual({
      To: '"Lovelace, Ada" <ada@example.net>, bob@example.net',
      Cc: 'carol@example.net',
      Bcc: 'dave@example.net',
      SubmittedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      MessageID: expect.stringMatching(/^msg_/),
      ErrorCode: 0,
      Message: 'OK',
    });
    const { MessageID } = json as Accepted;
    const text = await source(MessageID);
    expect(text).toContain('To: "Lovelace, Ada" <ada@example.net>, bob@example.net');
    expect(text).toContain('Cc: carol@example.net');
    expect(text).not.toContain('dave@example.net');
    expect(text).toContain('Reply-To: Help <help@kunde.example>');
    expect(text).toContain('X-Order: 7');
    expect(text).toContain('Content-Id: <b.png>'.replace('Id', 'ID'));
    expect(text).toContain('aGVsbG8=');
    // The braces are text, and the footer was appended.
    expect(text).toContain('Thank you {{x}}');
    expect(text).toContain('1 Main St');
    expect(await api.message(MessageID)).toMatchObject({ tags: ['orders'], metadata: { order: '7' } });
    const recipients = (await api.allMessages({ subject: 'Order 7' })).map(({ recipient }) => recipient);
    expect(recipients.sort()).toEqual([
      'ada@example.net',
      'bob@example.net',
      'carol@example.net',
      'dave@example.net',
    ]);
  });

  it('needs no subject, and may have null in place of fields that are not set', async () => {
    const { status, json } = await email({
      From: TX_FROM,
      To: 'ada@example.net',
      Cc: null,
      Subject: null,
      TextBody: 'Hello',
      HtmlBody: null,
      Headers: null,
      Attachments: [{ Name: 'a.txt', Content: '', ContentType: 'text/plain', ContentID: null }],
      Metadata: null,
      TrackOpens: null,
    });
    expect([status, json]).toEqual([200, expect.objectContaining({ ErrorCode: 0 })]);
  });

  it('is sent once for an Idempotency-Key', async () => {
    const headers = { ...KEY, 'Idempotency-Key': 'one' };
    const first = await email(MAIL, headers);
    const second = await email(MAIL, headers);
    expect(second.json).toEqual(first.json);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
  });

  it('of the stream broadcast is marketing mail, which needs consent and a marketing key', async () => {
    const mail = { ...MAIL, From: MK_FROM, MessageStream: 'broadcast' };
    expect(await email(mail)).toMatchObject({ status: 401, json: { ErrorCode: 10 } });
    const key = { 'X-Postmark-Server-Token': api.keys.marketing };
    expect(await email(mail, key)).toMatchObject({ status: 422, json: { ErrorCode: 406 } });
    await api.post('/web-setup/contacts', { email: 'ada@example.net', consentMethod: 'web_form' });
    const sent = await email(mail, key);
    expect(sent).toMatchObject({ status: 200, json: { ErrorCode: 0, MessageID: expect.any(String) } });
    const stored = await api.message((sent.json as Accepted).MessageID);
    expect(stored).toMatchObject({ useCase: 'mk', recipient: 'ada@example.net' });
    expect(await email({ ...mail, Cc: 'bob@example.net' }, key)).toMatchObject({
      status: 422,
      json: { ErrorCode: 300, Message: 'Cc: is for transactional mail only' },
    });
  });
});

describe('a template', () => {
  it('is found by its id, and by the id or alias of Postmark as its name', async () => {
    const { data } = await api.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: '1234567',
      subject: 'Hello {{name}}',
      html: '<p>Dear {{name}}</p>',
    });
    const { templateId } = data.template;
    const templated = { From: TX_FROM, To: 'ada@example.net', TemplateModel: { name: 'Ada' } };
    for (const reference of [
      { TemplateId: 1234567 },
      { TemplateAlias: '1234567' },
      { TemplateAlias: templateId },
    ]) {
      const { status, json, text } = await call('/email/withTemplate', {
        headers: KEY,
        body: { ...templated, ...reference },
      });
      expect(status, text).toBe(200);
      const mail = await source((json as Accepted).MessageID);
      expect(mail).toContain('Subject: Hello Ada');
      expect(mail).toContain('Dear Ada');
    }
    const unknown = await call('/email/withTemplate', {
      headers: KEY,
      body: { ...templated, TemplateId: 7 },
    });
    expect(unknown).toMatchObject({ status: 422, json: { ErrorCode: 1101 } });
    const batch = await call('/email/batchWithTemplates', {
      headers: KEY,
      body: {
        Messages: [
          { ...templated, TemplateId: 1234567 },
          { ...templated, TemplateId: 7 },
        ],
      },
    });
    expect(batch).toMatchObject({ status: 200, json: [{ ErrorCode: 0 }, { ErrorCode: 1101 }] });
  });
});

describe('a batch', () => {
  it('has a result for each message, and is sent once for an Idempotency-Key', async () => {
    const body = [MAIL, { ...MAIL, From: 'a@other.example' }, 7, { ...MAIL, To: 'bob@example.net' }];
    const headers = { ...KEY, 'Idempotency-Key': 'batch' };
    const first = await call('/email/batch', { headers, body });
    expect(first.status).toBe(200);
    expect(first.json).toMatchObject([
      { ErrorCode: 0, To: 'ada@example.net' },
      { ErrorCode: 400 },
      { ErrorCode: 300 },
      { ErrorCode: 0, To: 'bob@example.net' },
    ]);
    const second = await call('/email/batch', { headers, body });
    expect(second.json).toEqual(first.json);
  });

  it('has at most 500 messages, and is a list', async () => {
    const refusals = await Promise.all(
      [Array.from({ length: 501 }, () => ({})), { Messages: [MAIL] }, MAIL, 'x'].map((body) =>
        call('/email/batch', { headers: KEY, body }),
      ),
    );
    for (const each of refusals) expect(each).toMatchObject({ status: 422, json: { ErrorCode: 300 } });
    const raw = (text: string) =>
      call('/email/batch', { headers: { ...KEY, 'Content-Type': 'application/json' }, raw: text });
    expect(await raw('[{}')).toMatchObject({ status: 422, json: { ErrorCode: 402 } });
    expect(await raw('[{}],"other":1')).toMatchObject({ status: 422 });
    expect(await raw('')).toMatchObject({ status: 422 });
  });
});

describe('an error', () => {
  it('has the status and the code of Postmark', async () => {
    const codes = async (body: unknown, headers: Record<string, string> = KEY) => {
      const { status, json } = await email(body, headers);
      const { ErrorCode, Message } = json as { ErrorCode: number; Message: string };
      return [status, ErrorCode, Message];
    };
    expect(await codes(MAIL, {})).toEqual([401, 10, expect.any(String)]);
    expect(await codes(MAIL, { 'X-Postmark-Server-Token': 'wrong' })).toEqual([401, 10, expect.any(String)]);
    expect(await codes({ ...MAIL, To: undefined })).toEqual([422, 300, 'To: is required']);
    expect(await codes({ ...MAIL, To: 'nobody' })).toEqual([422, 300, expect.stringMatching(/^To: /)]);
    expect(await codes({ ...MAIL, HtmlBody: '' })).toEqual([422, 300, expect.stringMatching(/^HtmlBody: /)]);
    expect(await codes({ ...MAIL, From: 'a@other.example' })).toEqual([422, 400, expect.any(String)]);
    expect(await codes({ ...MAIL, MessageStream: 'other' })).toEqual([422, 1235, expect.any(String)]);
    expect(await codes({ ...MAIL, Headers: [{ Name: 'DKIM-Signature', Value: 'x' }] })).toEqual([
      422,
      300,
      expect.stringContaining('Headers.DKIM-Signature'),
    ]);
    await api.post('/web-setup/suppressions', { email: 'gone@example.net' });
    expect(await codes({ ...MAIL, To: 'gone@example.net' })).toEqual([
      422,
      406,
      expect.stringMatching(/Found inactive addresses: gone@example\.net\. Inactive/),
    ]);
  });

  it('is never that of the server for a body that is not valid', async () => {
    const fields = [
      'Cc',
      'Headers',
      'Attachments',
      'Metadata',
      'TrackLinks',
      'MessageStream',
      'TemplateModel',
    ];
    const bodies = hostileBodies(MAIL, fields);
    const answers = await Promise.all(bodies.map((body) => email(body)));
    for (const [index, { status, text }] of answers.entries()) {
      expect(status, `${JSON.stringify(bodies[index]).slice(0, 200)} → ${text}`).toBeLessThan(500);
      if (status !== 200) expect(text).toMatch(/^\{"ErrorCode":\d+,"Message":/);
    }
  });
});

it('is not there unless it is enabled, and the answer names the setting', async () => {
  const response = await fetch(`${daemon.url}/compat/sendgrid/v3/mail/send`, { method: 'POST' });
  expect(response.status).toBe(404);
  expect(await response.text()).toContain('add \\"sendgrid\\" to compat.enable');
  const other = await call('/other', { headers: KEY, body: {} });
  expect(other.status).toBe(404);
  expect(other.text).not.toContain('compat.enable');
});
