import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  COMPLIANT,
  type ErrorCase,
  expectError,
  expectErrors,
  mail,
  type RejectionSetup,
  SIMULATED,
  startRejectionSetup,
  VALIDATION,
} from '../support/rejection-setup.ts';

/*
 * Invalid sends are answered with the documented status, code and field; nothing is stored or sent.
 *
 *   test ──HTTP, invalid──▶ postrider ──(never)──▶ sink
 */
let setup: RejectionSetup;

beforeAll(async () => {
  setup = await startRejectionSetup();
});
afterAll(() => setup?.stop());

/** A send that differs from a valid one by `change`. */
const rejects = (what: string, change: object, status: number, code: string, field?: string): ErrorCase => [
  what,
  () => setup.api.send(mail(change)),
  [status, code, field],
];

/** A send that is rejected with VALIDATION_ERROR. */
const invalid = (what: string, change: object, field?: string) => rejects(what, change, ...VALIDATION, field);

/** Invalid values by field. */
const INVALID: Record<string, [what: string, value: unknown][]> = {
  to: [
    ['missing', undefined],
    ['a number', 7],
    ['null', null],
    ['an object', { email: 'ada@empfang.example' }],
    ['an array of numbers', [7]],
    ['empty', ''],
    ['an empty array', []],
    ['not an address', 'ada'],
    ['with two @', 'ada@@empfang.example'],
    ['without a local part', '@empfang.example'],
    ['without a domain', 'ada@'],
    ['with an invalid domain', 'ada@-x-.example'],
    ['an address of 255 bytes', `ada@${'a23456789.'.repeat(25)}d`],
    ['with a local part of 65 bytes', `${'a'.repeat(65)}@empfang.example`],
    ['with an unclosed bracket', 'Ada <ada@empfang.example'],
    ['with an unclosed quote', '"Ada <ada@empfang.example>'],
    ['a source route', '<@evil.example:ada@empfang.example>'],
    ['51 recipients', people(51)],
    ['with a line break after the address', 'ada@empfang.example\r\nBcc: x@y.example'],
    ['with a line break in the name', '"Ada\r\nX-A: b" <ada@empfang.example>'],
    ['with a NUL', 'ada\u0000@empfang.example'],
  ],
  cc: [
    ['not an address', 'bob'],
    ['with a line break', 'bob\n@empfang.example'],
  ],
  bcc: [
    ['a number', 7],
    ['with a carriage return', 'bob@empfang.example\r'],
  ],
  from: [
    ['missing', undefined],
    ['an array', ['a@kunde.example']],
    ['two addresses', 'a@kunde.example, b@kunde.example'],
    ['a domain of one label', 'a@example'],
    ['only a display name', 'Kunde'],
    ['with a line break at its end', 'a@kunde.example\r\n'],
    ['with a line break in the name', 'Kunde\r\nX-A: b <a@kunde.example>'],
    ['with a NUL', 'a@kunde.example\u0000'],
  ],
  replyTo: [
    ['not an address', 'nobody'],
    ['two addresses', 'a@x.example, b@x.example'],
    ['with a line break', 'a@kunde.example\nX-A: b'],
  ],
  subject: [
    ['missing', undefined],
    ['empty', ''],
    ['a number', 42],
    ['999 characters', 'x'.repeat(999)],
    ['half a surrogate pair', 'x\ud83d'],
    ['with a header field after it', 'x\r\nBcc: victim@empfang.example'],
    ['with a carriage return', 'a\rb'],
    ['with a NUL', 'a\u0000b'],
  ],
  html: [
    ['missing', undefined],
    ['empty', ''],
    ['an array', [COMPLIANT]],
    ['with a NUL', `${COMPLIANT}\u0000`],
  ],
  text: [
    ['a number', 5],
    ['with a NUL', 'a\u0000b'],
  ],
  headers: [
    ['an array', ['X-A: b']],
    ['51 of them', Object.fromEntries(people(51).map((_, n) => [`X-${n}`, 'x']))],
    ['more than 8 KiB', { 'X-A': 'x'.repeat(8200) }],
  ],
  templateVariables: [
    ['an array', ['a']],
    ['a string', 'a=b'],
    ['40 levels deep', { a: nested(40) }],
  ],
  attachments: [['an object', {}]],
  enableClickTracking: [['a string', 'yes']],
  enableOpenTracking: [['a number', 1]],
};

it('a field is rejected with an invalid value', () =>
  expectErrors(
    Object.entries(INVALID).flatMap(([field, values]) =>
      values.map(([what, value]) => invalid(`${field}: ${what}`, { [field]: value }, field)),
    ),
  ));

it('an invalid entry of to is rejected by its position', () =>
  expectErrors([
    invalid('a line break', { to: ['ada@empfang.example', 'bob@empfang.example\n'] }, 'to[1]'),
    invalid('not an address', { to: ['ada', 'bob@empfang.example'] }, 'to[0]'),
  ]));

it('to, cc and bcc are limited to 50 recipients together, and to is required', () =>
  expectErrors([
    invalid('51 recipients', { to: people(20), cc: people(31, 'c') }, 'to'),
    invalid('cc without to', { to: undefined, cc: 'bob@empfang.example' }, 'to'),
  ]));

describe('a header field', () => {
  const RESERVED =
    'From Sender To Cc Bcc bCC Subject Reply-To Date Message-ID Return-Path Received Received-SPF DKIM-Signature ARC-Seal Authentication-Results MIME-Version Content-Type Content-Transfer-Encoding Feedback-ID X-Postrider-Id CFBL-Address Resent-From'.split(
      ' ',
    );
  it('is rejected when the platform sets it', () =>
    expectErrors(RESERVED.map((name) => invalid(name, { headers: { [name]: 'x' } }, `headers.${name}`))));

  const FAULTY: [field: string, headers: object][] = [
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
    ['headers.List-Unsubscribe', { 'List-Unsubscribe': '<https://bücher.example/u>' }],
    ['headers.List-Unsubscribe', { 'List-Unsubscribe': `<https://example.com/${'u'.repeat(900)}>` }],
  ];
  it('is rejected with an invalid name or value', () =>
    expectErrors([
      ...FAULTY.map(([field, headers]) => invalid(JSON.stringify(headers), { headers }, field)),
      invalid('an empty name', { headers: { '': 'x' } }),
    ]));
});

const MIB = 1024 * 1024;
type FieldCase = [field: string, change: object];

describe('an attachment', () => {
  const FAULTY: FieldCase[] = [
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
    ['content', { content: 'aGVs bG8h' }],
    ['content', { content: 'aGVs\r\nbG8h' }],
    ['content', { content: 'data:text/plain;base64,aGVsbG8h' }],
    ['contentId', { contentId: 'a@b\r\nX: y' }],
  ];
  it('is rejected with an invalid field', () =>
    expectErrors(
      FAULTY.map(([field, change]) => {
        const attachments = [file(), file(change)];
        return invalid(`${field} of ${JSON.stringify(change)}`, { attachments }, `attachments[1].${field}`);
      }),
    ));

  it('must be an object with a unique content id', () => {
    const duplicates = [file({ contentId: 'a' }), file({ contentId: 'a' })];
    return expectErrors([
      invalid('a number', { attachments: [7] }, 'attachments[0]'),
      invalid('a duplicate id', { attachments: duplicates }, 'attachments[1].contentId'),
    ]);
  });

  it('is limited to ten per message and 2 MB in total', () => {
    const eleven = Array.from({ length: 11 }, () => file());
    const tooLarge = (what: string, attachments: object[]) =>
      rejects(what, { attachments }, 413, 'ATTACHMENTS_TOO_LARGE', 'attachments');
    return expectErrors([
      rejects('eleven', { attachments: eleven }, 422, 'TOO_MANY_ATTACHMENTS', 'attachments'),
      tooLarge('one of 2 MB and a byte', [sized(2 * MIB + 1)]),
      tooLarge('two of 2 MB and a byte', [sized(MIB), sized(MIB + 1)]),
    ]);
  });
});

describe('a template', () => {
  it.each<[what: string, html: string, missing: string[]]>([
    ['has neither', '<p>Hello.</p>', ['company_address_html', 'unsubscribe_email_html']],
    ['has no company address', '{{unsubscribe_email_html}}', ['company_address_html']],
    ['has no unsubscribe link', '{{company_address_html}}', ['unsubscribe_email_html']],
    ['has one escaped', COMPLIANT.replace('{{c', '\\{{c'), ['company_address_html']],
    ['has both in a comment', `<!-- ${COMPLIANT} -->`, ['company_address_html', 'unsubscribe_email_html']],
  ])('is rejected without the compliance variables: it %s', async (_, html, missing) => {
    const response = await setup.api.send(mail({ html }));
    await expectError(response, 422, 'COMPLIANCE_TEMPLATE_MISSING', 'html');
    expect(response.error.details?.map(({ name }) => name)).toEqual(missing);
  });

  const UNDEFINED: FieldCase[] = [
    ['subject', { subject: '{{who}}' }],
    ['html', { html: `{{who}}${COMPLIANT}` }],
    ['text', { text: '{{who}}' }],
    ['subject', { subject: '{{a}}', templateVariables: { a: null } }],
    ['subject', { subject: '{{a.b.c}}', templateVariables: { a: { b: 1 } } }],
    ['subject', { subject: '{{__proto__}}' }],
    ['subject', { subject: '{{a.constructor.name}}', templateVariables: { a: {} } }],
  ];
  it('is rejected when a variable has no value', () =>
    expectErrors(
      UNDEFINED.map(([field, change]) =>
        rejects(JSON.stringify(change), change, 422, 'TEMPLATE_VARIABLE_MISSING', field),
      ),
    ));

  const VALUES: [what: string, value: unknown][] = [
    ['an object', {}],
    ['an array', [1]],
    ['of two lines', 'x\r\nBcc: victim@empfang.example'],
    ['with a NUL', 'a\u0000b'],
  ];
  it('is rejected when a variable is invalid in a subject', () =>
    expectErrors([
      ...VALUES.map(([what, value]) =>
        invalid(what, { subject: '{{a}}', templateVariables: { a: value } }, 'templateVariables.a'),
      ),
      invalid('too long', { subject: '{{a}}', templateVariables: { a: 'x'.repeat(999) } }, 'subject'),
    ]));

  it('is rejected when its rendered size exceeds the limit', () => {
    const html = `${'{{a}}'.repeat(1000)}${COMPLIANT}`;
    return expectErrors([invalid('100 MB', { html, templateVariables: { a: 'x'.repeat(100_000) } })]);
  });

  const RESERVED =
    'company_address_html unsubscribe_email_html report_abuse_email_html unsubscribe_url report_abuse_url company_address'.split(
      ' ',
    );
  it('is rejected when the caller sets a reserved variable', () =>
    expectErrors(
      RESERVED.map((name) =>
        invalid(name, { templateVariables: { [name]: 'forged' } }, `templateVariables.${name}`),
      ),
    ));

  it('is rejected for an account without a company address', async () => {
    const response = await setup.withoutCompany.send(mail({ from: 'a@niemand.example' }));
    await expectError(response, 422, 'COMPANY_ADDRESS_MISSING');
  });
});

it('a From domain is rejected unless it is a verified transactional domain of the account', () => {
  const from = (what: string, address: string, code: string) =>
    rejects(what, { from: address }, 403, code, 'from');
  return expectErrors([
    from('not registered', 'a@fremd.example', 'DOMAIN_NOT_REGISTERED'),
    from('a subdomain', 'a@www.kunde.example', 'DOMAIN_NOT_REGISTERED'),
    from('of another account', 'a@nachbar.example', 'DOMAIN_NOT_REGISTERED'),
    from('a homograph', 'a@kund\u0435.example', 'DOMAIN_NOT_REGISTERED'),
    from('not verified', 'a@neu.example', 'DOMAIN_NOT_VERIFIED'),
    from('for marketing', 'a@werbung.example', 'USE_CASE_MISMATCH'),
  ]);
});

it('an invalid Idempotency-Key is rejected', () => {
  const KEYS: [what: string, value: string][] = [
    ['empty', ''],
    ['256 characters', 'k'.repeat(256)],
    ['not ASCII', 'schl\u00fcssel'],
    ['with a tab', 'a\tb'],
    ['two quotation marks', '""'],
  ];
  return expectErrors(
    KEYS.map(([what, value]) => [
      what,
      () => setup.api.send(mail(), { 'Idempotency-Key': value }),
      [...VALIDATION, 'Idempotency-Key'],
    ]),
  );
});

describe('after all invalid requests', () => {
  it('nothing was stored or sent, and no internal error was logged', () => setup.expectUnchanged());

  it('ten attachments of exactly 2 MB are accepted', async () => {
    const attachments = Array.from({ length: 10 }, (_, n) => sized(n === 0 ? 2 * MIB - 9 : 1));
    expect((await setup.api.send(mail({ to: SIMULATED, attachments }))).status).toBe(200);
  });

  it('an unknown field is ignored with a warning', async () => {
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
