import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Box } from '../../../src/store/kept-mail.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';

const INBOX = '/web-setup/installation/inbox';

interface Entry {
  number: number;
  box: string;
  subject: string;
  from: string;
  readAt: string | null;
}
interface Mail extends Entry {
  headers: { name: string; value: string }[];
  text: string;
  attachments: { name: string; contentType: string }[];
  isCut: boolean;
}

let daemon: InProcess;
let client: ApiClient;
beforeAll(async () => {
  daemon = await startInProcess();
  client = await daemon.account('Shop');
});
afterAll(() => daemon?.stop());

async function keep(box: Box, raw: string | Buffer): Promise<number> {
  daemon.tables.keptMail.insert({
    box,
    kind: 'unknown',
    recipient: `${box}@mx.example.com`,
    sender: 'bob@example.org',
    remote_address: '192.0.2.1',
    network: '192.0.2.0/24',
    message_seq: null,
    received_at: Date.UTC(2026, 0, 15),
    raw: Buffer.from(raw),
  });
  return (await client.get<{ mails: Entry[] }>(`${INBOX}?limit=1`)).data.mails[0]?.number ?? 0;
}

describe('the inbox', () => {
  it('lists received mail page by page, newest first, with decoded subjects', async () => {
    const first = await keep('postmaster', 'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nbye');
    const second = await keep('abuse', 'From: "Eve" <eve@example.net>\r\nSubject: spam\r\n\r\nstop');
    const page = await client.get<{ mails: Entry[]; count: number; nextKey: string }>(`${INBOX}?limit=1`);
    expect(page.data).toMatchObject({
      mails: [
        { number: second, box: 'abuse', subject: 'spam', from: '"Eve" <eve@example.net>', readAt: null },
      ],
      count: 1,
    });
    const next = await client.get<{ mails: Entry[] }>(`${INBOX}?limit=1&lastKey=${page.data.nextKey}`);
    expect(next.data.mails).toMatchObject([{ number: first, subject: 'Grüße' }]);
    const box = await client.get<{ mails: Entry[] }>(`${INBOX}?box=postmaster`);
    expect(box.data.mails.map(({ number }) => number)).toEqual([first]);
  });

  it('reads the text of a mail without markup, and names its attachments', async () => {
    const raw = [
      'Subject: two',
      'Content-Type: multipart/mixed; boundary=x',
      '',
      '--x',
      'Content-Type: text/html; charset=iso-8859-1',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      '<p>caf=E9</p><script>alert(1)</script>',
      '--x',
      'Content-Type: application/pdf; name="a.pdf"',
      '',
      'PDF',
      '--x--',
      '',
    ].join('\r\n');
    const number = await keep('postmaster', raw);
    const { data } = await client.get<Mail>(`${INBOX}/${number}`);
    expect(data).toMatchObject({
      text: 'café',
      attachments: [{ name: 'a.pdf', contentType: 'application/pdf' }],
      isCut: false,
    });
    expect(data.headers[0]).toEqual({ name: 'subject', value: 'two' });
    const source = await client.get<{ source: string }>(`${INBOX}/${number}/source`);
    expect(Buffer.from(source.data.source, 'base64').toString()).toBe(raw);
  });

  it.each([
    ['parts', `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nhello\r\n'.repeat(5000)}`],
    ['nested parts', nestedParts(3000)],
  ])('returns the source of a mail with too many %s as its text', async (_, content) => {
    const number = await keep('postmaster', `Subject: hostile\r\n${content}`);
    const { data } = await client.get<Mail>(`${INBOX}/${number}`);
    expect(data).toMatchObject({ subject: 'hostile', attachments: [], isCut: false });
    expect(data.text).toMatch(/^Subject: hostile\r\nContent-Type: multipart/);
  });

  it('reads a mail that is only HTML, and the parts of a report', async () => {
    const html = await keep(
      'abuse',
      'Subject: html\r\nContent-Type: text/html\r\n\r\n<p>Please remove me</p>',
    );
    expect((await client.get<Mail>(`${INBOX}/${html}`)).data.text).toBe('Please remove me');
    const report = [
      'Content-Type: multipart/report; report-type=feedback-report; boundary=x',
      '',
      '--x',
      '',
      'A complaint.',
      '--x',
      'Content-Type: message/feedback-report',
      '',
      'Feedback-Type: abuse',
      '--x',
      'Content-Type: text/rfc822-headers',
      '',
      'Subject: News',
      '--x--',
      '',
    ].join('\r\n');
    const number = await keep('abuse', report);
    const { data } = await client.get<Mail>(`${INBOX}/${number}`);
    expect(data.attachments).toEqual([]);
    expect(data.text).toMatch(/^A complaint\.\s+Feedback-Type: abuse\s+Subject: News$/);
  });

  it('reports that only the beginning of a large mail is stored', async () => {
    const number = await keep('bounce', `Subject: large\r\n\r\n${'x'.repeat(300 * 1024)}`);
    const { data } = await client.get<Mail & { size: number }>(`${INBOX}/${number}`);
    expect(data.isCut).toBe(true);
    expect(data.size).toBeGreaterThan(300 * 1024);
    expect(data.text.length).toBeLessThanOrEqual(256 * 1024);
  });

  it('marks mail as read and unread, and lists what is unread', async () => {
    const number = await keep('abuse', 'Subject: read me\r\n\r\nx');
    const marked = await client.call<Entry>('PATCH', `${INBOX}/${number}`, { body: { isRead: true } });
    expect(marked.data.readAt).not.toBeNull();
    const unread = await client.get<{ mails: Entry[] }>(`${INBOX}?unread=true`);
    expect(unread.data.mails.map((each) => each.number)).not.toContain(number);
    expect(unread.data.mails).not.toHaveLength(0);
    const again = await client.call<Entry>('PATCH', `${INBOX}/${number}`, { body: { isRead: false } });
    expect(again.data.readAt).toBeNull();
    const boxed = await client.get<{ mails: Entry[] }>(`${INBOX}?unread=true&box=abuse`);
    expect(boxed.data.mails.map((each) => each.number)).toContain(number);
  });

  it.each(['9999', '9999/source'])('answers 404 for the unknown mail %s', async (path) => {
    const { status, error } = await client.get(`${INBOX}/${path}`);
    expect([status, error.code]).toEqual([404, 'NOT_FOUND']);
    expect((await client.call('PATCH', `${INBOX}/9999`, { body: { isRead: true } })).status).toBe(404);
  });

  it('is for operators only', async () => {
    const headers = { 'X-Api-Key': client.keys.setup };
    const { status, error } = await client.call('GET', INBOX, { headers });
    expect([status, error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });
});

function nestedParts(depth: number): string {
  let text = '';
  for (let n = 0; n < depth; n++) text += `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`;
  return text;
}
