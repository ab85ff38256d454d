import { describe, expect, it } from 'vitest';
import { hostileBodies, startCompat } from './setup.ts';

const { api, call, source } = await startCompat('sendgrid');
const KEY = { Authorization: `Bearer ${api.keys.transactional}` };
const FROM = { email: 'shop@kunde.example', name: 'Shop' };
const MAIL = {
  personalizations: [{ to: [{ email: 'ada@example.net' }] }],
  from: FROM,
  subject: 'Order 7',
  content: [{ type: 'text/html', value: '<p>Thank you</p>' }],
};

const send = (body: unknown, headers: Record<string, string> = KEY) =>
  call('/v3/mail/send', { headers, body });
const recipientsOf = async (subject: string) =>
  (await api.allMessages({ subject })).map(({ recipient }) => recipient).sort();

describe('a mail', () => {
  it('is accepted with all fields of SendGrid', async () => {
    const { status, text, headers } = await send({
      ...MAIL,
      personalizations: [
        {
          to: [{ email: 'ada@example.net', name: 'Ada "A", Lovelace' }, { email: 'bob@example.net' }],
          cc: [{ email: 'carol@example.net' }],
          bcc: [{ email: 'dave@example.net' }],
          subject: 'Order -number-',
          substitutions: { '-number-': '7a' },
          headers: { 'X-Order': '7' },
          custom_args: { order: '7' },
        },
      ],
      reply_to_list: [{ email: 'help@kunde.example' }, { email: 'shop@kunde.example' }],
      content: [
        { type: 'text/plain', value: 'Thank you for -number-' },
        { type: 'text/html', value: '<p>Thank you for -number-</p>' },
      ],
      attachments: [
        { content: 'aGVsbG8=', filename: 'a.txt', type: 'text/plain', disposition: 'attachment' },
      ],
      categories: ['orders'],
      asm: { group_id: 7 },
      tracking_settings: { click_tracking: { enable: true }, open_tracking: { enable: true } },
    });
    expect([status, text]).toEqual([202, '']);
    const id = headers.get('x-message-id') ?? '';
    const mail = await source(id);
    expect(mail).toContain('Subject: Order 7a');
    expect(mail).toContain('<p>Thank you for 7a</p>');
    expect(mail).toContain('bob@example.net');
    expect(mail).toContain('X-Order: 7');
    expect(mail).not.toContain('dave@example.net');
    expect(await api.message(id)).toMatchObject({ tags: ['orders'], metadata: { order: '7' } });
    expect(await recipientsOf('Order 7a')).toHaveLength(4);
  });

  it('is sent for each personalization, without those of suppressed recipients', async () => {
    await api.post('/web-setup/suppressions', { email: 'gone@example.net' });
    const to = (user: string) => ({
      to: [{ email: `${user}@example.net` }],
      substitutions: { '%name%': user },
    });
    const body = { ...MAIL, subject: 'Several %name%', personalizations: [to('gone'), to('eve'), to('fay')] };
    const headers = { ...KEY, 'Idempotency-Key': 'several' };
    expect((await send(body, headers)).status).toBe(202);
    expect((await send(body, headers)).status).toBe(202);
    expect(await recipientsOf('Several')).toEqual(['eve@example.net', 'fay@example.net']);
    const none = await send({ ...body, personalizations: [to('gone')] });
    expect(none).toMatchObject({ status: 400, json: { errors: [{ message: expect.any(String) }] } });
  });

  it('is refused with all its personalizations if one of them is not valid', async () => {
    const personalizations = [{ to: [{ email: 'gil@example.net' }] }, { to: [{ email: 'nobody' }] }];
    const { status, json } = await send({ ...MAIL, subject: 'Invalid', personalizations });
    expect([status, json]).toEqual([
      400,
      { errors: [expect.objectContaining({ field: 'personalizations[1].to[0].email' })] },
    ]);
    expect(await recipientsOf('Invalid')).toEqual([]);
  });

  it('has the content of a template, and is scheduled', async () => {
    await api.post('/web-setup/templates', {
      name: 'd-1234',
      subject: 'Hello {{name}}',
      html: '<p>{{name}}</p>',
    });
    const { headers, status, text } = await send({
      personalizations: [{ to: [{ email: 'ada@example.net' }], dynamic_template_data: { name: 'Ada' } }],
      from: FROM,
      template_id: 'd-1234',
      send_at: Math.floor(Date.now() / 1000) + 3600,
    });
    expect(status, text).toBe(202);
    const id = headers.get('x-message-id') ?? '';
    expect(await source(id)).toContain('Subject: Hello Ada');
    expect(await api.message(id)).toMatchObject({ status: 'scheduled' });
  });

  it('is only checked in the sandbox', async () => {
    const mail = { ...MAIL, subject: 'Sandbox', mail_settings: { sandbox_mode: { enable: true } } };
    expect((await send(mail)).status).toBe(200);
    expect(await recipientsOf('Sandbox')).toEqual([]);
  });
});

describe('an error', () => {
  it('has the status and the form of SendGrid', async () => {
    const errors = { errors: [expect.objectContaining({ message: expect.any(String) })] };
    for (const [status, body, headers] of [
      [401, MAIL, {}],
      [400, { ...MAIL, content: undefined }, KEY],
      [400, { ...MAIL, personalizations: [] }, KEY],
      [403, { ...MAIL, from: { email: 'a@other.example' } }, KEY],
      [400, { ...MAIL, mail_settings: { bypass_list_management: { enable: true } } }, KEY],
      [400, { ...MAIL, send_at: 1 }, KEY],
    ] as const)
      expect(await send(body, headers)).toMatchObject({ status, json: errors });
  });

  it('limits the work of substitutions', async () => {
    const substitutions = Object.fromEntries(
      Array.from({ length: 50 }, (_, n) => [`${n}a`, 'x'.repeat(1000)]),
    );
    const html = '49a'.repeat(300_000);
    const body = {
      ...MAIL,
      content: [{ type: 'text/html', value: html }],
      personalizations: [{ to: [{ email: 'ada@example.net' }], substitutions }],
    };
    expect(await send(body)).toMatchObject({ status: 400 });
  });

  it('is never that of the server for a body that is not valid', async () => {
    const fields = [
      'attachments',
      'headers',
      'categories',
      'custom_args',
      'send_at',
      'template_id',
      'mail_settings',
    ];
    const [one] = MAIL.personalizations;
    const inside = hostileBodies(one ?? {}, ['cc', 'substitutions', 'dynamic_template_data', 'custom_args']);
    const bodies = [
      ...hostileBodies(MAIL, fields),
      ...inside.map((personalization) => ({ ...MAIL, personalizations: [personalization] })),
    ];
    const answers = await Promise.all(bodies.map((body) => send(body)));
    for (const [index, { status, text }] of answers.entries()) {
      expect(status, `${JSON.stringify(bodies[index]).slice(0, 200)} → ${text}`).toBeLessThan(500);
      if (status > 202) expect(text).toMatch(/^\{"errors":\[/);
    }
  });
});
