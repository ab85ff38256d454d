import { afterAll, describe, expect, it } from 'vitest';
import type { CallOptions, DomainRecord } from '../support/api-client.ts';
import { PLATFORM, startInProcess } from '../support/in-process-daemon.ts';

/**
 * Calls each endpoint of the required interface, in its order: every field is present with its documented type.
 * Additional fields are allowed.
 */
const daemon = await startInProcess();
afterAll(() => daemon.stop());
const api = await daemon.account('Shop');

const ID = (kind: string) => expect.stringMatching(new RegExp(`^${kind}_\\d{13}_[0-9a-z]{12}$`));
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const UUID = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
const TEXT = expect.stringMatching(/./);
const BOOLEAN = expect.any(Boolean);

type Fields = Record<string, unknown>;

/** `data` of a success; the envelope has no other fields. */
async function call(
  status: number,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Fields> {
  const answer = await api.call<Fields>(method, path, options);
  expect([`${method} ${path}`, answer.status], answer.text).toEqual([`${method} ${path}`, status]);
  const envelope: Fields = JSON.parse(answer.text);
  expect(envelope).toEqual({ success: true, data: expect.any(Object) });
  return answer.data;
}

const get = (path: string) => call(200, 'GET', path);

describe('domains', () => {
  const FLAGS = { dkimEnabled: false, spfConfigured: false, dmarcConfigured: false, mxConfigured: false };
  const ALT_FLAGS = { altDkimEnabled: BOOLEAN, altSpfConfigured: BOOLEAN, altDmarcConfigured: BOOLEAN };
  const DOMAIN = {
    domainId: ID('domain'),
    domain: 'example.org',
    groupId: TEXT,
    status: 'PENDING',
    ...FLAGS,
    useCase: 'tx',
    useCaseLabel: 'Transactional',
    createdAt: TIME,
    updatedAt: TIME,
  };
  const SIX = [
    { type: 'TXT', name: expect.stringMatching(/^[a-z0-9]+\._domainkey\.example\.org$/) },
    { type: 'TXT', name: 'example.org', purpose: 'SPF' },
    { type: 'CNAME', name: 'link.example.org', purpose: 'Tracking' },
    { type: 'TXT', name: '_dmarc.example.org', purpose: 'DMARC' },
    { type: 'MX', name: 'return-a.example.org', priority: 10 },
    {
      type: 'CNAME',
      name: expect.stringMatching(/^[a-z0-9]+\._domainkey\.example\.org$/),
      purpose: TEXT,
      ttl: expect.any(Number),
    },
  ].map((record) => ({ value: TEXT, description: TEXT, ...record }));
  let path = '';

  it('GET /web-setup/use-cases', async () => {
    const { useCases, message } = await get('/web-setup/use-cases');
    expect(message).toEqual(TEXT);
    expect(useCases).toEqual(
      [
        { useCase: 'tx', useCaseName: 'Transactional' },
        { useCase: 'mk', useCaseName: 'Marketing' },
      ].map((named) => ({
        id: `${named.useCase}-local`,
        ...named,
        description: TEXT,
        icon: expect.stringMatching(/^\p{Extended_Pictographic}/u),
        region: { code: 'local', name: TEXT },
        canSendEmail: false,
      })),
    );
  });

  it('PUT /web-setup/domains', async () => {
    const body = { domain: 'example.org', useCaseId: 'tx-local' };
    const made = await call(201, 'PUT', '/web-setup/domains', { body });
    expect(made).toMatchObject({
      message: TEXT,
      domain: 'example.org',
      domainId: ID('domain'),
      groupId: TEXT,
      status: 'PENDING',
      dnsRecords: SIX,
      altDomainId: ID('alt'),
      altStatus: 'PENDING',
    });
    const records = made['dnsRecords'] as DomainRecord[];
    expect(Object.keys(records[0] ?? {})).not.toContain('purpose');
    expect(records[3]?.description).toMatch(/strict.*BIMI/i);
    expect(records[5]?.value).toBe('Creation in progress');
    path = `/web-setup/domains/${String(made['domainId'])}`;
  });

  it('GET /web-setup/domains', async () => {
    expect(await get('/web-setup/domains')).toMatchObject({ domains: [DOMAIN], total: 1 });
  });

  it('GET /web-setup/domains/{domainId}', async () => {
    expect(await get(path)).toMatchObject(DOMAIN);
  });

  it('POST /web-setup/domains/{domainId}/verify', async () => {
    const answer = (fields: Fields) => ({
      message: TEXT,
      domainId: ID('domain'),
      domain: 'example.org',
      altStatus: expect.stringMatching(/^(PENDING|ACTIVE)$/),
      ...ALT_FLAGS,
      ...fields,
    });
    const pending = await call(200, 'POST', `${path}/verify`);
    expect(pending).toMatchObject(answer({ status: 'PENDING', ...FLAGS }));
    expect(pending['message']).toMatch(/still pending/);
    const { dnsRecords } = await get(`${path}/dns-records`);
    daemon.dns.publish(
      (dnsRecords as DomainRecord[]).filter(({ value }) => value !== 'Creation in progress'),
    );
    await daemon.publishPlatform();
    const passing = { dkimEnabled: true, spfConfigured: true, dmarcConfigured: true, mxConfigured: true };
    expect(await call(200, 'POST', `${path}/verify`)).toMatchObject(
      answer({ status: 'SUCCESS', ...passing }),
    );
  });

  it('PUT /web-setup/domains/{domainId}/assign-group', async () => {
    const { domainGroup } = await call(201, 'POST', '/web-setup/domain-groups', { body: { name: 'Shops' } });
    const { groupId } = domainGroup as { groupId: string };
    expect(groupId).toEqual(ID('dgroup'));
    const moved = await call(200, 'PUT', `${path}/assign-group`, { body: { groupId } });
    expect(moved).toMatchObject({ message: TEXT, domainId: ID('domain'), groupId });
    expect(await get(path)).toMatchObject({ groupId, status: 'SUCCESS' });
  });

  it('GET /web-setup/domains/{domainId}/dns-records', async () => {
    expect(await get(`${path}/dns-records`)).toMatchObject({
      domainId: ID('domain'),
      domain: 'example.org',
      dnsRecords: SIX,
      status: 'SUCCESS',
      dkimEnabled: true,
      spfConfigured: true,
      dmarcConfigured: true,
      mxConfigured: true,
      altDomainId: ID('alt'),
      altStatus: expect.stringMatching(/^(PENDING|ACTIVE)$/),
      ...ALT_FLAGS,
    });
  });

  it('DELETE /web-setup/domains/{domainId}', async () => {
    const body = { domain: 'gone.example.org', useCaseId: 'mk-local' };
    const { domainId } = await call(201, 'PUT', '/web-setup/domains', { body });
    const deleted = await call(200, 'DELETE', `/web-setup/domains/${String(domainId)}`);
    expect(deleted).toMatchObject({ message: TEXT, domainId });
    const again = await api.get(`/web-setup/domains/${String(domainId)}`);
    expect([again.status, again.error.code]).toEqual([404, 'DOMAIN_NOT_FOUND']);
  });
});

const SUBSCRIPTIONS = '/web-setup/contacts/subscription-groups/{}/subscriptions';

describe('subscriptions', () => {
  const EMAIL = 'ada@example.net';
  const IDENTIFIER = 'email_ae2c0afa556b74f2d501305b54c34910';
  const CONSENT = { consentMethod: 'double_opt_in', consentDetails: 'Form of 1 May' };
  let path = '';
  const subscriber = (fields: Fields) => ({
    message: TEXT,
    subscriber: {
      subscriptionGroupId: ID('sgroup'),
      contactIdentifier: IDENTIFIER,
      email: EMAIL,
      userId: UUID,
      isActive: true,
      joinedAt: TIME,
      source: 'api',
      ...CONSENT,
      ...fields,
    },
  });
  const contact = { email: EMAIL, phone: '+442079460000', firstName: 'Ada', lastName: 'Lovelace' };

  it('POST …/subscriptions: 404 without a contact, 201 when new, 200 when there already', async () => {
    const made = await call(201, 'POST', '/web-setup/contacts/subscription-groups', {
      body: { name: 'News' },
    });
    const { subscriptionGroupId } = made['group'] as { subscriptionGroupId: string };
    path = SUBSCRIPTIONS.replace('{}', subscriptionGroupId);
    const unknown = await api.post(path, { email: EMAIL });
    expect([unknown.status, unknown.error.code]).toEqual([404, 'CONTACT_NOT_FOUND']);
    await call(201, 'POST', '/web-setup/contacts', { body: { ...contact, customFields: { plan: 'gold' } } });
    const added = await call(201, 'POST', path, { body: { email: EMAIL, ...CONSENT } });
    expect(added).toMatchObject(subscriber({ subscriptionGroupId }));
    const again = await call(200, 'POST', path, { body: { contactIdentifier: IDENTIFIER, isActive: false } });
    expect(again).toMatchObject(subscriber({ subscriptionGroupId }));
    const byPhone = await call(200, 'POST', path, { body: { phone: contact.phone } });
    expect(byPhone).toMatchObject(subscriber({}));
  });

  it('PUT …/subscriptions/{identifier}: 200 when updated, 201 when created', async () => {
    const body = { isActive: false, consentMethod: 'other', consentDetails: 'by phone' };
    const changed = await call(200, 'PUT', `${path}/${IDENTIFIER}`, { body });
    expect(changed).toMatchObject(subscriber(body));
    await call(200, 'DELETE', `${path}/${IDENTIFIER}`);
    const back = await call(201, 'PUT', `${path}/${IDENTIFIER}`, { body: { isActive: true, ...CONSENT } });
    expect(back).toMatchObject(subscriber({}));
    const unknown = await api.put(`${path}/email_${'0'.repeat(32)}`, {});
    expect([unknown.status, unknown.error.code]).toEqual([404, 'CONTACT_NOT_FOUND']);
    const shape = await api.put(`${path}/${EMAIL}`, {});
    expect([shape.status, shape.error.code]).toEqual([400, 'VALIDATION_ERROR']);
  });

  it('GET …/subscriptions/{identifier}: merged with the contact, without userId', async () => {
    const merged = await get(`${path}/${IDENTIFIER}`);
    expect(merged).toMatchObject({
      subscriptionGroupId: ID('sgroup'),
      contactIdentifier: IDENTIFIER,
      email: EMAIL,
      isActive: true,
      joinedAt: TIME,
      source: 'api',
      ...CONSENT,
      firstName: 'Ada',
      lastName: 'Lovelace',
      phone: contact.phone,
      globalStatus: 'active',
      customFields: { plan: 'gold' },
    });
    expect(Object.keys(merged)).not.toContain('userId');
  });

  it('DELETE …/subscriptions/{identifier}: removes the membership, not the contact', async () => {
    expect(await call(200, 'DELETE', `${path}/${IDENTIFIER}`)).toMatchObject({ message: TEXT });
    const gone = await api.get(`${path}/${IDENTIFIER}`);
    expect([gone.status, gone.error.code]).toEqual([404, 'SUBSCRIPTION_NOT_FOUND']);
    await get(`/web-setup/contacts/${IDENTIFIER}`);
  });
});

describe('webhooks', () => {
  const MILLISECONDS = expect.any(Number);
  const WEBHOOK = {
    webhookId: ID('webhook'),
    name: 'Orders',
    url: 'http://127.0.0.1:9/hook',
    events: ['email_delivered', 'email_clicked'],
    isActive: true,
    createdAt: MILLISECONDS,
  };
  let path = '';

  it('GET /web-setup/webhooks', async () => {
    const { name, url, events } = WEBHOOK;
    const made = await call(201, 'POST', '/web-setup/webhooks', { body: { name, url, events } });
    path = `/web-setup/webhooks/${String(made['webhookId'])}`;
    const { webhooks, count } = await get('/web-setup/webhooks');
    expect([webhooks, count]).toMatchObject([[WEBHOOK], 1]);
    expect(JSON.stringify(webhooks)).not.toContain('whsec_');
  });

  it('GET /web-setup/webhooks/{webhookId}', async () => {
    const webhook = await get(path);
    expect(webhook).toMatchObject({
      ...WEBHOOK,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32,}=*$/),
      updatedAt: MILLISECONDS,
    });
    expect(Math.abs(Number(webhook['createdAt']) - Date.now())).toBeLessThan(60_000);
  });

  it('DELETE /web-setup/webhooks/{webhookId}', async () => {
    expect(await call(200, 'DELETE', path)).toMatchObject({ message: TEXT, webhookId: ID('webhook') });
    expect(await get('/web-setup/webhooks')).toMatchObject({ webhooks: [], count: 0 });
    const again = await api.get(path);
    expect([again.status, again.error.code]).toEqual([404, 'WEBHOOK_NOT_FOUND']);
  });
});

describe('sending', () => {
  const MAIL = {
    subject: 'Hello {{name}}',
    html: '<p>Hello {{name}}</p>{{company_address_html}} {{unsubscribe_email_html}} {{report_abuse_email_html}}',
    text: 'Hello {{name}}: {{unsubscribe_url}}',
    replyTo: 'Help <help@example.org>',
    headers: { 'X-Order': '10042' },
    templateVariables: { name: 'Ada' },
    enableClickTracking: true,
    enableOpenTracking: true,
  };
  const TO = `delivered@simulator.${PLATFORM}`;

  it('POST {marketing_url}/send', async () => {
    const { domainId, dnsRecords } = await call(201, 'PUT', '/web-setup/domains', {
      body: { domain: 'news.example.org', useCaseId: 'mk-local' },
    });
    daemon.dns.publish(
      (dnsRecords as DomainRecord[]).filter(({ value }) => value !== 'Creation in progress'),
    );
    await call(200, 'POST', `/web-setup/domains/${String(domainId)}/verify`);
    const { campaign } = await call(201, 'POST', '/web-setup/campaigns', { body: { name: 'Spring' } });
    const made = await call(201, 'POST', '/web-setup/contacts/subscription-groups', {
      body: { name: 'Test' },
    });
    const { subscriptionGroupId } = made['group'] as { subscriptionGroupId: string };
    await call(201, 'POST', '/web-setup/contacts', { body: { email: TO } });
    await call(201, 'POST', SUBSCRIPTIONS.replace('{}', subscriptionGroupId), { body: { email: TO } });
    const { campaignId } = campaign as { campaignId: string };
    const from = 'News <news@news.example.org>';
    const sent = await call(202, 'POST', '/marketing/send', {
      body: { ...MAIL, to: TO, from, subscriptionGroupId, campaignId },
      headers: { 'Idempotency-Key': '6f1c2f0e-7f53-4a39-9d2a-5f8f3f1c2f0e' },
    });
    expect(sent).toMatchObject({
      message: TEXT,
      jobId: ID('job'),
      status: 'queued',
      from,
      totalRecipients: 1,
      recipients: [{ email: TO, status: 'queued', role: 'to' }],
    });
  });

  it('POST {transactional_url}/send', async () => {
    const from = 'Shop <shop@example.org>';
    const content = Buffer.from('hello').toString('base64');
    const body = {
      ...MAIL,
      to: TO,
      from,
      attachments: [{ name: 'a.txt', contentType: 'text/plain', content }],
    };
    const headers = { 'Idempotency-Key': '6f1c2f0e-7f53-4a39-9d2a-5f8f3f1c2f0e' };
    const sent = await call(200, 'POST', '/transactional/send', { body, headers });
    expect(sent).toMatchObject({
      message: TEXT,
      messageId: ID('msg'),
      from,
      totalRecipients: 1,
      recipients: [{ email: TO, status: 'sent', role: 'to' }],
      status: 'sent',
    });
    expect(Object.keys(sent)).not.toContain('warnings');
    const again = await api.send(body, headers);
    expect([again.status, again.data, again.headers.get('idempotency-replayed')]).toEqual([
      200,
      sent,
      'true',
    ]);
  });
});

describe('authentication', () => {
  it.each([
    ['GET', '/web-setup/domains', 'marketing'],
    ['POST', '/transactional/send', 'marketing'],
    ['POST', '/transactional/send', 'setup'],
  ] as const)('%s %s rejects the key for %s', async (method, path, scope) => {
    const { status, error } = await api.call(method, path, { headers: { 'X-Api-Key': api.keys[scope] } });
    expect([status, error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });
});
