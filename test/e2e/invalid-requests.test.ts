import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiResponse, CallOptions } from '../support/api-client.ts';
import {
  type ErrorCase,
  type ExpectedError,
  expectError,
  expectErrors,
  mail,
  type RejectionSetup,
  startRejectionSetup,
  VALIDATION,
} from '../support/rejection-setup.ts';

/*
 * Invalid requests (body, key, path, query, ids, setup requests) are answered with the documented status, code and
 * field, and change nothing.
 *
 *   test ──HTTP, invalid──▶ postrider ──(never)──▶ sink
 */
let setup: RejectionSetup;

beforeAll(async () => {
  setup = await startRejectionSetup();
});
afterAll(() => setup?.stop());

/** `METHOD /path`; the path may contain `{own}`, `{their domain}`, `{their group}` and `{their message}`. */
async function call(request: string, options: CallOptions = {}): Promise<ApiResponse<unknown>> {
  const { api, domain, other } = setup;
  const [method = '', path = ''] = request.split(/ (.*)/);
  const ids: Record<string, string> = {
    '{own}': domain.domainId,
    '{their domain}': other.domain.domainId,
    '{their group}': other.groupId,
    '{their message}': other.messageId,
  };
  return api.call(
    method,
    path.replaceAll(/\{[^}]+\}/g, (name) => ids[name] ?? name),
    options,
  );
}

const SEND = 'POST /transactional/send';
const LIST = 'GET /web-setup/domains';

describe('a body', () => {
  const good = JSON.stringify(mail());
  const NOT_JSON: ExpectedError = [400, 'INVALID_JSON'];
  const UNSUPPORTED: ExpectedError = [415, 'UNSUPPORTED_MEDIA_TYPE'];

  const BODIES: [what: string, body: string | Buffer, expected: ExpectedError][] = [
    ['not JSON', 'to=ada', NOT_JSON],
    ['truncated', good.slice(0, -1), NOT_JSON],
    ['with a trailing comma', good.replace(/\}$/, ',}'), NOT_JSON],
    ['repeated', good + good, NOT_JSON],
    ['not UTF-8', Buffer.from(good.replace('Hello', 'Hällo'), 'latin1'), NOT_JSON],
    ['spaces', '   ', NOT_JSON],
    ['an array', `[${good}]`, [...VALIDATION]],
    ['a string', '"hello"', [...VALIDATION]],
    ['null', 'null', [...VALIDATION]],
    ['a number out of range', '1e999', [...VALIDATION]],
    ['an empty object', '{}', [...VALIDATION, 'from']],
    ['all in __proto__', `{"__proto__":${good}}`, [...VALIDATION, 'from']],
    ['all in constructor.prototype', `{"constructor":{"prototype":${good}}}`, [...VALIDATION, 'from']],
    ['100 levels deep', good.replace('{', `{"x":${'['.repeat(100)}${']'.repeat(100)},`), [...VALIDATION]],
    ['100,000 levels deep', '['.repeat(100_000) + ']'.repeat(100_000), [...VALIDATION]],
    [
      'with a number for a flag',
      good.replace('{', '{"enableOpenTracking":1e308,'),
      [...VALIDATION, 'enableOpenTracking'],
    ],
    ['over 4 MiB', JSON.stringify(mail({ text: 'x'.repeat(4 * 1024 * 1024) })), [413, 'PAYLOAD_TOO_LARGE']],
  ];
  it('is rejected when it is malformed, too deep or too large', () =>
    expectErrors(BODIES.map(([what, rawBody, expected]) => [what, () => call(SEND, { rawBody }), expected])));

  const TYPES: [what: string, headers: Record<string, string>][] = [
    ['plain text', { 'Content-Type': 'text/plain' }],
    ['a form', { 'Content-Type': 'application/x-www-form-urlencoded' }],
    ['of no type', { 'Content-Type': '' }],
    ['in another character set', { 'Content-Type': 'application/json; charset=utf-16' }],
    ['compressed', { 'Content-Encoding': 'gzip' }],
  ];
  it('is rejected with a content type other than JSON', () =>
    expectErrors(
      TYPES.map(([what, headers]) => [
        what,
        () => call(SEND, { rawBody: Buffer.from(good), headers }),
        UNSUPPORTED,
      ]),
    ));

  it('must be present', async () => {
    await expectError(await call(SEND), ...NOT_JSON);
  });

  it('is limited to 256 KiB for setup requests', async () => {
    const body = { domain: 'x'.repeat(256 * 1024) };
    await expectError(await call('PUT /web-setup/domains', { body }), 413, 'PAYLOAD_TOO_LARGE');
  });
});

describe('a key', () => {
  const UNAUTHENTICATED: ExpectedError = [401, 'UNAUTHENTICATED'];

  const KEYS: [what: string, headers: Record<string, string | null>][] = [
    ['missing', { 'X-Api-Key': null }],
    ['empty', { 'X-Api-Key': '' }],
    ['unknown', { 'X-Api-Key': `pr_${'a'.repeat(43)}` }],
    ['of 8,000 characters', { 'X-Api-Key': 'a'.repeat(8000) }],
    ['SQL', { 'X-Api-Key': "' OR 1=1 --" }],
    ['without an account', { 'X-Id': null }],
    ['with an unknown account', { 'X-Id': 'acct_nobody' }],
  ];
  it('is rejected when it is missing, malformed or unknown', () =>
    expectErrors(
      KEYS.flatMap(([what, headers]): ErrorCase[] => [
        [`${what}, ${LIST}`, () => call(LIST, { headers }), UNAUTHENTICATED],
        [`${what}, ${SEND}`, () => call(SEND, { headers, body: mail() }), UNAUTHENTICATED],
      ]),
    ));

  it('is rejected with the id of another account', async () => {
    const { accountId, keys } = setup.other.api;
    await expectError(await call(LIST, { headers: { 'X-Id': accountId } }), ...UNAUTHENTICATED);
    await expectError(await call(LIST, { headers: { 'X-Api-Key': keys.setup } }), ...UNAUTHENTICATED);
  });

  it('gets the same response whatever is wrong with it', async () => {
    const responses = await Promise.all([
      call(LIST, { headers: { 'X-Api-Key': null, 'X-Request-Id': 'same' } }),
      call(LIST, { headers: { 'X-Api-Key': `pr_${'a'.repeat(43)}`, 'X-Request-Id': 'same' } }),
      call(LIST, { headers: { 'X-Id': setup.other.api.accountId, 'X-Request-Id': 'same' } }),
    ]);
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
  });

  it('is rejected for a request of another scope', () =>
    expectErrors(
      (
        [
          [SEND, 'setup'],
          [SEND, 'marketing'],
          [LIST, 'transactional'],
          [LIST, 'marketing'],
        ] as const
      ).map(([request, scope]) => [
        `${request} with the ${scope} key`,
        () => {
          const headers = { 'X-Api-Key': setup.api.keys[scope] };
          return call(request, request === SEND ? { headers, body: mail() } : { headers });
        },
        [403, 'INSUFFICIENT_SCOPE'],
      ]),
    ));

  it('is rejected after it was revoked', async () => {
    const { daemon, api } = setup;
    const created: { key: string; keyId: string } = JSON.parse(
      await daemon.cli('key', 'create', '--account', api.accountId, '--scope', 'transactional', '--json'),
    );
    await daemon.cli('key', 'revoke', created.keyId);
    const headers = { 'X-Api-Key': created.key };
    await expectError(await call(SEND, { headers, body: mail() }), ...UNAUTHENTICATED);
  });

  it('is rejected after its account was disabled', async () => {
    const disabled = await setup.daemon.account('Vorbei');
    await setup.daemon.cli('account', 'disable', disabled.accountId);
    await expectError(await disabled.get('/web-setup/domains'), 403, 'ACCOUNT_DISABLED');
    await expectError(await disabled.send(mail()), 403, 'ACCOUNT_DISABLED');
  });
});

describe('a path, method or query', () => {
  const NOT_FOUND: ExpectedError = [404, 'NOT_FOUND'];
  const NOT_ALLOWED: ExpectedError = [405, 'METHOD_NOT_ALLOWED'];

  const REQUESTS: [request: string, expected: ExpectedError][] = [
    ['GET /web-setup/nothing', NOT_FOUND],
    ['GET /web-setup/domains/', NOT_FOUND],
    ['GET /Web-Setup/Domains', NOT_FOUND],
    ['GET /web-setup/domains/%E0%A4%A', [...VALIDATION]],
    ['GET /transactional/send', NOT_ALLOWED],
    ['DELETE /web-setup/messages', NOT_ALLOWED],
    ['PATCH /web-setup/use-cases', NOT_ALLOWED],
    ['GET /web-setup/messages?limit=0', [...VALIDATION, 'limit']],
    ['GET /web-setup/events?limit=-1', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?limit=many', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?limit=1e999', [...VALIDATION, 'limit']],
    ['GET /web-setup/messages?lastKey=abc', [...VALIDATION, 'lastKey']],
    ['GET /web-setup/messages?status=lost', [...VALIDATION, 'status']],
    ['GET /web-setup/messages?from=yesterday', [...VALIDATION, 'from']],
    ['GET /web-setup/events?event=email_eaten', [...VALIDATION, 'event']],
  ];
  it('is rejected when it is unknown or invalid', () =>
    expectErrors(REQUESTS.map(([request, expected]) => [request, () => call(request), expected])));

  it('is answered 405 with the allowed methods', async () => {
    const { headers } = await call('GET /transactional/send');
    expect(headers.get('Allow')).toMatch(/\bPOST\b/);
  });
});

describe('an id that is unknown or of another account', () => {
  const UNKNOWN = 'domain_1767225600000_abcdefghijkl';

  it('is answered DOMAIN_NOT_FOUND for a domain', () =>
    expectErrors(
      [UNKNOWN, '{their domain}', '..%2F..%2Faccount', 'a%00b', "'%20OR%201=1--"]
        .flatMap((id) => [
          `GET /web-setup/domains/${id}`,
          `DELETE /web-setup/domains/${id}`,
          `GET /web-setup/domains/${id}/dns-records`,
          `POST /web-setup/domains/${id}/verify`,
          `POST /web-setup/domains/${id}/rotate-dkim`,
          `PATCH /web-setup/domains/${id}`,
          `PUT /web-setup/domains/${id}/assign-group`,
        ])
        .map((request) => [
          request,
          () => {
            const body = { trackingDomain: null, groupId: 'any' };
            return call(request, /^P(ATCH|UT) /.test(request) ? { body } : {});
          },
          [404, 'DOMAIN_NOT_FOUND'],
        ]),
    ));

  const RESOURCES: [request: string, body: object | undefined, code: string][] = [
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
  ];
  it('is answered with the NOT_FOUND code of the resource', () =>
    expectErrors(
      RESOURCES.map(([request, body, code]) => [
        request,
        () => call(request, body === undefined ? {} : { body }),
        [404, code],
      ]),
    ));

  it('is answered GROUP_NOT_FOUND for the group of a domain', async () => {
    const { groupId } = setup.other;
    const body = { domain: 'gruppe.example', useCaseId: 'tx-local', groupId };
    await expectError(
      await call('PUT /web-setup/domains/{own}/assign-group', { body }),
      404,
      'GROUP_NOT_FOUND',
    );
    await expectError(await call('PUT /web-setup/domains', { body }), 404, 'GROUP_NOT_FOUND');
  });
});

describe('the registration of a domain', () => {
  const register = (change: object) =>
    call('PUT /web-setup/domains', { body: { domain: 'kunde2.example', useCaseId: 'tx-local', ...change } });

  const NAMES: [what: string, domain: unknown][] = [
    ['missing', undefined],
    ['a number', 7],
    ['empty', ''],
    ['a URL', 'https://kunde2.example'],
    ['with a path', 'kunde2.example/shop'],
    ['with a port', 'kunde2.example:25'],
    ['an email address', 'a@kunde2.example'],
    ['an IPv4 address', '192.0.2.1'],
    ['an IPv6 address', '[2001:db8::1]'],
    ['one label', 'localhost'],
    ['a public suffix', 'co.uk'],
    ['a private suffix', 'github.io'],
    ['with a space', 'kunde 2.example'],
    ['with a line break', 'kunde2.example\r\nx'],
    ['with a NUL', 'kunde2\u0000.example'],
    ['with a quote', "kunde2'.example"],
    ['with two dots', 'kunde2..example'],
    ['with a label of 64 bytes', `${'a'.repeat(64)}.example`],
    ['of 257 characters', `${'abcdefghi.'.repeat(25)}example`],
  ];
  it('is rejected for an invalid name', () =>
    expectErrors(
      NAMES.map(([what, domain]) => [what, () => register({ domain }), [...VALIDATION, 'domain']]),
    ));

  const CHANGES: [what: string, change: object, expected: ExpectedError][] = [
    ['without a use case', { useCaseId: undefined }, [...VALIDATION, 'useCaseId']],
    ['with an unknown use case', { useCaseId: 'tx-mars' }, [404, 'USE_CASE_NOT_FOUND']],
    ['with a use case without a region', { useCaseId: 'tx' }, [404, 'USE_CASE_NOT_FOUND']],
    ['in an unknown group', { groupId: 'dgroup_1767225600000_abcdefghijkl' }, [404, 'GROUP_NOT_FOUND']],
  ];
  it('is rejected with an unknown use case or group', () =>
    expectErrors(CHANGES.map(([what, change, expected]) => [what, () => register(change), expected])));
});

describe('other setup requests', () => {
  const REQUESTS: [request: string, body: object, field: string][] = [
    ['PATCH /web-setup/domains/{own}', { trackingDomain: 'evil.example' }, 'trackingDomain'],
    ['PATCH /web-setup/domains/{own}', { trackingDomain: 'http://l.kunde.example' }, 'trackingDomain'],
    ['POST /web-setup/domain-groups', {}, 'name'],
    ['POST /web-setup/domain-groups', { name: '   ' }, 'name'],
    ['POST /web-setup/domain-groups', { name: 'x'.repeat(101) }, 'name'],
    ['PUT /web-setup/account', { companyName: 'A\nB' }, 'companyName'],
    ['PUT /web-setup/account', { companyAddress: { line1: 'x' } }, 'companyAddress.city'],
    ['PUT /web-setup/account', { logoUrl: 'javascript:alert(1)' }, 'logoUrl'],
    ['PUT /web-setup/account', { abuseEmail: 'x' }, 'abuseEmail'],
  ];
  it('are rejected with the invalid field', () =>
    expectErrors(
      REQUESTS.map(([request, body, field]) => [
        `${request} with ${JSON.stringify(body)}`,
        () => call(request, { body }),
        [...VALIDATION, field],
      ]),
    ));
});

it('has stored and sent nothing, and logged no internal error', () => setup.expectUnchanged());
