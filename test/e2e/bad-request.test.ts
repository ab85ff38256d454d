import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiResponse, CallOptions } from '../support/api-client.ts';
import {
  expectError,
  mail,
  type RejectionSetup,
  startRejectionSetup,
  VALIDATION,
} from '../support/rejection-setup.ts';

/*
 * What is wrong with a request as such, with its key, its ids, or with a setup request, is answered with the
 * right status, code and field, and leaves no trace.
 *
 *   test ──HTTP, malformed and hostile──▶ postrider ──(never)──▶ sink
 */
let setup: RejectionSetup;

beforeAll(async () => {
  setup = await startRejectionSetup();
});
afterAll(() => setup?.stop());

type Expected = [status: number, code: string, field?: string];

/** `METHOD /path`, which may name things by `{own}`, `{their domain}`, `{their group}`, `{their message}`. */
async function call(request: string, options: CallOptions = {}): Promise<ApiResponse<unknown>> {
  const { api, domain, other } = setup;
  const [method = '', path = ''] = request.split(/ (.*)/);
  const names: Record<string, string> = {
    '{own}': domain.domainId,
    '{their domain}': other.domain.domainId,
    '{their group}': other.groupId,
    '{their message}': other.messageId,
  };
  const named = path.replaceAll(/\{[^}]+\}/g, (name) => names[name] ?? name);
  return api.call(method, named, options);
}

const SEND = 'POST /transactional/send';
const LIST = 'GET /web-setup/domains';

describe('a body', () => {
  const good = JSON.stringify(mail());
  const NOT_JSON: Expected = [400, 'INVALID_JSON'];
  const UNSUPPORTED: Expected = [415, 'UNSUPPORTED_MEDIA_TYPE'];

  it.each<[what: string, body: string | Buffer, expected: Expected]>([
    ['that is not JSON', 'to=ada', NOT_JSON],
    ['cut short', good.slice(0, -1), NOT_JSON],
    ['with a comma too many', good.replace(/\}$/, ',}'), NOT_JSON],
    ['given twice', good + good, NOT_JSON],
    ['that is not UTF-8', Buffer.from(good.replace('Hello', 'Hällo'), 'latin1'), NOT_JSON],
    ['of blanks', '   ', NOT_JSON],
    ['that is a list', `[${good}]`, [...VALIDATION]],
    ['that is a text', '"hello"', [...VALIDATION]],
    ['that is null', 'null', [...VALIDATION]],
    ['that is a number beyond all numbers', '1e999', [...VALIDATION]],
    ['that is an empty object', '{}', [...VALIDATION, 'from']],
    ['all in __proto__', `{"__proto__":${good}}`, [...VALIDATION, 'from']],
    ['all in constructor.prototype', `{"constructor":{"prototype":${good}}}`, [...VALIDATION, 'from']],
    ['100 levels deep', good.replace('{', `{"x":${'['.repeat(100)}${']'.repeat(100)},`), [...VALIDATION]],
    ['100,000 levels deep', '['.repeat(100_000) + ']'.repeat(100_000), [...VALIDATION]],
    [
      'with a huge number for a flag',
      good.replace('{', '{"enableOpenTracking":1e308,'),
      [...VALIDATION, 'enableOpenTracking'],
    ],
    ['over 4 MiB', JSON.stringify(mail({ text: 'x'.repeat(4 * 1024 * 1024) })), [413, 'PAYLOAD_TOO_LARGE']],
  ])('%s', async (_, rawBody, expected) => {
    expectError(await call(SEND, { rawBody }), ...expected);
  });

  it.each<[what: string, headers: Record<string, string>]>([
    ['plain text', { 'Content-Type': 'text/plain' }],
    ['a form', { 'Content-Type': 'application/x-www-form-urlencoded' }],
    ['of no type', { 'Content-Type': '' }],
    ['in another character set', { 'Content-Type': 'application/json; charset=utf-16' }],
    ['compressed', { 'Content-Encoding': 'gzip' }],
  ])('that calls itself %s', async (_, headers) => {
    expectError(await call(SEND, { rawBody: Buffer.from(good), headers }), ...UNSUPPORTED);
  });

  it('that is not there', async () => {
    expectError(await call(SEND), ...NOT_JSON);
  });

  it('over 256 KiB on setup', async () => {
    const body = { domain: 'x'.repeat(256 * 1024) };
    expectError(await call('PUT /web-setup/domains', { body }), 413, 'PAYLOAD_TOO_LARGE');
  });
});

describe('a key', () => {
  const UNAUTHENTICATED: Expected = [401, 'UNAUTHENTICATED'];

  it.each<[what: string, headers: Record<string, string | null>]>([
    ['that is missing', { 'X-Api-Key': null }],
    ['that is empty', { 'X-Api-Key': '' }],
    ['that is unknown', { 'X-Api-Key': `pr_${'a'.repeat(43)}` }],
    ['of 8,000 characters', { 'X-Api-Key': 'a'.repeat(8000) }],
    ['that is SQL', { 'X-Api-Key': "' OR 1=1 --" }],
    ['without an account', { 'X-Id': null }],
    ['with an unknown account', { 'X-Id': 'acct_nobody' }],
  ])('%s', async (_, headers) => {
    expectError(await call(LIST, { headers }), ...UNAUTHENTICATED);
    expectError(await call(SEND, { headers, body: mail() }), ...UNAUTHENTICATED);
  });

  it("of another account, or with another account's id", async () => {
    const { accountId, keys } = setup.other.api;
    expectError(await call(LIST, { headers: { 'X-Id': accountId } }), ...UNAUTHENTICATED);
    expectError(await call(LIST, { headers: { 'X-Api-Key': keys.setup } }), ...UNAUTHENTICATED);
  });

  it('is refused in the same words whatever is wrong with it', async () => {
    const answers = await Promise.all([
      call(LIST, { headers: { 'X-Api-Key': null, 'X-Request-Id': 'same' } }),
      call(LIST, { headers: { 'X-Api-Key': `pr_${'a'.repeat(43)}`, 'X-Request-Id': 'same' } }),
      call(LIST, { headers: { 'X-Id': setup.other.api.accountId, 'X-Request-Id': 'same' } }),
    ]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });

  it.each([
    [SEND, 'setup'],
    [SEND, 'marketing'],
    [LIST, 'transactional'],
    [LIST, 'marketing'],
  ] as const)('for something else: %s with the %s key', async (request, scope) => {
    const headers = { 'X-Api-Key': setup.api.keys[scope] };
    const options = request === SEND ? { headers, body: mail() } : { headers };
    expectError(await call(request, options), 403, 'INSUFFICIENT_SCOPE');
  });

  it('that was revoked', async () => {
    const { daemon, api } = setup;
    const made: { key: string; keyId: string } = JSON.parse(
      await daemon.cli('key', 'create', '--account', api.accountId, '--scope', 'transactional', '--json'),
    );
    await daemon.cli('key', 'revoke', made.keyId);
    expectError(await call(SEND, { headers: { 'X-Api-Key': made.key }, body: mail() }), ...UNAUTHENTICATED);
  });

  it('of an account that was disabled', async () => {
    const gone = await setup.daemon.account('Vorbei');
    await setup.daemon.cli('account', 'disable', gone.accountId);
    expectError(await gone.get('/web-setup/domains'), 403, 'ACCOUNT_DISABLED');
    expectError(await gone.send(mail()), 403, 'ACCOUNT_DISABLED');
  });
});

describe('a path, method or query', () => {
  const NOT_FOUND: Expected = [404, 'NOT_FOUND'];
  const NOT_ALLOWED: Expected = [405, 'METHOD_NOT_ALLOWED'];

  it.each<[request: string, expected: Expected]>([
    ['GET /web-setup/nothing', NOT_FOUND],
    ['GET /web-setup/domains/', NOT_FOUND],
    ['GET /Web-Setup/Domains', NOT_FOUND],
    ['GET /web-setup/domains/%E0%A4%A', [...VALIDATION]],
    ['GET /transactional/send', NOT_ALLOWED],
    ['DELETE /web-setup/messages', NOT_ALLOWED],
    ['PATCH /web-setup/use-cases', NOT_ALLOWED],
    ['GET /web-setup/messages?limit=0', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?limit=201', [...VALIDATION, 'limit']],
    ['GET /web-setup/events?limit=-1', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?limit=many', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?limit=1e999', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?limit=99999999999999999999', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?lastKey=abc', [...VALIDATION, 'lastKey']],
    ['GET /web-setup/messages?status=lost', [...VALIDATION, 'status']],
    ['GET /web-setup/messages?from=yesterday', [...VALIDATION, 'from']],
    ['GET /web-setup/events?event=email_eaten', [...VALIDATION, 'event']],
  ])('%s', async (request, expected) => {
    expectError(await call(request), ...expected);
  });

  it('tells which methods there are', async () => {
    const { headers } = await call('GET /transactional/send');
    expect(headers.get('Allow')).toMatch(/\bPOST\b/);
  });
});

describe('an id that is unknown or somebody else’s, which is never told apart:', () => {
  const UNKNOWN = 'domain_1767225600000_abcdefghijkl';

  it.each(
    [UNKNOWN, '{their domain}', '..%2F..%2Faccount', 'a%00b', "'%20OR%201=1--"].flatMap((id) => [
      `GET /web-setup/domains/${id}`,
      `DELETE /web-setup/domains/${id}`,
      `GET /web-setup/domains/${id}/dns-records`,
      `POST /web-setup/domains/${id}/verify`,
      `POST /web-setup/domains/${id}/rotate-dkim`,
      `PATCH /web-setup/domains/${id}`,
      `PUT /web-setup/domains/${id}/assign-group`,
    ]),
  )('%s', async (request) => {
    const body = { trackingDomain: null, groupId: 'any' };
    expectError(await call(request, /^P(ATCH|UT) /.test(request) ? { body } : {}), 404, 'DOMAIN_NOT_FOUND');
  });

  it.each<[request: string, body: object | undefined, code: string]>([
    ['GET /web-setup/messages/{their message}', undefined, 'MESSAGE_NOT_FOUND'],
    ['GET /web-setup/messages/msg_1767225600000_abcdefghijkl', undefined, 'MESSAGE_NOT_FOUND'],
    ['GET /web-setup/domain-groups/{their group}', undefined, 'GROUP_NOT_FOUND'],
    ['PUT /web-setup/domain-groups/{their group}', { name: 'Ours' }, 'GROUP_NOT_FOUND'],
    ['DELETE /web-setup/domain-groups/{their group}', undefined, 'GROUP_NOT_FOUND'],
    [
      'PUT /web-setup/domains/{own}/assign-group',
      { groupId: 'dgroup_1767225600000_abcdefghijkl' },
      'GROUP_NOT_FOUND',
    ],
  ])('%s', async (request, body, code) => {
    expectError(await call(request, body === undefined ? {} : { body }), 404, code);
  });

  it("another account's group for our domain", async () => {
    const { groupId } = setup.other;
    const body = { domain: 'gruppe.example', useCaseId: 'tx-local', groupId };
    expectError(await call('PUT /web-setup/domains/{own}/assign-group', { body }), 404, 'GROUP_NOT_FOUND');
    expectError(await call('PUT /web-setup/domains', { body }), 404, 'GROUP_NOT_FOUND');
  });
});

describe('a domain that cannot be registered', () => {
  const register = (change: object) =>
    call('PUT /web-setup/domains', { body: { domain: 'kunde2.example', useCaseId: 'tx-local', ...change } });

  it.each<[what: string, domain: unknown]>([
    ['none', undefined],
    ['a number', 7],
    ['empty', ''],
    ['a URL', 'https://kunde2.example'],
    ['with a path', 'kunde2.example/shop'],
    ['with a port', 'kunde2.example:25'],
    ['somebody’s address', 'a@kunde2.example'],
    ['an IPv4 address', '192.0.2.1'],
    ['an IPv6 address', '[2001:db8::1]'],
    ['one label', 'localhost'],
    ['a public suffix', 'co.uk'],
    ['a private suffix', 'github.io'],
    ['with a blank', 'kunde 2.example'],
    ['with a line break', 'kunde2.example\r\nx'],
    ['with a NUL', 'kunde2\u0000.example'],
    ['with a quote', "kunde2'.example"],
    ['with two dots', 'kunde2..example'],
    ['with a label of 64', `${'a'.repeat(64)}.example`],
    ['of 257 characters', `${'abcdefghi.'.repeat(25)}example`],
  ])('%s', async (_, domain) => {
    expectError(await register({ domain }), ...VALIDATION, 'domain');
  });

  it.each<[what: string, change: object, expected: Expected]>([
    ['for no use case', { useCaseId: undefined }, [...VALIDATION, 'useCaseId']],
    ['for an unknown use case', { useCaseId: 'tx-mars' }, [404, 'USE_CASE_NOT_FOUND']],
    ['for a use case without a region', { useCaseId: 'tx' }, [404, 'USE_CASE_NOT_FOUND']],
    ['in an unknown group', { groupId: 'dgroup_1767225600000_abcdefghijkl' }, [404, 'GROUP_NOT_FOUND']],
  ])('%s', async (_, change, expected) => {
    expectError(await register(change), ...expected);
  });
});

describe('other setup requests', () => {
  it.each<[request: string, body: object, field: string]>([
    ['PATCH /web-setup/domains/{own}', { trackingDomain: 'evil.example' }, 'trackingDomain'],
    ['PATCH /web-setup/domains/{own}', { trackingDomain: 'http://l.kunde.example' }, 'trackingDomain'],
    ['POST /web-setup/domain-groups', {}, 'name'],
    ['POST /web-setup/domain-groups', { name: '   ' }, 'name'],
    ['POST /web-setup/domain-groups', { name: 'x'.repeat(101) }, 'name'],
    ['PUT /web-setup/account', { companyName: 'A\nB' }, 'companyName'],
    ['PUT /web-setup/account', { companyAddress: { line1: 'x' } }, 'companyAddress.city'],
    ['PUT /web-setup/account', { logoUrl: 'javascript:alert(1)' }, 'logoUrl'],
    ['PUT /web-setup/account', { abuseEmail: 'x' }, 'abuseEmail'],
  ])('%s with %j', async (request, body, field) => {
    expectError(await call(request, { body }), ...VALIDATION, field);
  });
});

describe('after all this', () => {
  it('nothing was stored, nothing was sent, and nothing went wrong inside', () => setup.expectUnchanged());
});
