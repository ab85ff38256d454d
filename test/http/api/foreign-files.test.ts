import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { sample } from '../../support/samples.ts';

/** Files as other programs and services write them. */
let daemon: InProcess;
let api: ApiClient;
beforeAll(async () => {
  daemon = await startInProcess();
  api = await daemon.account('A');
});
afterAll(() => daemon.stop());

interface Result {
  rows: number;
  created: number;
  rejected: number;
  format: string;
  rejectedRows: { line: number; reason: string }[];
  warnings?: string[];
  import: { importId: string; status: string };
  suppressions: { email: string; reason: string; stream: string; createdAt: string }[];
}
const upload = (path: string, rawBody: Buffer | string, type = 'text/csv') =>
  api.call<Result>('POST', `/web-setup/${path}`, { rawBody, headers: { 'Content-Type': type } });
const utf16le = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');

const CHARSETS: [charset: string, encoded: (text: string) => Buffer][] = [
  ['utf-16le', (text) => Buffer.from(text, 'utf16le')],
  ['"UTF-16BE"', (text) => Buffer.from(text, 'utf16le').swap16()],
  ['utf-16', (text) => Buffer.from(text, 'utf16le')],
];

describe('contacts', () => {
  let person = 0;
  const rows = (separator = ',', end = '\n') => {
    person++;
    return `a${person}@dest.test${separator}Änn${end}b${person}@dest.test${separator}Bob${end}`;
  };
  it.each<[string, () => Buffer | string]>([
    ['the sample with CR', () => sample('cr.csv')],
    ['CR line ends', () => `email,firstName\r${rows(',', '\r')}`],
    [
      'a quoted field with CR line ends',
      () => `email,firstName\r"x${++person}@dest.test","A ""B"""\ry${person}@dest.test,B`,
    ],
    ['sep=;', () => `sep=;\r\nemail;firstName\r\n${rows(';')}`],
    ['sep=; in quotes', () => `"sep=;"\nemail;firstName\n${rows(';')}`],
    ['sep=|', () => `sep=|\nemail|firstName\n${rows('|')}`],
    ['UTF-16LE', () => utf16le(`email,firstName\r\n${rows()}`)],
    ['UTF-16LE with tabs and CR', () => utf16le(`email\tfirstName\r${rows('\t', '\r')}`)],
    ['UTF-16BE', () => utf16le(`email;firstName\n${rows(';')}`).swap16()],
    ['a UTF-8 mark and sep=', () => `\ufeffsep=;\nemail;firstName\n${rows(';')}`],
  ])('%s', async (_, file) => {
    const bytes = file();
    expect((await upload('contacts/import?dryRun=true', bytes)).data).toMatchObject({ rows: 2, created: 2 });
    const { status, data } = await upload('contacts/import?background=true', bytes);
    expect(status).toBe(202);
    const path = `/web-setup/contacts/imports/${data.import.importId}`;
    const ended = async () => (await api.get<Result>(path)).data.import;
    await expect.poll(async () => (await ended()).status).toBe('completed');
    expect(await ended()).toMatchObject({ rows: 2, created: 2, rejected: 0 });
  });

  it.each([
    'Email Address',
    'E-Mail',
    'e_mail',
    'mail',
    'Mail',
    'E-Mail-Adresse',
    'Adresse e-mail',
    'Adresse électronique',
    'Courriel',
    'Correo electrónico',
    'Indirizzo e-mail',
    'Endereço de e-mail',
    'E-mailadres',
    'Adres e-mail',
    'E-postadress',
    'E-posta',
    'Электронная почта',
    '电子邮箱',
    'メールアドレス',
    '이메일',
    'Email ID',
    'subscriber_email',
  ])('the header %s', async (name) => {
    const { data } = await upload('contacts/import?dryRun=true', `${name},firstName\nc@dest.test,Ann\n`);
    expect(data).toMatchObject({ rows: 1, created: 1 });
    expect(data.warnings).toBeUndefined();
  });

  it.each(CHARSETS)(
    'UTF-16 by the charset %s, with and without a byte order mark',
    async (charset, encoded) => {
      for (const mark of ['', '\ufeff']) {
        const file = encoded(`${mark}email,firstName\r\n${rows()}`);
        const type = `text/csv; charset=${charset}`;
        expect((await upload('contacts/import?dryRun=true', file, type)).data).toMatchObject({ created: 2 });
        const { data } = await upload('contacts/import?background=true', file, type);
        const ended = async () =>
          (await api.get<Result>(`/web-setup/contacts/imports/${data.import.importId}`)).data.import;
        await expect.poll(async () => (await ended()).status).toBe('completed');
        expect(await ended()).toMatchObject({ rows: 2, created: 2, rejected: 0 });
      }
      const { data } = await api.get<{ contacts: { firstName: string }[] }>(
        `/web-setup/contacts?search=a${person}@dest.test`,
      );
      expect(data.contacts).toMatchObject([{ firstName: 'Änn' }]);
    },
  );

  it('prefers the column email to its other names', async () => {
    const { data } = await upload('contacts/import?dryRun=true', 'mail,email\nx,c@dest.test\n');
    expect(data).toMatchObject({ created: 1, warnings: ['unknown column "mail" was ignored'] });
  });

  it('names the ignored columns of an import in the background', async () => {
    const { data } = await upload('contacts/import?background=true', 'email,shoe size\nz@dest.test,5\n');
    expect(data.warnings).toEqual(['unknown column "shoe size" was ignored']);
  });
});

const EXPORTS: [name: string, text: string, format: string, reason: string][] = [
  [
    'SendGrid bounces',
    'status,reason,email,created\n5.1.1,"550 gone",s1@dest.test,1672653600\n',
    'sendgrid',
    'hard_bounce',
  ],
  ['SendGrid spam reports', 'ip,email,created\n1.2.3.4,s2@dest.test,1672653600\n', 'sendgrid', 'complaint'],
  ['SendGrid unsubscribes', 'email,created\ns3@dest.test,1672653600\n', 'sendgrid', 'unsubscribe'],
  [
    'SendGrid invalid emails',
    'reason,email,created\nbad,s4@dest.test,1672653600\n',
    'sendgrid',
    'hard_bounce',
  ],
  [
    'Mailgun bounces',
    'address,code,error,created_at\nm1@dest.test,550,gone,"Mon, 02 Jan 2023 10:00:00 GMT"\n',
    'mailgun',
    'hard_bounce',
  ],
  [
    'Mailgun complaints',
    'address,created_at\nm2@dest.test,2023-01-02 10:00:00 UTC\n',
    'mailgun',
    'complaint',
  ],
  [
    'Mailgun unsubscribes',
    'address,tags,created_at\nm3@dest.test,*,2023-01-02T10:00:00Z\n',
    'mailgun',
    'unsubscribe',
  ],
  [
    'Postmark',
    'EmailAddress,SuppressionReason,Origin,CreatedAt\np1@dest.test,SpamComplaint,Recipient,2023-01-02T05:00:00-05:00\n',
    'postmark',
    'complaint',
  ],
  [
    'SES',
    'EmailAddress,Reason,LastUpdateTime\ne1@dest.test,BOUNCE,2023-01-02T10:00:00Z\n',
    'ses',
    'hard_bounce',
  ],
];

describe('an export of suppressions', () => {
  it.each(EXPORTS)('%s is not imported as contacts, but as suppressions', async (_, text, format, reason) => {
    for (const background of ['false', 'true']) {
      const { status, error } = await upload(`contacts/import?background=${background}`, text);
      expect([status, error.code]).toEqual([400, 'SUPPRESSION_FILE']);
      expect(error.message).toContain('suppressions import');
    }
    const { status, data } = await upload('suppressions/import', text);
    expect([status, data]).toMatchObject([200, { format, rows: 1, created: 1, rejected: 0 }]);
    const { suppressions } = (await api.get<Result>('/web-setup/suppressions?limit=1')).data;
    expect(suppressions).toMatchObject([
      { reason, stream: reason === 'unsubscribe' ? 'mk' : 'all', createdAt: '2023-01-02T10:00:00.000Z' },
    ]);
    expect((await upload('suppressions/import', text)).data).toMatchObject({ created: 0, unchanged: 1 });
  });

  it.each(CHARSETS)('can be UTF-16 by the charset %s', async (charset, encoded) => {
    const person = charset.replaceAll('"', '').toLowerCase();
    const file = encoded(`address,tags,created_at\n${person}@dest.test,*,2023-01-02T10:00:00Z\n`);
    const { data } = await upload('suppressions/import', file, `text/csv;charset=${charset}`);
    expect(data).toMatchObject({ format: 'mailgun', rows: 1, created: 1 });
  });

  it('of the sample is refused', async () => {
    const { error } = await upload('contacts/import', sample('sendgrid-bounces.csv'));
    expect(error.code).toBe('SUPPRESSION_FILE');
  });

  it('can be a plain list, with rejected rows', async () => {
    const { data } = await upload('suppressions/import', 'one@dest.test\nnot an address\ntwo@dest.test\n');
    expect(data).toMatchObject({
      format: 'plain',
      rows: 3,
      created: 2,
      rejected: 1,
      rejectedRows: [{ line: 2 }],
    });
  });

  it('rejects temporary failures', async () => {
    const { data } = await upload(
      'suppressions/import',
      'status,reason,email,created\n4.2.2,full,t@dest.test,1672653600\n',
    );
    expect(data).toMatchObject({ created: 0, rejected: 1 });
  });
});
