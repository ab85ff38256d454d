import { describe, expect, it } from 'vitest';
import { startCompat, TX_FROM } from './setup.ts';

const { api, call, source } = await startCompat('mailgun');
const basic = (key: string) => `Basic ${Buffer.from(`api:${key}`).toString('base64')}`;
const KEY = { Authorization: basic(api.keys.transactional) };
const PATH = '/v3/kunde.example/messages';
const MAIL = { from: TX_FROM, to: 'ada@example.net', subject: 'Order 7', html: '<p>Thank you</p>' };

type Fields = Record<string, string | string[] | File>;

function formOf(fields: Fields): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    for (const each of [value].flat()) form.append(name, each);
  return form;
}

const send = (fields: Fields, headers: Record<string, string> = KEY) =>
  call(PATH, { headers, raw: formOf(fields) });
const recipientsOf = async (subject: string) =>
  (await api.allMessages({ subject })).map(({ recipient }) => recipient).sort();
const idIn = (json: unknown) => /<(msg_\w+)@/.exec((json as { id: string }).id)?.[1] ?? '';

describe('a message', () => {
  it('is accepted as multipart with all fields of Mailgun', async () => {
    const { status, json, text } = await send({
      ...MAIL,
      to: ['Ada <ada@example.net>', 'bob@example.net'],
      cc: 'carol@example.net',
      bcc: 'dave@example.net',
      text: 'Thank you',
      'h:Reply-To': 'help@kunde.example',
      'h:X-Order': '7',
      'o:tag': ['orders', 'shop'],
      'o:tracking': 'yes',
      'o:tracking-clicks': 'no',
      'o:dkim': 'yes',
      'v:order': '7',
      attachment: new File(['hello'], 'a.txt', { type: 'text/plain' }),
      inline: new File(['image'], 'b.png', { type: 'image/png' }),
    });
    expect(status, text).toBe(200);
    expect(json).toEqual({
      id: expect.stringMatching(/^<msg_\w+@kunde\.example>$/),
      message: 'Queued. Thank you.',
    });
    const mail = await source(idIn(json));
    expect(mail).toContain('X-Order: 7');
    expect(mail).toContain('Reply-To: help@kunde.example');
    expect(mail).toContain('filename="a.txt"');
    expect(mail).toContain('Content-ID: <b.png>');
    expect(mail).toContain(`Message-ID: ${(json as { id: string }).id}`);
    expect(await api.message(idIn(json))).toMatchObject({
      tags: ['orders', 'shop'],
      metadata: { order: '7' },
    });
    expect(await recipientsOf('Order 7')).toHaveLength(4);
  });

  it('is accepted as a form without files', async () => {
    const { status, json } = await call(PATH, {
      headers: KEY,
      raw: new URLSearchParams({ ...MAIL, subject: 'Plain' }),
    });
    expect([status, json]).toMatchObject([200, { message: 'Queued. Thank you.' }]);
    expect(await recipientsOf('Plain')).toEqual(['ada@example.net']);
  });

  it('with recipient-variables is a mail of its own for each recipient', async () => {
    const { status, text } = await send({
      ...MAIL,
      subject: 'Own %recipient.name%',
      to: ['Ada <ada@example.net>, bob@example.net'],
      'recipient-variables': JSON.stringify({
        'ada@example.net': { name: 'Ada' },
        'bob@example.net': { name: 'Bob' },
      }),
    });
    expect(status, text).toBe(200);
    const messages = await api.allMessages({ subject: 'Own' });
    expect(messages.map(({ subject }) => subject).sort()).toEqual(['Own Ada', 'Own Bob']);
    const mail = await source(messages.find(({ subject }) => subject === 'Own Ada')?.messageId ?? '');
    expect(mail).not.toContain('bob@example.net');
    expect(await send({ ...MAIL, cc: 'carol@example.net', 'recipient-variables': '{}' })).toMatchObject({
      status: 400,
    });
  });

  it('has the content of a template, and is scheduled', async () => {
    await api.post('/web-setup/templates', {
      name: 'welcome',
      subject: 'Hello {{name}}',
      html: '<p>{{name}}</p>',
    });
    const at = new Date(Date.now() + 3_600_000);
    const { json, text, status } = await send({
      from: TX_FROM,
      to: 'ada@example.net',
      template: 'welcome',
      't:variables': '{"name":"Ada"}',
      'o:deliverytime': at.toUTCString(),
    });
    expect(status, text).toBe(200);
    expect(await source(idIn(json))).toContain('Subject: Hello Ada');
    expect(await api.message(idIn(json))).toMatchObject({ status: 'scheduled' });
  });
});

describe('an error', () => {
  it('has the status and the form of Mailgun', async () => {
    const error = { message: expect.any(String) };
    expect(await send(MAIL, {})).toMatchObject({ status: 401, json: error });
    expect(await send(MAIL, { Authorization: basic('wrong') })).toMatchObject({ status: 401, json: error });
    for (const fields of [
      { ...MAIL, from: '' },
      { ...MAIL, to: 'nobody' },
      { ...MAIL, 'o:testmode': 'yes' },
      { ...MAIL, 'o:time-zone-localize': '12:00' },
      { ...MAIL, 'o:deliverytime': 'tomorrow' },
      { ...MAIL, 'o:tracking': 'perhaps' },
      { ...MAIL, 'recipient-variables': '[' },
      { ...MAIL, 'recipient-variables': '{"ada@example.net":7}' },
      { ...MAIL, template: 'welcome', 't:variables': '7' },
      { ...MAIL, 'h:From': 'x@y.example' },
      { ...MAIL, subject: new File(['x'], 'x.txt') },
      { ...MAIL, attachment: 'text' },
    ] satisfies Fields[])
      expect(await send(fields), JSON.stringify(fields)).toMatchObject({ status: 400, json: error });
    expect(await send({ ...MAIL, from: 'a@other.example' })).toMatchObject({ status: 403, json: error });
  });

  it('is never that of the server for a body that is not valid', async () => {
    const many = Array.from({ length: 3000 }, (_, n) => `v:${n}=1`).join('&');
    const parts = '--x\r\nContent-Disposition: form-data; name="to"\r\n\r\na\r\n';
    const form = 'application/x-www-form-urlencoded';
    for (const [type, raw] of [
      [form, many],
      [form, '%%%=%ff&from=a&__proto__=1&constructor=2&to=__proto__'],
      [form, ''],
      ['multipart/form-data', 'x'],
      ['multipart/form-data; boundary=x', 'x'],
      ['multipart/form-data; boundary=x', parts],
      ['multipart/form-data; boundary=x', `${parts.repeat(3000)}--x--\r\n`],
      ['multipart/form-data; boundary=x', '--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n'],
      ['application/json', '{}'],
    ] as const) {
      const { status, text } = await call(PATH, { headers: { ...KEY, 'Content-Type': type }, raw });
      expect(status, `${type} ${raw.slice(0, 50)} → ${text}`).toBeLessThan(500);
      expect(status, `${type} ${raw.slice(0, 50)} → ${text}`).toBeGreaterThanOrEqual(400);
      expect(text).toMatch(/^\{"message":/);
    }
  });
});
