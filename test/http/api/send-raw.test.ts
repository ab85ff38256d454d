import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient, SendData } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

/** Whole messages over HTTP, which are read as over SMTP. */
const HEAD = [
  'From: Shop <orders@sender.test>',
  'To: Ada <ada@reader.test>',
  'Cc: bob@reader.test',
  'Bcc: Eve <eve@reader.test>',
  'Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=',
  'X-Order: 7',
  'X-Postrider-Tag: invoice',
];
const mailOf = (head: readonly string[], body = '<p>Hello {{name}}</p>') =>
  [...head, 'Content-Type: text/html; charset=utf-8', '', body, ''].join('\r\n');
const MAIL = mailOf(HEAD);
const only = (...fields: string[]) => mailOf(['From: orders@sender.test', 'Subject: Hi', ...fields]);
const base64 = (text: string) => Buffer.from(text).toString('base64');

let daemon: InProcess;
let api: ApiClient;

const sendMail = (mail: string, headers: Record<string, string> = {}) =>
  api.call<SendData>('POST', '/transactional/send-raw', {
    rawBody: Buffer.from(mail),
    headers: { 'Content-Type': 'message/rfc822', ...headers },
  });
const sendJson = (body: object) => api.post<SendData>('/transactional/send-raw', body);
const recipientsOf = ({ data }: { data: SendData }) =>
  data.recipients.map(({ role, email }) => `${role} ${email}`);
const source = async (id: string) =>
  (await api.get<{ source: string }>(`/web-setup/messages/${id}/source`)).data.source;

beforeAll(async () => {
  daemon = await startInProcess();
  api = await daemon.account('Shop');
  const [group] = daemon.tables.domainGroups.list(api.accountId);
  const row = { account_id: api.accountId, group_id: group?.group_id ?? '', next_check_at: Date.now() + DAY };
  insertDomain(
    daemon.tables,
    { ...row, domain_id: 'domain_1_tx', name: 'sender.test', use_case: 'tx' },
    Date.now(),
  );
  await api.post('/web-setup/suppressions', { email: 'gone@reader.test' });
});
afterAll(() => daemon.stop());

describe('a whole message', () => {
  it('is sent to those that it names, with the rules of submission, and without Bcc', async () => {
    const sent = await sendMail(MAIL);
    expect(sent.status, sent.text).toBe(200);
    expect(sent.data).toMatchObject({ status: 'sent', totalRecipients: 3 });
    expect(recipientsOf(sent)).toEqual(['to ada@reader.test', 'cc bob@reader.test', 'bcc eve@reader.test']);
    const text = await source(sent.data.messageId);
    expect(text).toContain('To: Ada <ada@reader.test>');
    expect(text).toContain('X-Order: 7');
    // Braces are text, and the footer of the account is added.
    expect(text).toContain('Hello {{name}}');
    expect(text).toContain('Shop Ltd');
    expect(text).not.toContain('eve@');
    expect(text).not.toContain('X-Postrider-Tag');
    expect(await api.message(sent.data.messageId)).toMatchObject({ subject: 'Grüße', tags: ['invoice'] });
  });

  it('is sent as base64 to other recipients, whose roles are in its fields', async () => {
    const to = ['Bob <bob@reader.test>', 'x@reader.test, y@reader.test'];
    const sent = await sendJson({ raw: base64(MAIL).replace(/=+$/, ''), to });
    expect(sent.status, sent.text).toBe(200);
    expect(recipientsOf(sent)).toEqual(['to bob@reader.test', 'bcc x@reader.test', 'bcc y@reader.test']);
    expect(await source(sent.data.messageId)).toContain('To: Ada <ada@reader.test>');
    expect(recipientsOf(await sendJson({ raw: base64(MAIL) }))).toHaveLength(3);
  });

  it('is sent to each address once', async () => {
    const sent = await sendMail(only('To: ada@reader.test, ADA@Reader.test', 'Bcc: ada@reader.test'));
    expect(recipientsOf(sent)).toEqual(['to ada@reader.test']);
  });

  it('is sent once for one key, in either place', async () => {
    const key = { 'Idempotency-Key': 'order-7' };
    const first = await sendMail(MAIL, key);
    const again = await sendMail(MAIL, key);
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const other = await sendMail(only('To: ada@reader.test'), key);
    expect([other.status, other.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const own = mailOf([...HEAD, 'X-Postrider-Idempotency-Key: order-8']);
    expect((await sendMail(own)).text).toBe((await sendMail(own)).text);
  });

  it.each<
    [
      string,
      () => Promise<{ status: number; error: { code: string; details?: object[] } }>,
      number,
      string,
      string,
    ]
  >([
    [
      'another From domain',
      () => sendMail(MAIL.replaceAll('sender.test', 'other.test')),
      403,
      'DOMAIN_NOT_REGISTERED',
      'from',
    ],
    [
      'a suppressed recipient',
      () => sendMail(only('To: gone@reader.test')),
      403,
      'RECIPIENT_SUPPRESSED',
      'to',
    ],
    ['no From', () => sendMail('To: ada@reader.test\r\n\r\nHi\r\n'), 400, 'VALIDATION_ERROR', 'From'],
    ['no recipient', () => sendMail(only('To: undisclosed-recipients:;')), 400, 'VALIDATION_ERROR', 'to'],
    [
      'a name without an address',
      () => sendMail(only('To: ada@reader.test', 'Bcc: Bob')),
      400,
      'VALIDATION_ERROR',
      'Bcc',
    ],
    [
      '101 recipients',
      () => sendJson({ raw: base64(MAIL), to: Array.from({ length: 101 }, (_, n) => `u${n}@reader.test`) }),
      400,
      'VALIDATION_ERROR',
      'to',
    ],
    [
      'recipients that are no addresses',
      () => sendJson({ raw: base64(MAIL), to: ['ada@reader.test', 'ada'] }),
      400,
      'VALIDATION_ERROR',
      'to[1]',
    ],
    [
      'no recipients on request',
      () => sendJson({ raw: base64(MAIL), to: [] }),
      400,
      'VALIDATION_ERROR',
      'to',
    ],
    ['content that is not base64', () => sendJson({ raw: MAIL }), 400, 'VALIDATION_ERROR', 'raw'],
    [
      'a signed message',
      () =>
        sendMail(
          `${HEAD.join('\r\n')}\r\nContent-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\nHi\r\n--b--\r\n`,
        ),
      400,
      'VALIDATION_ERROR',
      'raw',
    ],
    [
      'a field of marketing mail',
      () => sendMail(mailOf([...HEAD, 'X-Postrider-Group: g'])),
      400,
      'VALIDATION_ERROR',
      'X-Postrider-group',
    ],
  ])('is refused with %s, and leaves no trace', async (_, send, status, code, field) => {
    const before = (await api.allMessages()).length;
    const refused = await send();
    expect([refused.status, refused.error.code]).toEqual([status, code]);
    expect(refused.error.details?.[0]).toMatchObject({ field });
    expect(await api.allMessages()).toHaveLength(before);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded'])('is refused as %s', async (type) => {
    const refused = await sendMail(MAIL, { 'Content-Type': type });
    expect([refused.status, refused.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(refused.error.message).toContain('application/json or message/rfc822');
  });

  it('is refused above the limit of a send', async () => {
    const refused = await sendMail(mailOf(HEAD, 'x'.repeat(4 * 1024 * 1024)));
    expect([refused.status, refused.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });
});
