import { describe, expect, it } from 'vitest';
import { isRefusal, REFUSALS, type RefusalCode, refuse } from '../../../src/core/refusal.ts';
import { authReplyTo, replyTo } from '../../../src/smtp/submission/replies.ts';
import { requestedStream, submissionRequest } from '../../../src/smtp/submission/request.ts';
import type { SubmittedMail } from '../../../src/smtp/submission/submitted-mail.ts';

const box = (address: string, name = '') => ({ name, address });

const MAIL: SubmittedMail = {
  from: [box('shop@example.com', 'The Shop')],
  to: [box('ada@example.net', 'Ada, Countess'), box('bob@example.net')],
  cc: [box('eve@example.net')],
  bcc: [],
  replyTo: [box('help@example.com')],
  subject: 'Hello',
  html: '<p>Hello</p>',
  text: 'Hello',
  attachments: [],
  alternatives: [],
  messageId: null,
  headers: [['X-Order', '1']],
  controls: [],
};

function request(changes: Partial<SubmittedMail>, envelope: string[], useCase: 'tx' | 'mk' = 'tx') {
  const made = submissionRequest({ ...MAIL, ...changes }, envelope, useCase);
  if (isRefusal(made)) throw new Error(`${made.code} ${made.message}`);
  return made;
}

function fault(changes: Partial<SubmittedMail>, useCase: 'tx' | 'mk' = 'tx'): string {
  const made = submissionRequest({ ...MAIL, ...changes }, ['ada@example.net'], useCase);
  return isRefusal(made) ? `${made.code} ${made.message}` : '';
}

describe('a submitted mail as a request', () => {
  it('is the request of the same mail over HTTP', () => {
    const all = ['ada@example.net', 'bob@example.net', 'eve@example.net'];
    expect(request({}, all)).toEqual({
      idempotencyKey: null,
      literalBraces: true,
      maxRecipients: 100,
      body: {
        from: 'The Shop <shop@example.com>',
        to: ['"Ada, Countess" <ada@example.net>', 'bob@example.net'],
        cc: ['eve@example.net'],
        replyTo: ['help@example.com'],
        subject: 'Hello',
        html: '<p>Hello</p>',
        text: 'Hello',
        headers: { 'X-Order': '1' },
        attachments: [],
      },
    });
  });

  it.each<[string, string[], 'tx' | 'mk', object]>([
    [
      'a recipient in no field is a blind copy',
      ['ada@example.net', 'secret@example.net'],
      'tx',
      { to: ['"Ada, Countess" <ada@example.net>'], bcc: ['secret@example.net'] },
    ],
    ['all recipients can be blind copies', ['secret@example.net'], 'tx', { bcc: ['secret@example.net'] }],
    [
      'recipients of Cc become To when those of To are in another transaction',
      ['EVE@example.net'],
      'tx',
      { to: ['EVE@example.net'] },
    ],
    [
      'marketing mail is addressed to each recipient',
      ['ada@example.net', 'eve@example.net', 'other@example.net'],
      'mk',
      { to: ['"Ada, Countess" <ada@example.net>', 'eve@example.net', 'other@example.net'] },
    ],
  ])('%s', (_, envelope, useCase, roles) => {
    const { to, cc, bcc } = request({}, envelope, useCase).body;
    expect(JSON.parse(JSON.stringify({ to, cc, bcc }))).toEqual(roles);
  });

  it.each<[string, Partial<SubmittedMail>, string[], 'tx' | 'mk', object | undefined]>([
    ['all are recipients', {}, ['ada@example.net', 'bob@example.net', 'eve@example.net'], 'tx', undefined],
    [
      'others are named, too',
      {},
      ['bob@example.net'],
      'tx',
      { to: [box('ada@example.net', 'Ada, Countess'), box('bob@example.net')], cc: [box('eve@example.net')] },
    ],
    [
      'the address of a list is named',
      { to: [box('list@example.com')], cc: [] },
      ['bob@example.net'],
      'tx',
      { to: [box('list@example.com')], cc: [] },
    ],
    [
      'only Cc is given',
      { to: [], cc: [box('eve@example.net')] },
      ['eve@example.net'],
      'tx',
      { to: [], cc: [box('eve@example.net')] },
    ],
    [
      'an address is not valid',
      { to: [box('bob@example.net'), box('no address', 'X')], cc: [] },
      ['bob@example.net'],
      'tx',
      { to: [box('bob@example.net')], cc: [] },
    ],
    ['it is marketing mail', {}, ['bob@example.net'], 'mk', undefined],
  ])('names in To and Cc those that the author named: %s', (_, changes, envelope, useCase, displayed) => {
    expect(request(changes, envelope, useCase).body.displayed).toEqual(displayed);
  });

  it('has an empty subject and an empty line as text for a mail without them', () => {
    const { body } = request({ subject: '', html: null, text: '' }, ['ada@example.net']);
    expect([body.subject, body.text, 'html' in body]).toEqual(['', '\n', false]);
  });

  it('finds a recipient by either form of its domain', () => {
    const { to, bcc } = request({ to: [box('a@xn--bcher-kva.example', 'A')] }, ['a@bücher.example']).body;
    expect([to, bcc]).toEqual([['A <a@bücher.example>'], undefined]);
  });

  it('has no HTML for a text mail', () => {
    const { body } = request({ html: null, text: 'Hi <you>\n{{company_address}}' }, ['ada@example.net']);
    expect(body.text).toBe('Hi <you>\n{{company_address}}');
    expect(body).not.toHaveProperty('html');
  });

  it.each<[string, string | null, boolean]>([
    ['of the From domain', '1@example.com', true],
    ['of a host below it, in capitals', '1@Mail.EXAMPLE.com', true],
    ['of another domain', '1@example.net', false],
    ['of a domain with the same ending', '1@badexample.com', false],
    ['of a name that is not public', '1@localhost', false],
    ['that is absent', null, false],
  ])('keeps a Message-ID %s: %s', (_, messageId, kept) => {
    const { body } = request({ messageId }, ['ada@example.net']);
    expect(body.messageId).toBe(kept ? messageId : undefined);
  });

  it('keeps a Message-ID of the organization to which the From domain belongs', () => {
    const ids = (messageId: string, address: string) =>
      request({ messageId, from: [box(address)] }, ['ada@example.net']).body.messageId;
    expect(ids('1@shop.example.co.uk', 'a@news.example.co.uk')).toBe('1@shop.example.co.uk');
    expect(ids('1@other.co.uk', 'a@news.example.co.uk')).toBeUndefined();
    // A private suffix of the Public Suffix List: its customers are different organizations.
    expect(ids('1@one.github.io', 'a@two.github.io')).toBeUndefined();
  });

  it('keeps further alternatives of the text', () => {
    const alternatives = [
      { position: 'after-html', contentType: 'text/calendar; charset=utf-8', content: 'eA==' } as const,
    ];
    expect(request({ alternatives }, ['ada@example.net']).body.alternatives).toEqual(alternatives);
  });

  it('marks it as essential', () => {
    const essential = (value: string) =>
      request({ controls: [['essential', value]] }, ['ada@example.net']).body;
    expect(essential('Yes').essential).toBe(true);
    expect(essential('no').essential).toBeUndefined();
    expect(fault({ controls: [['essential', 'maybe']] })).toMatch(/X-Postrider-Essential: must be/);
    expect(fault({ controls: [['essential', 'yes']] }, 'mk')).toMatch(/transactional mail only/);
  });

  it('keeps several reply addresses', () => {
    const replyAddresses = [box('a@example.com'), box('b@example.com')];
    expect(request({ replyTo: replyAddresses }, ['ada@example.net']).body.replyTo).toEqual([
      'a@example.com',
      'b@example.com',
    ]);
  });

  it('reads tags and metadata', () => {
    const controls: [string, string][] = [
      ['tag', 'one, two,'],
      ['tag', 'three'],
      ['metadata-order-id', '10042'],
    ];
    const { body } = request({ controls }, ['ada@example.net']);
    expect([body.tags, body.metadata]).toEqual([['one', 'two', 'three'], { 'order-id': '10042' }]);
    expect(fault({ controls: [['metadata-', 'x']] })).toMatch(/X-Postrider-metadata-: is not/);
  });

  it('applies its control fields', () => {
    const controls: [string, string][] = [
      ['campaign', 'campaign_1_x'],
      ['group', 'sgroup_1_x'],
      ['idempotency-key', '"key-1"'],
      ['track', 'Clicks, opens'],
    ];
    const made = request({ controls }, ['ada@example.net'], 'mk');
    expect(made.idempotencyKey).toBe('key-1');
    expect(made.body).toMatchObject({
      campaignId: 'campaign_1_x',
      subscriptionGroupId: 'sgroup_1_x',
      enableClickTracking: true,
      enableOpenTracking: true,
    });
    const track = (value: string) => request({ controls: [['track', value]] }, ['ada@example.net']).body;
    expect(track('opens')).toMatchObject({ enableClickTracking: false, enableOpenTracking: true });
    expect(track('none')).toMatchObject({ enableClickTracking: false, enableOpenTracking: false });
    expect(request({}, ['ada@example.net']).body.enableOpenTracking).toBeUndefined();
  });

  it.each<[string, Partial<SubmittedMail>, 'tx' | 'mk', RegExp]>([
    ['no From', { from: [] }, 'tx', /From: is required/],
    ['two From', { from: [box('a@example.com'), box('b@example.com')] }, 'tx', /From: must have one/],
    [
      'a campaign on transactional mail',
      { controls: [['campaign', 'x']] },
      'tx',
      /X-Postrider-campaign.*marketing/,
    ],
    ['an unknown control field', { controls: [['id', 'x']] }, 'tx', /X-Postrider-id/],
    ['an unknown kind of tracking', { controls: [['track', 'always']] }, 'tx', /X-Postrider-Track/],
    ['an empty idempotency key', { controls: [['idempotency-key', '']] }, 'tx', /Idempotency-Key/],
    [
      'attachments on marketing mail',
      { attachments: [{ name: 'a', contentType: 'text/plain', content: '' }] },
      'mk',
      /attachments: are for transactional/,
    ],
  ])('refuses %s', (_, changes, useCase, words) => {
    expect(fault(changes, useCase)).toMatch(/^VALIDATION_ERROR /);
    expect(fault(changes, useCase)).toMatch(words);
  });

  it.each<[string, 'tx' | 'mk']>([
    ['campaign', 'mk'],
    ['group', 'mk'],
    ['track', 'tx'],
  ])('with the field %s is for the stream %s', (name, stream) => {
    expect(requestedStream({ ...MAIL, controls: [[name, 'x']] })).toBe(stream);
  });
});

describe('a refusal over SMTP', () => {
  it.each<[RefusalCode, string]>([
    ['UNAUTHENTICATED', '535 5.7.8'],
    ['ACCOUNT_DISABLED', '525 5.7.13'],
    ['INSUFFICIENT_SCOPE', '535 5.7.8'],
    ['KEY_NOT_ALLOWED', '550 5.7.1'],
    ['RATE_LIMITED', '450 4.7.1'],
    ['VALIDATION_ERROR', '554 5.6.0'],
    ['DOMAIN_NOT_REGISTERED', '550 5.7.1'],
    ['DOMAIN_NOT_VERIFIED', '550 5.7.1'],
    ['USE_CASE_MISMATCH', '550 5.7.1'],
    ['COMPLIANCE_TEMPLATE_MISSING', '554 5.6.0'],
    ['COMPANY_ADDRESS_MISSING', '550 5.7.1'],
    ['TEMPLATE_VARIABLE_MISSING', '554 5.6.0'],
    ['CONSENT_REQUIRED', '550 5.7.1'],
    ['RECIPIENT_UNSUBSCRIBED', '550 5.7.1'],
    ['RECIPIENT_SUPPRESSED', '550 5.7.1'],
    ['CAMPAIGN_NOT_FOUND', '554 5.5.4'],
    ['SUBSCRIPTION_GROUP_NOT_FOUND', '554 5.5.4'],
    ['ATTACHMENTS_TOO_LARGE', '552 5.3.4'],
    ['TOO_MANY_ATTACHMENTS', '554 5.6.0'],
    ['IDEMPOTENCY_IN_PROGRESS', '451 4.5.0'],
    ['IDEMPOTENCY_KEY_REUSED', '554 5.5.4'],
    ['UNAVAILABLE', '452 4.3.1'],
    ['LIMIT_REACHED', '452 4.3.1'],
  ])('%s is %s', (code, expected) => {
    expect(replyTo(refuse(code, 'words'))).toMatchObject({
      responseCode: expected,
      message: `${code}: words`,
    });
  });

  /** States that end: another request with the same key, an account whose storage is full. */
  const TEMPORARY = ['IDEMPOTENCY_IN_PROGRESS', 'LIMIT_REACHED'];

  it.each(Object.entries(REFUSALS))('%s is permanent unless its reason ends', (name, [status]) => {
    const { responseCode } = replyTo(refuse(name as RefusalCode, ''));
    const again = status >= 500 || status === 429 || TEMPORARY.includes(name);
    expect(String(responseCode)).toMatch(again ? /^4\d\d 4\./ : /^5\d\d 5\./);
  });

  it('at AUTH names the user name and the password, and has the temporary code of AUTH', () => {
    expect(authReplyTo(refuse('RATE_LIMITED', ''))).toMatchObject({ responseCode: '454 4.7.0' });
    expect(authReplyTo(refuse('UNAUTHENTICATED', 'X-Api-Key')).message).toMatch(
      /^UNAUTHENTICATED: The user name/,
    );
  });

  it('is one line of ASCII that fits', () => {
    const { message } = replyTo(refuse('VALIDATION_ERROR', `to: ädä\r\n250 OK ${'x'.repeat(1000)}`));
    expect(message).toMatch(/^VALIDATION_ERROR: to: \?d\? 250 OK x+$/);
    expect(message.length).toBeLessThanOrEqual(480);
  });
});
