import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { errorOf, loadSdks, type Sdks, signingPair } from '../support/provider-sdks.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';

/*
 * The SDKs of other providers, unchanged, send through the daemon: only the base address and the key are ours.
 *
 *   postmark, … ──HTTP──▶ postrider /compat/… ──SMTP──▶ sink
 */
const required = requirePrograms('provider-sdks');

const FROM = 'Shop <shop@kunde.example>';

describe(`SDKs of other providers${required.reason}`, { skip: required.missing }, () => {
  let sdks: Sdks;
  let setup: SendingSetup;
  /** The mail that a user of empfang.example received. */
  let received: (user: string) => Promise<string>;

  beforeAll(async () => {
    sdks = await loadSdks();
    setup = await startSendingSetup({
      'compat.enable': ['postmark', 'resend', 'sendgrid', 'mailgun', 'ses'],
    });
    received = (user) =>
      eventually(`mail for ${user}`, async () => {
        const found = setup.sink.messages.find(({ to }) => to.some((each) => each.startsWith(`${user}@`)));
        return found === undefined ? null : found.raw;
      });
  });
  afterAll(() => setup.stop());

  it('postmark sends, sends a batch and a template, and reads errors', async () => {
    const { api } = setup.daemon;
    const requestHost = `${new URL(setup.daemon.baseUrl).host}/compat/postmark`;
    const client = new sdks.ServerClient(api.keys.transactional, { useHttps: false, requestHost });
    const mail = { From: FROM, Subject: 'Order', HtmlBody: '<p>Thank you</p>' };
    const sent = await client.sendEmail({
      ...mail,
      To: 'pm-1@empfang.example',
      Bcc: 'pm-2@empfang.example',
      Headers: [{ Name: 'X-Order', Value: '7' }],
      Attachments: [{ Name: 'a.txt', Content: 'aGVsbG8=', ContentType: 'text/plain', ContentID: null }],
    });
    expect(sent).toMatchObject({ ErrorCode: 0, Message: 'OK', To: 'pm-1@empfang.example' });
    await setup.waitForStatus(String(sent['MessageID']), 'delivered');
    expect(await received('pm-1')).toContain('X-Order: 7');
    expect(await received('pm-2')).toContain('To: pm-1@empfang.example');
    const batch = await client.sendEmailBatch([
      { ...mail, To: 'pm-3@empfang.example' },
      { ...mail, From: 'a@other.example', To: 'pm-4@empfang.example' },
    ]);
    expect(batch).toMatchObject([{ ErrorCode: 0 }, { ErrorCode: 400 }]);
    await received('pm-3');
    await api.post('/web-setup/templates', {
      name: 'welcome',
      subject: 'Hi {{name}}',
      html: '<p>{{name}}</p>',
    });
    const templated = { From: FROM, TemplateAlias: 'welcome', TemplateModel: { name: 'Ada' } };
    await client.sendEmailWithTemplate({ ...templated, To: 'pm-5@empfang.example' });
    expect(await received('pm-5')).toContain('Subject: Hi Ada');
    const templates = await client.sendEmailBatchWithTemplates([
      { ...templated, To: 'pm-6@empfang.example' },
    ]);
    expect(templates).toMatchObject([{ ErrorCode: 0 }]);

    await api.post('/web-setup/suppressions', { email: 'gone@empfang.example' });
    expect(await errorOf(client.sendEmail({ ...mail, To: 'gone@empfang.example' }))).toMatchObject({
      name: 'InactiveRecipientsError',
      code: 406,
      statusCode: 422,
      recipients: ['gone@empfang.example'],
    });
    expect(await errorOf(client.sendEmail({ ...mail, To: 'nobody' }))).toMatchObject({
      name: 'InvalidEmailRequestError',
      code: 300,
    });
    const stranger = new sdks.ServerClient('wrong', { useHttps: false, requestHost });
    expect(await errorOf(stranger.sendEmail({ ...mail, To: 'pm-7@empfang.example' }))).toMatchObject({
      name: 'InvalidAPIKeyError',
      code: 10,
    });
  });

  it('@sendgrid/mail sends one mail and several, and reads errors', async () => {
    const { api, baseUrl } = setup.daemon;
    const client = new sdks.MailService();
    client.setApiKey(api.keys.transactional);
    client.client.setDefaultRequest('baseUrl', `${baseUrl}/compat/sendgrid/`);
    const mail = { from: FROM, subject: 'Order', html: '<p>Thank you</p>', text: 'Thank you' };
    const [sent] = await client.send({
      ...mail,
      to: 'sg-1@empfang.example',
      bcc: 'sg-2@empfang.example',
      categories: ['orders'],
      customArgs: { order: '7' },
      attachments: [
        { content: 'aGVsbG8=', filename: 'a.txt', type: 'text/plain', disposition: 'attachment' },
      ],
    });
    expect(sent.statusCode).toBe(202);
    const message = await setup.waitForStatus(String(sent.headers['x-message-id']), 'delivered');
    expect(message).toMatchObject({ tags: ['orders'], metadata: { order: '7' } });
    expect(await received('sg-2')).toContain('To: sg-1@empfang.example');
    await client.send({ ...mail, to: ['sg-3@empfang.example', 'sg-4@empfang.example'] }, true);
    expect(await received('sg-3')).not.toContain('sg-4@');
    await received('sg-4');
    const personalizations = [
      { to: 'sg-5@empfang.example', substitutions: { name: 'Ada' } },
      { to: 'sg-6@empfang.example', substitutions: { name: 'Bob' } },
    ];
    await client.send({ ...mail, html: '<p>Dear {{name}}</p>', personalizations });
    expect(await received('sg-6')).toContain('Dear Bob');
    await api.post('/web-setup/templates', { name: 'd-1', subject: 'Hi {{name}}', html: '<p>{{name}}</p>' });
    const dynamicTemplateData = { name: 'Ada' };
    await client.send({ from: FROM, to: 'sg-7@empfang.example', templateId: 'd-1', dynamicTemplateData });
    expect(await received('sg-7')).toContain('Subject: Hi Ada');
    expect(await errorOf(client.send({ ...mail, to: 'nobody' }))).toMatchObject({
      code: 400,
      response: {
        body: { errors: [{ field: 'personalizations[0].to[0].email', message: expect.any(String) }] },
      },
    });
    const stranger = new sdks.MailService();
    stranger.setApiKey('SG.wrong');
    stranger.client.setDefaultRequest('baseUrl', `${baseUrl}/compat/sendgrid/`);
    expect(await errorOf(stranger.send({ ...mail, to: 'sg-8@empfang.example' }))).toMatchObject({
      code: 401,
    });
  });

  it('mailgun.js sends a mail with files and mails with variables, and reads errors', async () => {
    const { api, baseUrl } = setup.daemon;
    const options = { username: 'api', url: `${baseUrl}/compat/mailgun` };
    const client = new sdks.Mailgun(FormData).client({ ...options, key: api.keys.transactional });
    const mail = { from: FROM, subject: 'Order', html: '<p>Thank you</p>' };
    const sent = await client.messages.create('kunde.example', {
      ...mail,
      to: ['mg-1@empfang.example', 'mg-2@empfang.example'],
      'o:tag': ['orders'],
      'h:X-Order': '7',
      attachment: [{ filename: 'a.txt', data: 'hello' }],
    });
    expect(sent).toMatchObject({
      id: expect.stringMatching(/^<msg_.*@kunde\.example>$/),
      message: expect.any(String),
    });
    expect(await received('mg-1')).toContain('filename="a.txt"');
    expect(await received('mg-2')).toContain('X-Order: 7');
    await client.messages.create('kunde.example', {
      ...mail,
      to: ['mg-3@empfang.example', 'mg-4@empfang.example'],
      subject: 'Dear %recipient.name%',
      'recipient-variables': JSON.stringify({
        'mg-3@empfang.example': { name: 'Ada' },
        'mg-4@empfang.example': { name: 'Bob' },
      }),
    });
    expect(await received('mg-4')).toContain('Subject: Dear Bob');
    expect(await errorOf(client.messages.create('kunde.example', { ...mail, to: 'nobody' }))).toMatchObject({
      status: 400,
      details: expect.stringContaining('to[0]: nobody'),
    });
    const stranger = new sdks.Mailgun(FormData).client({ ...options, key: 'wrong' });
    expect(
      await errorOf(stranger.messages.create('kunde.example', { ...mail, to: 'a@b.example' })),
    ).toMatchObject({
      status: 401,
    });
  });

  it('resend sends, schedules and cancels, sends a batch, and reads errors', async () => {
    const { api, baseUrl } = setup.daemon;
    const scopes = ['--scope', 'transactional', '--scope', 'setup'];
    const made = JSON.parse(
      await setup.daemon.cli('key', 'create', '--account', api.accountId, ...scopes, '--json'),
    );
    const baseOf = { baseUrl: `${baseUrl}/compat/resend` };
    const client = new sdks.Resend(String(made.key), baseOf);
    const mail = { from: FROM, subject: 'Order', html: '<p>Thank you</p>' };
    const attachments = [{ filename: 'a.txt', content: Buffer.from('hello') }];
    const first = { ...mail, to: 'rs-1@empfang.example', replyTo: 'help@kunde.example', attachments };
    const sent = await client.emails.send(first, { idempotencyKey: 'one' });
    expect(sent.error).toBeNull();
    expect((await client.emails.send(first, { idempotencyKey: 'one' })).data).toEqual(sent.data);
    expect(await received('rs-1')).toContain('hello');
    await setup.waitForStatus(String(sent.data?.['id']), 'delivered');
    const read = await client.emails.get(String(sent.data?.['id']));
    expect(read.data).toMatchObject({ last_event: 'delivered' });
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const scheduled = await client.emails.send({ ...mail, to: 'rs-2@empfang.example', scheduledAt: later });
    const id = String(scheduled.data?.['id']);
    expect((await client.emails.update({ id, scheduledAt: later })).error).toBeNull();
    expect((await client.emails.cancel(id)).data).toMatchObject({ object: 'email', id });
    const batch = await client.batch.send([
      { ...mail, to: 'rs-3@empfang.example' },
      { ...mail, to: ['rs-4@empfang.example'] },
    ]);
    expect(batch.data).toMatchObject({ data: [{ id: expect.any(String) }, { id: expect.any(String) }] });
    await received('rs-4');
    expect((await client.emails.send({ ...mail, to: 'nobody' })).error).toMatchObject({
      name: 'validation_error',
      statusCode: 422,
    });
    const stranger = await new sdks.Resend('re_wrong', baseOf).emails.send({ ...mail, to: 'a@b.example' });
    expect(stranger.error).toMatchObject({ name: 'invalid_api_key' });
  });

  it('@aws-sdk/client-sesv2 sends mails, MIME, a template and a bulk, and reads errors', async () => {
    const { api, baseUrl } = setup.daemon;
    const region = 'eu-central-1';
    const endpoint = `${baseUrl}/compat/ses`;
    const credentials = await signingPair(setup.daemon);
    const { SESv2Client, SendEmailCommand, SendBulkEmailCommand } = sdks;
    const client = new SESv2Client({ region, endpoint, credentials });
    const mailTo = (user: string, more: object = {}) => ({
      FromEmailAddress: FROM,
      Destination: { ToAddresses: [`${user}@empfang.example`] },
      Content: { Simple: { Subject: { Data: 'Order' }, Body: { Html: { Data: '<p>Thank you</p>' } } } },
      ...more,
    });
    const sent = await client.send(
      new SendEmailCommand(mailTo('ses-1', { EmailTags: [{ Name: 'order', Value: '7' }] })),
    );
    const message = await setup.waitForStatus(String(sent['MessageId']), 'delivered');
    expect(message).toMatchObject({ metadata: { order: '7' } });
    const mime = [
      `From: ${FROM}`,
      'To: ses-2@empfang.example',
      'Subject: Files',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain',
      '',
      'Thank you',
      '--b',
      'Content-Type: text/csv; name=a.csv',
      'Content-Disposition: attachment; filename=a.csv',
      '',
      '1,2',
      '--b--',
      '',
    ].join('\r\n');
    await client.send(new SendEmailCommand({ Content: { Raw: { Data: Buffer.from(mime) } } }));
    expect(await received('ses-2')).toContain('a.csv');
    await api.post('/web-setup/templates', { name: 's-1', subject: 'Hi {{name}}', html: '<p>{{name}}</p>' });
    const Template = { TemplateName: 's-1', TemplateData: '{"name":"Ada"}' };
    await client.send(new SendEmailCommand(mailTo('ses-3', { Content: { Template } })));
    expect(await received('ses-3')).toContain('Subject: Hi Ada');
    const BulkEmailEntries = [
      { Destination: { ToAddresses: ['ses-4@empfang.example'] } },
      { Destination: { ToAddresses: ['nobody'] } },
    ];
    const bulk = await client.send(
      new SendBulkEmailCommand({ FromEmailAddress: FROM, DefaultContent: { Template }, BulkEmailEntries }),
    );
    expect(bulk).toMatchObject({
      BulkEmailEntryResults: [{ Status: 'SUCCESS' }, { Status: 'INVALID_PARAMETER' }],
    });
    await received('ses-4');
    const refused = async (more: object) => errorOf(client.send(new SendEmailCommand(mailTo('ses-5', more))));
    expect(await refused({ FromEmailAddress: 'a@other.example' })).toMatchObject({
      name: 'MessageRejected',
      $metadata: { httpStatusCode: 400 },
    });
    await api.put('/web-setup/domains', { domain: 'pending.example', useCaseId: 'tx-local' });
    expect(await refused({ FromEmailAddress: 'a@pending.example' })).toMatchObject({
      name: 'MailFromDomainNotVerifiedException',
    });
    expect(await refused({ Content: { Template: { TemplateName: 'none' } } })).toMatchObject({
      name: 'NotFoundException',
    });
    const other = async (options: object) =>
      errorOf(
        new SESv2Client({ region, endpoint, credentials, maxAttempts: 1, ...options }).send(
          new SendEmailCommand(mailTo('ses-5')),
        ),
      );
    expect(await other({ credentials: { ...credentials, secretAccessKey: 'wrong' } })).toMatchObject({
      name: 'SignatureDoesNotMatch',
      $metadata: { httpStatusCode: 403 },
    });
    expect(await other({ systemClockOffset: -3_600_000 })).toMatchObject({
      name: 'SignatureDoesNotMatch',
      message: expect.stringContaining('Signature expired'),
    });
    await setup.daemon.cli('key', 'revoke', credentials.accessKeyId);
    expect(await refused({})).toMatchObject({ name: 'UnrecognizedClientException' });
  });
});
