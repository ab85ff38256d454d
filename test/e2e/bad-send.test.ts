import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  COMPLIANT,
  expectError,
  mail,
  type RejectionSetup,
  SIMULATED,
  startRejectionSetup,
  VALIDATION,
} from '../support/rejection-setup.ts';

/*
 * Everything that is wrong with a send is answered with the right status, code and field, and leaves no trace:
 * nothing stored, nothing sent.
 *
 *   test ──HTTP, malformed and hostile──▶ postrider ──(never)──▶ sink
 */
let setup: RejectionSetup;

beforeAll(async () => {
  setup = await startRejectionSetup();
});
afterAll(() => setup?.stop());

type Case = [what: string, change: object];
type FieldCase = [field: string, change: object];

const refuses = async (change: object, status: number, code: string, field?: string) =>
  expectError(await setup.api.send(mail(change)), status, code, field);

/** Values that a field may not have. */
const WRONG: Record<string, [what: string, value: unknown][]> = {
  to: [
    ['missing', undefined],
    ['a number', 7],
    ['null', null],
    ['an object', { email: 'ada@empfang.example' }],
    ['a list of numbers', [7]],
    ['empty', ''],
    ['an empty list', []],
    ['no address', 'ada'],
    ['with two @', 'ada@@empfang.example'],
    ['with nothing before the @', '@empfang.example'],
    ['with nothing behind the @', 'ada@'],
    ['with no domain name', 'ada@-x-.example'],
    ['an address of 255 octets', `ada@${'a23456789.'.repeat(25)}d`],
    ['65 characters before the @', `${'a'.repeat(65)}@empfang.example`],
    ['with a bracket left open', 'Ada <ada@empfang.example'],
    ['with a quote left open', '"Ada <ada@empfang.example>'],
    ['a source route', '<@evil.example:ada@empfang.example>'],
    ['51 people', people(51)],
    ['with a line break behind the address', 'ada@empfang.example\r\nBcc: x@y.example'],
    ['with a line break in the name', '"Ada\r\nX-A: b" <ada@empfang.example>'],
    ['with a line break in an entry', ['ada@empfang.example\n']],
    ['with a NUL', 'ada\u0000@empfang.example'],
  ],
  cc: [
    ['no address', 'bob'],
    ['with a line break', 'bob\n@empfang.example'],
  ],
  bcc: [
    ['a number', 7],
    ['with a carriage return', 'bob@empfang.example\r'],
  ],
  from: [
    ['missing', undefined],
    ['a list', ['a@kunde.example']],
    ['two addresses', 'a@kunde.example, b@kunde.example'],
    ['a domain of one label', 'a@example'],
    ['a name alone', 'Kunde'],
    ['with a line break at its end', 'a@kunde.example\r\n'],
    ['with a line break in the name', 'Kunde\r\nX-A: b <a@kunde.example>'],
    ['with a NUL', 'a@kunde.example\u0000'],
  ],
  replyTo: [
    ['no address', 'nobody'],
    ['two addresses', 'a@x.example, b@x.example'],
    ['with a line break', 'a@kunde.example\nX-A: b'],
  ],
  subject: [
    ['missing', undefined],
    ['empty', ''],
    ['a number', 42],
    ['999 characters', 'x'.repeat(999)],
    ['half a character', 'x\ud83d'],
    ['with a header behind it', 'x\r\nBcc: victim@empfang.example'],
    ['with a carriage return', 'a\rb'],
    ['with a NUL', 'a\u0000b'],
  ],
  html: [
    ['missing', undefined],
    ['empty', ''],
    ['a list', [COMPLIANT]],
    ['with a NUL', `${COMPLIANT}\u0000`],
  ],
  text: [
    ['a number', 5],
    ['with a NUL', 'a\u0000b'],
  ],
  headers: [
    ['a list', ['X-A: b']],
    ['51 of them', Object.fromEntries(people(51).map((_, n) => [`X-${n}`, 'x']))],
    ['more than 8 KiB', { 'X-A': 'x'.repeat(8200) }],
  ],
  templateVariables: [
    ['a list', ['a']],
    ['a text', 'a=b'],
    ['40 levels deep', { a: nested(40) }],
  ],
  attachments: [['an object', {}]],
  enableClickTracking: [['a text', 'yes']],
  enableOpenTracking: [['a number', 1]],
};

describe.each(Object.entries(WRONG))('%s', (field, values) => {
  it.each(values)('is refused when it is %s', async (_, value) => {
    await refuses({ [field]: value }, ...VALIDATION, field);
  });
});

describe('recipients together', () => {
  it.each<Case>([
    ['may not be 51 over to, cc and bcc', { to: people(20), cc: people(20, 'c'), bcc: people(11, 'b') }],
    ['need a to where there is a cc', { to: undefined, cc: 'bob@empfang.example' }],
  ])('%s', (_, change) => refuses(change, ...VALIDATION, 'to'));
});

describe('a header', () => {
  it.each(
    'From Sender To Cc Bcc bCC Subject Reply-To Date Message-ID Return-Path Received Received-SPF DKIM-Signature ARC-Seal Authentication-Results MIME-Version Content-Type Content-Transfer-Encoding Feedback-ID X-Postrider-Id CFBL-Address Resent-From'.split(
      ' ',
    ),
  )('%s is not the caller’s', (name) =>
    refuses({ headers: { [name]: 'x' } }, ...VALIDATION, `headers.${name}`),
  );

  it.each<FieldCase>([
    ['headers.X-A:', { 'X-A:': 'x' }],
    ['headers.X A', { 'X A': 'x' }],
    ['headers.X-Ä', { 'X-Ä': 'x' }],
    ['headers.X-A\r\nBcc', { 'X-A\r\nBcc': 'x' }],
    ['headers.x-a', { 'X-A': '1', 'x-a': '2' }],
    ['headers.X-A', { 'X-A': 1 }],
    ['headers.X-A', { 'X-A': 'x\r\nBcc: victim@empfang.example' }],
    ['headers.X-A', { 'X-A': 'x\n' }],
    ['headers.X-A', { 'X-A': 'a\u0000b' }],
    ['headers.List-Unsubscribe', { 'List-Unsubscribe': 'here' }],
  ])('is faulty: %j in %j', (field, headers) => refuses({ headers }, ...VALIDATION, field));

  it('needs a name', () => refuses({ headers: { '': 'x' } }, ...VALIDATION));
});

const MIB = 1024 * 1024;

describe('an attachment', () => {
  it.each<FieldCase>([
    ['name', { name: undefined }],
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(256) }],
    ['name', { name: '../../etc/passwd' }],
    ['name', { name: 'C:\\autoexec.bat' }],
    ['name', { name: 'a\r\nb.txt' }],
    ['name', { name: 'a\u0000b.txt' }],
    ['contentType', { contentType: undefined }],
    ['contentType', { contentType: 'pdf' }],
    ['contentType', { contentType: 'multipart/mixed; boundary=x' }],
    ['contentType', { contentType: 'text/plain\r\nBcc: victim@empfang.example' }],
    ['content', { content: undefined }],
    ['content', { content: 7 }],
    ['content', { content: 'not base64!' }],
    ['content', { content: 'aGVsbG8' }],
    ['content', { content: 'aGVs bG8h' }],
    ['content', { content: 'aGVs\r\nbG8h' }],
    ['content', { content: '_-_-' }],
    ['content', { content: 'data:text/plain;base64,aGVsbG8h' }],
    ['contentId', { contentId: 'a@b\r\nX: y' }],
  ])('is refused for its %s: %j', (field, change) =>
    refuses({ attachments: [file(), file(change)] }, ...VALIDATION, `attachments[1].${field}`),
  );

  it('must be an object', () => refuses({ attachments: [7] }, ...VALIDATION, 'attachments[0]'));

  it('has an id of its own', () =>
    refuses(
      { attachments: [file({ contentId: 'a' }), file({ contentId: 'a' })] },
      ...VALIDATION,
      'attachments[1].contentId',
    ));

  it('may have nine others beside it, not ten', () =>
    refuses(
      { attachments: Array.from({ length: 11 }, () => file()) },
      422,
      'TOO_MANY_ATTACHMENTS',
      'attachments',
    ));

  it.each<Case>([
    ['alone', { attachments: [sized(2 * MIB + 1)] }],
    ['with others', { attachments: [sized(MIB), sized(MIB + 1)] }],
  ])('may not have 2 MB and a byte, %s', (_, change) =>
    refuses(change, 413, 'ATTACHMENTS_TOO_LARGE', 'attachments'),
  );
});

describe('a template', () => {
  it.each<[what: string, html: string, missing: string[]]>([
    ['has neither', '<p>Hello.</p>', ['company_address_html', 'unsubscribe_email_html']],
    ['has no company address', '{{unsubscribe_email_html}}', ['company_address_html']],
    ['has no way to unsubscribe', '{{company_address_html}}', ['unsubscribe_email_html']],
    ['has one escaped', COMPLIANT.replace('{{c', '\\{{c'), ['company_address_html']],
    ['has both in a comment', `<!-- ${COMPLIANT} -->`, ['company_address_html', 'unsubscribe_email_html']],
  ])('needs the compliance variables, and here %s', async (_, html, missing) => {
    const answer = await setup.api.send(mail({ html }));
    expectError(answer, 422, 'COMPLIANCE_TEMPLATE_MISSING', 'html');
    expect(answer.error.details?.map(({ name }) => name)).toEqual(missing);
  });

  it.each<FieldCase>([
    ['subject', { subject: '{{who}}' }],
    ['html', { html: `{{who}}${COMPLIANT}` }],
    ['text', { text: '{{who}}' }],
    ['subject', { subject: '{{a}}', templateVariables: { a: null } }],
    ['subject', { subject: '{{a.b.c}}', templateVariables: { a: { b: 1 } } }],
    ['subject', { subject: '{{__proto__}}' }],
    ['subject', { subject: '{{a.constructor.name}}', templateVariables: { a: {} } }],
  ])('needs a value for every name in %s: %j', (field, change) =>
    refuses(change, 422, 'TEMPLATE_VARIABLE_MISSING', field),
  );

  it.each<[what: string, value: unknown]>([
    ['an object', {}],
    ['a list', [1]],
    ['of two lines', 'x\r\nBcc: victim@empfang.example'],
    ['with a NUL', 'a\u0000b'],
  ])('takes no value in a subject that is %s', (_, value) =>
    refuses({ subject: '{{a}}', templateVariables: { a: value } }, ...VALIDATION, 'templateVariables.a'),
  );

  it('may not grow a subject beyond its limit', () =>
    refuses({ subject: '{{a}}', templateVariables: { a: 'x'.repeat(999) } }, ...VALIDATION, 'subject'));

  it('may not blow a text up', () => {
    const html = `${'{{a}}'.repeat(1000)}${COMPLIANT}`;
    return refuses({ html, templateVariables: { a: 'x'.repeat(100_000) } }, ...VALIDATION);
  });

  it.each(
    'company_address_html unsubscribe_email_html report_abuse_email_html unsubscribe_url report_abuse_url company_address'.split(
      ' ',
    ),
  )('fills %s in itself', (name) =>
    refuses({ templateVariables: { [name]: 'forged' } }, ...VALIDATION, `templateVariables.${name}`),
  );

  it('needs an account that says who it is', async () => {
    const answer = await setup.withoutCompany.send(mail({ from: 'a@niemand.example' }));
    expectError(answer, 422, 'COMPANY_ADDRESS_MISSING');
  });
});

describe('a From domain', () => {
  it.each([
    ['that nobody registered', 'a@fremd.example', 'DOMAIN_NOT_REGISTERED'],
    ['below the registered one', 'a@www.kunde.example', 'DOMAIN_NOT_REGISTERED'],
    ['of another account', 'a@nachbar.example', 'DOMAIN_NOT_REGISTERED'],
    ['that looks like ours', 'a@kund\u0435.example', 'DOMAIN_NOT_REGISTERED'],
    ['that is not verified', 'a@neu.example', 'DOMAIN_NOT_VERIFIED'],
    ['that is for marketing', 'a@werbung.example', 'USE_CASE_MISMATCH'],
  ])('%s may not send', (_, from, code) => refuses({ from }, 403, code, 'from'));
});

describe('an Idempotency-Key', () => {
  it.each([
    ['empty', ''],
    ['of 256 characters', 'k'.repeat(256)],
    ['beyond ASCII', 'schl\u00fcssel'],
    ['with a tab in it', 'a\tb'],
    ['of two quotation marks', '""'],
  ])('%s is refused', async (_, value) => {
    const answer = await setup.api.send(mail(), { 'Idempotency-Key': value });
    expectError(answer, ...VALIDATION, 'Idempotency-Key');
  });
});

describe('after all this', () => {
  it('nothing was stored, nothing was sent, and nothing went wrong inside', () => setup.expectUnchanged());

  it('exactly 2 MB in exactly ten attachments are taken', async () => {
    const attachments = Array.from({ length: 10 }, (_, n) => sized(n === 0 ? 2 * MIB - 9 : 1));
    expect((await setup.api.send(mail({ to: SIMULATED, attachments }))).status).toBe(200);
  });

  it('an unknown field is ignored, but named', async () => {
    const { data } = await setup.api.send(mail({ to: SIMULATED, enableClicktracking: true }));
    expect(data.warnings).toEqual([expect.stringContaining('enableClicktracking')]);
  });
});

function people(count: number, prefix = 'a'): string[] {
  return Array.from({ length: count }, (_, n) => `${prefix}${n}@empfang.example`);
}

function file(change: object = {}): object {
  return { name: 'a.txt', contentType: 'text/plain', content: 'aGVsbG8h', ...change };
}

function sized(bytes: number): object {
  return file({ content: Buffer.alloc(bytes, 'x').toString('base64') });
}

function nested(depth: number): object {
  return depth === 0 ? {} : { a: nested(depth - 1) };
}
