import { describe, expect, it, onTestFinished } from 'vitest';
import type { DnsRecord } from '../../../src/domains/dns-record.ts';
import type { DomainGroup } from '../../../src/domains/present.ts';
import type { CheckReport } from '../../../src/domains/verification/status.ts';
import { domainGroupRoutes } from '../../../src/http/api/domains/domain-groups.ts';
import { domainRoutes } from '../../../src/http/api/domains/domains.ts';
import { createLocalReader } from '../../../src/store/readers/reads.ts';
import { startDomains } from '../../domains/setup.ts';
import { insertAccount } from '../../support/store.ts';
import { startApi } from '../harness.ts';

/** The API with domains, as a client sees it. */
async function start() {
  const setup = await startDomains();
  const { domains, tables } = setup;
  const routes = [
    ...domainRoutes({ reader: createLocalReader(tables) }, { domains }),
    ...domainGroupRoutes({ domains }),
  ];
  const api = await startApi({ routes });
  onTestFinished(() => api.stop());
  const { accountId } = api.account;
  insertAccount(setup.tables, accountId, setup.clock.now());

  /** Answers with the status, the headers and the JSON. */
  async function call(method: string, path: string, body?: object) {
    const response = await fetch(`${api.base}/web-setup${path}`, {
      method,
      headers: { ...api.as('setup'), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = (await response.json()) as Answered;
    const declared = declaredFields(routes, method, path, response.status);
    if (json.success && declared !== null) declared.parse(json.data);
    return {
      status: response.status,
      headers: response.headers,
      data: json.data,
      code: json.error?.code,
      json,
    };
  }
  return { setup, accountId, call };
}

/** The fields of the responses; each response has some of them. */
interface Answered {
  success: boolean;
  data: {
    domainId: string;
    altDomainId: string;
    groupId: string;
    trackingDomain: string | null;
    enableOpenTracking: boolean;
    enableClickTracking: boolean;
    dnsRecords: DnsRecord[];
    recommendedDnsRecords: DnsRecord[];
    checks: CheckReport[];
    useCases: { id: string; canSendEmail: boolean }[];
    domainGroup: DomainGroup;
  };
  error?: { code: string; details?: { field: string }[] };
}

/** The schema of the response, in which an additional field is an error. */
function declaredFields(
  routes: ReturnType<typeof domainRoutes>,
  method: string,
  path: string,
  status: number,
) {
  const form = (pattern: string) => new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`);
  const exact = routes.filter(
    (route) => route.method === method && form(route.path).test(`/web-setup${path}`),
  );
  const [route] = exact.toSorted((one, two) => one.path.split('{').length - two.path.split('{').length);
  const schema = route?.responses[status]?.data;
  return schema !== undefined && 'strict' in schema && typeof schema.strict === 'function'
    ? schema.strict()
    : null;
}

const INPUT = { domain: 'Example.org', useCaseId: 'tx-local' };
const FLAGS = { dkimEnabled: false, spfConfigured: false, dmarcConfigured: false, mxConfigured: false };
const ALT_FLAGS = { altDkimEnabled: false, altSpfConfigured: false, altDmarcConfigured: false };
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe('use cases', () => {
  it('are two for each region', async () => {
    const { call } = await start();
    const { status, data } = await call('GET', '/use-cases');
    expect(status).toBe(200);
    expect(data).toEqual({ useCases: expect.any(Array), message: expect.any(String) });
    expect(data.useCases[0]).toEqual({
      id: 'tx-local',
      useCase: 'tx',
      useCaseName: 'Transactional',
      description: expect.any(String),
      icon: expect.stringMatching(/^\p{Emoji}/u),
      region: { code: 'local', name: 'This server' },
      canSendEmail: false,
    });
  });
});

describe('a domain', () => {
  it('is registered, returned, listed, moved and deleted', async () => {
    const { call, accountId } = await start();
    const created = await call('PUT', '/domains', INPUT);
    expect(created.status).toBe(201);
    expect(created.data).toEqual({
      message: expect.stringContaining('example.org is registered'),
      domain: 'example.org',
      domainId: expect.stringMatching(/^domain_\d+_[a-z0-9]{12}$/),
      groupId: `dgroup_${accountId}`,
      status: 'PENDING',
      dnsRecords: expect.any(Array),
      recommendedDnsRecords: expect.any(Array),
      altDomainId: expect.stringMatching(/^alt_\d+_[a-z0-9]{12}$/),
      altStatus: 'PENDING',
    });
    const { domainId, altDomainId } = created.data;
    const again = await call('PUT', '/domains', INPUT);
    expect(again.status).toBe(200);
    expect(again.data).toEqual({ ...created.data, message: expect.stringContaining('already registered') });

    const presented = {
      domain: 'example.org',
      domainId,
      groupId: `dgroup_${accountId}`,
      status: 'PENDING',
      ...FLAGS,
      useCase: 'tx',
      useCaseLabel: 'Transactional',
      createdAt: TIME,
      updatedAt: TIME,
      trackingDomain: null,
      enableOpenTracking: false,
      enableClickTracking: false,
      lastCheckedAt: null,
    };
    expect((await call('GET', '/domains')).data).toEqual({ domains: [presented], total: 1 });
    expect((await call('GET', `/domains/${domainId}`)).data).toEqual(presented);
    expect((await call('GET', `/domains/${domainId}/dns-records`)).data).toEqual({
      domain: 'example.org',
      domainId,
      dnsRecords: created.data.dnsRecords,
      recommendedDnsRecords: created.data.recommendedDnsRecords,
      status: 'PENDING',
      ...FLAGS,
      altDomainId,
      altStatus: 'PENDING',
      ...ALT_FLAGS,
    });

    const { groupId } = (await call('POST', '/domain-groups', { name: 'Shops' })).data.domainGroup;
    const moved = await call('PUT', `/domains/${domainId}/assign-group`, { groupId });
    expect(moved).toMatchObject({ status: 200, data: { message: expect.any(String), domainId, groupId } });
    expect((await call('GET', `/domains/${domainId}`)).data.groupId).toBe(groupId);

    const deleted = await call('DELETE', `/domains/${domainId}`);
    expect(deleted).toMatchObject({
      status: 200,
      data: { message: 'example.org has been deleted.', domainId },
    });
    expect(await call('GET', `/domains/${domainId}`)).toMatchObject({
      status: 404,
      code: 'DOMAIN_NOT_FOUND',
    });
  });

  it('is verified; the report lists what is missing', async () => {
    const { call, setup } = await start();
    const { domainId } = (await call('PUT', '/domains', INPUT)).data;
    const { status, data } = await call('POST', `/domains/${domainId}/verify`);
    expect(status).toBe(200);
    expect(data).toEqual({
      message: 'The verification of example.org is still pending: DKIM, SPF, DMARC and MX do not pass yet.',
      domain: 'example.org',
      domainId,
      status: 'PENDING',
      ...FLAGS,
      altStatus: 'PENDING',
      ...ALT_FLAGS,
      checks: expect.any(Array),
    });
    expect(data.checks[1]).toEqual({
      check: 'spf',
      passed: false,
      result: 'missing',
      expected: 'v=spf1 include:spf.mail.example.net ~all',
      found: null,
      hint: expect.stringContaining('There is no SPF record at example.org'),
    });
    const [row] = setup.tables.domains.list(null);
    if (row) setup.publish(row, ({ purpose }) => purpose !== 'Secondary DKIM');
    await setup.publishPlatform();
    expect((await call('POST', `/domains/${domainId}/verify`)).data).toMatchObject({
      message: 'example.org is verified: mail may be sent from it.',
      status: 'SUCCESS',
      dkimEnabled: true,
      spfConfigured: true,
      dmarcConfigured: true,
      mxConfigured: true,
      altStatus: 'PENDING',
    });
    const useCases: { id: string; canSendEmail: boolean }[] = (await call('GET', '/use-cases')).data[
      'useCases'
    ];
    expect(useCases.filter(({ canSendEmail }) => canSendEmail).map(({ id }) => id)).toEqual(['tx-local']);
  });

  it('is verified at most ten times a minute', async () => {
    const { call } = await start();
    const { domainId } = (await call('PUT', '/domains', INPUT)).data;
    for (let count = 0; count < 10; count++)
      expect((await call('POST', `/domains/${domainId}/verify`)).status).toBe(200);
    const refused = await call('POST', `/domains/${domainId}/verify`);
    expect(refused).toMatchObject({ status: 429, code: 'RATE_LIMITED' });
    expect(refused.headers.get('retry-after')).toBe('60');
    expect(refused.headers.get('ratelimit-policy')).toBe('"verification";q=10;w=60');
  });

  it('rotates its DKIM key', async () => {
    const { call } = await start();
    const created = (await call('PUT', '/domains', INPUT)).data;
    const path = `/domains/${created.domainId}/rotate-dkim`;
    const first = await call('POST', path);
    expect(first.status).toBe(200);
    expect(first.data.dnsRecords[0]).not.toEqual(created.dnsRecords[0]);
    expect(first.data.recommendedDnsRecords[0]).toMatchObject({
      name: created.dnsRecords[0]?.name,
      value: created.dnsRecords[0]?.value,
      description: expect.stringContaining('keep it until the rotation is complete'),
    });
    expect((await call('POST', path)).data.dnsRecords).toEqual(first.data.dnsRecords);
  });

  it('has a custom host for tracked links', async () => {
    const { call } = await start();
    const { domainId } = (await call('PUT', '/domains', INPUT)).data;
    const path = `/domains/${domainId}`;
    const set = await call('PATCH', path, { trackingDomain: 'EU-T-link.example.org' });
    expect(set.data).toMatchObject({
      trackingDomain: 'eu-t-link.example.org',
      message: expect.stringContaining('track.mail.example.net'),
    });
    expect((await call('PATCH', path, {})).data.trackingDomain).toBe('eu-t-link.example.org');
    expect(await call('PATCH', path, { trackingDomain: 'link.example.com' })).toMatchObject({
      status: 400,
      code: 'VALIDATION_ERROR',
    });
    expect((await call('PATCH', path, { trackingDomain: null })).data.trackingDomain).toBeNull();
    expect((await call('PATCH', path, { enableOpenTracking: true })).data).toMatchObject({
      trackingDomain: null,
      enableOpenTracking: true,
      enableClickTracking: false,
    });
    const changed = await call('PATCH', path, { enableOpenTracking: false, enableClickTracking: true });
    expect(changed.data).toMatchObject({ enableOpenTracking: false, enableClickTracking: true });
  });

  it.each([
    [{}, 400, 'VALIDATION_ERROR', 'domain'],
    [{ domain: 'example.org' }, 400, 'VALIDATION_ERROR', 'useCaseId'],
    [{ ...INPUT, domain: 'https://example.org' }, 400, 'VALIDATION_ERROR', 'domain'],
    [{ ...INPUT, domain: 7 }, 400, 'VALIDATION_ERROR', 'domain'],
    [{ ...INPUT, useCaseId: 'tx-mars' }, 404, 'USE_CASE_NOT_FOUND', undefined],
    [{ ...INPUT, groupId: 'dgroup_acct_two' }, 404, 'GROUP_NOT_FOUND', undefined],
  ])('is refused with %o', async (body, status, code, field) => {
    const { call } = await start();
    const refused = await call('PUT', '/domains', body);
    expect(refused).toMatchObject({ status, code });
    expect(refused.json.error?.details?.[0]?.field).toBe(field);
  });

  it('is refused like an unknown one if it belongs to another account', async () => {
    const { call, setup } = await start();
    const { domain_id: theirs } = await setup.register('example.com', 'acct_two');
    for (const id of [theirs, 'domain_0_never']) {
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', { trackingDomain: null }],
        ['DELETE', ''],
        ['GET', '/dns-records'],
        ['POST', '/verify'],
        ['POST', '/rotate-dkim'],
        ['PUT', '/assign-group', { groupId: 'dgroup_acct_two' }],
      ] as const) {
        expect(await call(method, `/domains/${id}${path}`, body)).toMatchObject({
          status: 404,
          code: 'DOMAIN_NOT_FOUND',
        });
      }
    }
    expect((await call('GET', '/domains')).data).toEqual({ domains: [], total: 0 });
  });
});

describe('domain groups', () => {
  it('are created, returned, updated and deleted', async () => {
    const { call, accountId, setup } = await start();
    setup.clock.advance(1000);
    const created = await call('POST', '/domain-groups', { name: ' Shops ', color: '#2563eb' });
    expect(created.status).toBe(201);
    const { domainGroup } = created.data;
    expect(domainGroup).toEqual({
      groupId: expect.stringMatching(/^dgroup_\d+_[a-z0-9]{12}$/),
      name: 'Shops',
      color: '#2563eb',
      ownerId: accountId,
      isDefault: false,
      domainCount: 0,
      createdAt: TIME,
      updatedAt: TIME,
    });
    const path = `/domain-groups/${domainGroup.groupId}`;
    expect((await call('GET', path)).data).toEqual({ domainGroup });
    const changed = (await call('PUT', path, { icon: '🛒', color: null })).data.domainGroup;
    expect(changed).toMatchObject({ name: 'Shops', icon: '🛒' });
    expect(changed).not.toHaveProperty('color');
    for (const list of ['/domain-groups', `/domain-groups/owner/${accountId}`]) {
      expect((await call('GET', list)).data).toMatchObject({
        count: 2,
        domainGroups: [{ isDefault: true }, { name: 'Shops' }],
      });
    }
    expect(await call('DELETE', path)).toMatchObject({
      status: 200,
      data: { groupId: domainGroup.groupId },
    });
    expect(await call('GET', path)).toMatchObject({ status: 404, code: 'GROUP_NOT_FOUND' });
  });

  it.each<[string, string, object | undefined, number, string]>([
    ['POST', '', {}, 400, 'VALIDATION_ERROR'],
    ['POST', '', { name: '  ' }, 400, 'VALIDATION_ERROR'],
    ['POST', '', { name: 'a\u001b[31m' }, 400, 'VALIDATION_ERROR'],
    ['POST', '', { name: 'a', icon: 'b\nc' }, 400, 'VALIDATION_ERROR'],
    ['POST', '', { name: 'a', description: '\ud800' }, 400, 'VALIDATION_ERROR'],
    ['GET', '/dgroup_acct_two', undefined, 404, 'GROUP_NOT_FOUND'],
    ['PUT', '/dgroup_acct_two', { name: 'x' }, 404, 'GROUP_NOT_FOUND'],
    ['DELETE', '/dgroup_acct_two', undefined, 404, 'GROUP_NOT_FOUND'],
    ['GET', '/owner/acct_two', undefined, 404, 'NOT_FOUND'],
  ])('%s /domain-groups%s with %o is refused', async (method, path, body, status, code) => {
    const { call } = await start();
    expect(await call(method, `/domain-groups${path}`, body)).toMatchObject({ status, code });
  });

  it('are not deleted with domains in them; the default one never', async () => {
    const { call, accountId } = await start();
    const path = `/domain-groups/dgroup_${accountId}`;
    expect(await call('DELETE', path)).toMatchObject({ status: 409, code: 'GROUP_NOT_EMPTY' });
    const { groupId } = (await call('POST', '/domain-groups', { name: 'Shops' })).data.domainGroup;
    await call('PUT', '/domains', { ...INPUT, groupId });
    expect(await call('DELETE', `/domain-groups/${groupId}`)).toMatchObject({
      status: 409,
      code: 'GROUP_NOT_EMPTY',
    });
    expect((await call('GET', `/domain-groups/${groupId}`)).data.domainGroup.domainCount).toBe(1);
  });
});
