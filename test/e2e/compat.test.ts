import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';

/*
 * The SDKs of other providers, unchanged, send through the daemon: only the base address and the key are ours.
 *
 *   postmark, … ──HTTP──▶ postrider /compat/… ──SMTP──▶ sink
 */
const required = requirePrograms('provider-sdks');

/** What is used of the SDKs, which are not part of the installation: see .ci/tools. */
interface Sdks {
  ServerClient: new (
    token: string,
    options: { useHttps: boolean; requestHost: string },
  ) => {
    sendEmail(message: object): Promise<Record<string, unknown>>;
    sendEmailBatch(messages: object[]): Promise<Record<string, unknown>[]>;
    sendEmailWithTemplate(message: object): Promise<Record<string, unknown>>;
    sendEmailBatchWithTemplates(messages: object[]): Promise<Record<string, unknown>[]>;
  };
}

const FROM = 'Shop <shop@kunde.example>';

/** What a rejected call of an SDK has. */
async function errorOf(call: Promise<unknown>): Promise<Record<string, unknown>> {
  return call.then(
    () => ({ resolved: true }),
    (error: Record<string, unknown>) => error,
  );
}

describe(`SDKs of other providers${required.reason}`, { skip: required.missing }, () => {
  let sdks: Sdks;
  let setup: SendingSetup;
  /** The mail that a user of empfang.example received. */
  let received: (user: string) => Promise<string>;

  beforeAll(async () => {
    sdks = await import(new URL('../../.ci/tools/sdks.mjs', import.meta.url).href);
    setup = await startSendingSetup({ 'compat.enable': ['postmark'] });
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
});
