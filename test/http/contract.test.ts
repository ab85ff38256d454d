import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { NO_HYGIENE } from '../../src/audience/hygiene/checks.ts';
import { NO_COUNTS } from '../../src/audience/import/import.ts';
import { HOUR } from '../../src/core/clock.ts';
import type { ApiClient, CreatedDomain, DomainRecord } from '../support/api-client.ts';
import { PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { enqueue } from '../support/store.ts';
import { type Answered, type Operation, readDocument } from './document.ts';
import { clientFaults, lintFaults } from './openapi/clients.ts';

/**
 * Compares the document with the daemon: every operation is called with its examples, in the order of the document,
 * then with each kind of invalid request that the document implies. Every response must conform to the document. Ids
 * in paths come from earlier responses.
 *
 * New operations are included automatically. An operation whose example requires other resources, or has an id, needs an
 * entry in OVERRIDES.
 */
// Each test sends requests to all operations.
const daemon = await startInProcess();
afterAll(() => daemon.stop());
const api = await daemon.account('One');
const other = await daemon.account('Two');
const described = await readDocument(daemon.url);
const { operations, document } = described;
const keyed = operations.filter(({ spec }) => spec.security === undefined);

interface Override {
  /** Creates what the operation requires. */
  before?: () => Promise<void> | void;
  /** Replaces fields of the example. */
  body?: () => object;
  params?: () => Record<string, string>;
  query?: Record<string, string>;
  upload?: PreparedRequest['upload'];
}

/** A PNG of one pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

/** A marketing domain, and a recipient who has given consent. */
const NEWS = { from: 'News <news@news.example.com>', to: 'grace@example.net' };

const OVERRIDES: Record<string, Override> = {
  uploadMedia: { upload: { raw: PIXEL, type: 'image/png' } },
  assignDomainGroup: { body: () => ({ groupId: domainGroupId }), before: makeDomainGroup },
  verifyDomain: { before: publishDomain },
  resendTransactional: { before: cancelMessage, body: () => ({ messageId: cancelledId }) },
  sendMarketing: { before: agreeToNews, body: () => NEWS },
  listDomainGroupsOfOwner: { params: () => ({ ownerId: api.accountId }) },
  getMessage: { params: () => ({ id: idOf('/transactional/send', 'messageId') }) },
  getMessageContent: { params: () => ({ id: idOf('/transactional/send', 'messageId') }) },
  getMessageSource: { params: () => ({ id: idOf('/transactional/send', 'messageId') }) },
  rescheduleMessage: {
    before: scheduleMessage,
    params: () => ({ id: scheduledId }),
    body: () => ({ scheduledAt: inAnHour() }),
  },
  cancelMessage: { params: () => ({ id: deferredMessage() }) },
  retryMessage: { params: () => ({ id: deferredMessage() }) },
  checkTlsHost: { query: { domain: `track.${PLATFORM}` } },
  sendCampaign: { before: makeCampaign, params: () => ({ campaignId }), body: () => laterToNews },
  pauseCampaign: { before: scheduleCampaign, params: () => ({ campaignId }) },
  resumeCampaign: { before: pauseCampaign, params: () => ({ campaignId }) },
  chooseCampaignWinner: { before: scheduleTest, params: () => ({ campaignId }) },
  cancelCampaign: { before: scheduleCampaign, params: () => ({ campaignId }) },
  getCampaignContent: { before: scheduleCampaign, params: () => ({ campaignId }) },
  testCampaign: {
    before: async () => {
      await inviteColleague();
      await scheduleCampaign();
    },
    params: () => ({ campaignId }),
    body: () => ({ to: [COLLEAGUE] }),
  },
  testTemplate: {
    before: inviteColleague,
    body: () => ({
      to: [COLLEAGUE],
      from: 'orders@example.com',
      templateVariables: { orderNumber: '7', name: 'Ada' },
    }),
  },
  createSequence: { body: () => SEQUENCE },
  updateSequence: { before: makeSequence, params: () => ({ sequenceId }) },
  patchSequence: { before: makeSequence, params: () => ({ sequenceId }) },
  activateSequence: { before: makeSequence, params: () => ({ sequenceId }) },
  pauseSequence: { before: activateSequence, params: () => ({ sequenceId }) },
  deleteSequence: { before: makeSequence, params: () => ({ sequenceId }) },
  explainQueuedMessage: { params: () => ({ messageId: idOf('/transactional/send', 'messageId') }) },
  explainQueuedDestination: { params: () => ({ destination: 'example.net' }) },
  getInstallationAccount: { params: () => ({ accountId: api.accountId }) },
  patchInstallationAccount: { params: () => ({ accountId: api.accountId }) },
  getTemplateVersion: {
    params: () => ({ templateId: idOf('/web-setup/templates', 'templateId'), version: '1' }),
    before: changeTemplate,
  },
  getPublicPageTexts: { params: () => ({ language: 'en' }) },
  resumeSending: { params: limitedSending },
  getInboxMail: { params: receivedMail },
  getInboxSource: { params: receivedMail },
  updateInboxMail: { params: receivedMail },
  createInboundRoute: { body: () => ({ domainId: idOf('/web-setup/domains', 'domainId') }) },
  getInboundMail: { params: inboundMail },
  getInboundSource: { params: inboundMail },
  getInboundAttachment: { params: () => ({ ...inboundMail(), n: '0' }) },
  deleteInboundMail: { params: inboundMail },
  createAccountKey: { params: () => ({ accountId: api.accountId }) },
  // The calling key has the scope `setup` only.
  createKey: { body: () => ({ scopes: ['setup'] }) },
  revokeKey: { before: makeKey, params: () => ({ keyId: ownKeyId }) },
  setAccountStatus: { before: makeAccount, params: () => ({ accountId: otherAccount.accountId }) },
  listAccountKeys: { params: () => ({ accountId: api.accountId }) },
  revokeAccountKey: { before: makeAccount, params: otherKey },
  listSuppressionRemovals: { query: { email: 'ada@example.net' } },
  // The time in the example has passed.
  createQueueControl: { body: () => ({ until: null }) },
  getContactImport: { params: waitingImport },
  cancelContactImport: { params: waitingImport },
  cancelHygieneRun: { params: waitingExamination },
  deleteQueueControl: {
    before: pauseDestination,
    params: () => ({ scope: 'destination', target: 'paused.example' }),
  },
  getWebhookDelivery: { params: () => ({ deliveryId: webhookDelivery() }) },
  retryWebhookDelivery: { params: () => ({ deliveryId: webhookDelivery() }) },
};

async function changeTemplate(): Promise<void> {
  const path = `/web-setup/templates/${idOf('/web-setup/templates', 'templateId')}`;
  await api.put(path, { text: `Changed at ${performance.now()}` });
}

/** An import that the daemon has not found yet. */
function waitingImport(): { importId: string } {
  const importId = `import_${Date.now()}_${randomUUID().slice(-12)}`;
  daemon.tables.backgroundImports.add({
    ignored: '[]',
    import_id: importId,
    account_id: api.accountId,
    group_id: null,
    file_name: 'people.csv',
    format: 'csv',
    columns: null,
    actor: '{}',
    bytes: 100,
    counts: JSON.stringify(NO_COUNTS),
    hygiene_mode: 'off',
    created_at: Date.now(),
  });
  return { importId };
}

/** An examination of contacts that the daemon has not found yet. */
function waitingExamination(): { hygieneId: string } {
  const hygieneId = `hygiene_${Date.now()}_${randomUUID().slice(-12)}`;
  daemon.tables.hygiene.add({
    hygiene_id: hygieneId,
    account_id: api.accountId,
    group_id: null,
    status: 'waiting',
    counts: JSON.stringify(NO_HYGIENE),
    created_at: Date.now(),
    finished_at: null,
  });
  return { hygieneId };
}

/** A mail to postmaster@. */
function receivedMail(): { number: string } {
  if (daemon.tables.keptMail.head(1) === null)
    daemon.tables.keptMail.insert({
      box: 'postmaster',
      kind: 'unknown',
      recipient: `postmaster@${PLATFORM}`,
      sender: 'grace@example.net',
      remote_address: '192.0.2.7',
      network: '192.0.2.0/24',
      message_seq: null,
      received_at: Date.now(),
      raw: Buffer.from('Subject: hello\r\n\r\nhello\r\n'),
    });
  return { number: '1' };
}

/** A mail with an attachment that came to a route. */
function inboundMail(): { inboundId: string } {
  const inboundId = `inb_${Date.now()}_${randomUUID().slice(-12)}`;
  const raw = Buffer.from('Content-Disposition: attachment\r\n\r\nhello\r\n');
  const { inbound } = daemon.tables;
  const source = inbound.insertSource(api.accountId, raw.length);
  inbound.insertPart(source, 0, raw);
  inbound.setState(source, 'stored');
  inbound.insert({
    inbound_id: inboundId,
    account_id: api.accountId,
    route_id: 'route_1',
    source_seq: source,
    status: 'parsed',
    sender: '',
    recipient: 'support@in.example.com',
    helo: '',
    remote_address: '192.0.2.7',
    received_at: Date.now(),
    from_address: '',
    subject: '',
    answers: null,
    automatic: null,
    is_loop: 0,
    attachments: 1,
    parse_error: null,
    authentication: null,
    content: null,
  });
  return { inboundId };
}

/** Deleted last: other resources refer to them. */
const LAST = ['deleteDomainGroup'];

let otherAccount: ApiClient;
/** An account that may be disabled. */
async function makeAccount(): Promise<void> {
  otherAccount = await daemon.account('Other');
}

let ownKeyId = '';
async function makeKey(): Promise<void> {
  const made = await api.post<{ key: { keyId: string } }>('/web-setup/keys', { scopes: ['setup'] });
  ownKeyId = made.data.key.keyId;
}

function otherKey(): { accountId: string; keyId: string } {
  const { accountId } = otherAccount;
  const [key] = daemon.tables.apiKeys.list(accountId);
  if (key === undefined) throw new Error('the account has no key');
  return { accountId, keyId: key.key_id };
}

let domainGroupId = '';
async function makeDomainGroup(): Promise<void> {
  const made = await api.post<{ domainGroup: { groupId: string } }>('/web-setup/domain-groups', {
    name: 'A',
  });
  domainGroupId = made.data.domainGroup.groupId;
}

async function publishDomain(): Promise<void> {
  const path = `/web-setup/domains/${idOf('/web-setup/domains', 'domainId')}/dns-records`;
  const { data } = await api.get<{ dnsRecords: DomainRecord[] }>(path);
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
}

let agreed = false;
async function agreeToNews(): Promise<void> {
  if (agreed) return;
  agreed = true;
  const input = { domain: 'news.example.com', useCaseId: 'mk-local' };
  const { data } = await api.put<CreatedDomain>('/web-setup/domains', input);
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await api.post(`/web-setup/domains/${data.domainId}/verify`);
  await api.post('/web-setup/contacts', { email: NEWS.to });
}

let campaignId = '';
/** Fields of a scheduled send, so that no mail is delivered. */
let laterToNews: Record<string, unknown> = {};
async function makeCampaign(): Promise<void> {
  await agreeToNews();
  const campaign = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'A',
  });
  campaignId = campaign.data.campaign.campaignId;
  const path = '/web-setup/contacts/subscription-groups';
  const { data } = await api.post<{ group: { subscriptionGroupId: string } }>(path, { name: 'A' });
  laterToNews = {
    subscriptionGroupId: data.group.subscriptionGroupId,
    from: NEWS.from,
    scheduledAt: inAnHour(),
  };
}

function inAnHour(): string {
  return new Date(Date.now() + HOUR).toISOString();
}

let scheduledId = '';
async function scheduleMessage(): Promise<void> {
  const { data } = await api.send({
    from: 'orders@example.com',
    to: 'eve@example.net',
    subject: 'A',
    html: '{{company_address_html}}{{unsubscribe_email_html}}',
    scheduledAt: inAnHour(),
  });
  scheduledId = data.messageId;
}

async function scheduleCampaign(): Promise<void> {
  await makeCampaign();
  const mail = { subject: 'A', html: '{{company_address_html}}{{unsubscribe_email_html}}' };
  await api.post(`/web-setup/campaigns/${campaignId}/send`, { ...mail, ...laterToNews });
}

const COLLEAGUE = 'colleague@example.com';
let invited = false;
/** A person of the account, who can receive test messages. */
async function inviteColleague(): Promise<void> {
  if (invited) return;
  invited = true;
  await daemon.people.invite(api.accountId, { email: COLLEAGUE, role: 'viewer' }, 'operator');
}

/** A campaign with an A/B test. */
async function scheduleTest(): Promise<void> {
  await makeCampaign();
  const mail = { subject: 'A', html: '{{company_address_html}}{{unsubscribe_email_html}}' };
  await api.post(`/web-setup/campaigns/${campaignId}/send`, {
    ...mail,
    ...laterToNews,
    enableOpenTracking: true,
    variants: [{}, { subject: 'B' }],
    test: { share: 20, winner: 'opens', waitHours: 4 },
  });
}

async function pauseCampaign(): Promise<void> {
  await scheduleCampaign();
  await api.post(`/web-setup/campaigns/${campaignId}/pause`);
}

/** The template and the group of the example do not exist. */
const SEQUENCE = {
  name: 'Welcome',
  trigger: { event: 'order placed' },
  steps: [
    {
      send: {
        from: NEWS.from,
        subject: 'Welcome',
        html: '<p>Hello</p>{{company_address_html}}{{unsubscribe_email_html}}',
      },
    },
  ],
};

let sequenceId = '';
async function makeSequence(): Promise<void> {
  await agreeToNews();
  const { data } = await api.post<{ sequence: { sequenceId: string } }>('/web-setup/sequences', SEQUENCE);
  sequenceId = data.sequence.sequenceId;
}

async function activateSequence(): Promise<void> {
  await makeSequence();
  await api.post(`/web-setup/sequences/${sequenceId}/activate`);
}

/** A stream of the account that is slowed. */
function limitedSending(): { limitId: string } {
  const limitId = 'limit_1769860800000_9z1x3c5v7b2n';
  daemon.tables.sendingLimits.put({
    limit_id: limitId,
    account_id: api.accountId,
    stream: 'mk',
    domain_id: '',
    provider: '',
    level: 'slow',
    figures: JSON.stringify({
      reason: 'hard_bounces',
      messages: 1000,
      events: 100,
      rate: 10,
      lowerBound: 8.2,
      limit: 5,
    }),
    per_minute: 1,
    since: Date.now(),
    counts_from: 0,
    seen_counts: null,
  });
  return { limitId };
}

function pauseDestination(): void {
  daemon.tables.queueControls.put({
    scope: 'destination',
    target: 'paused.example',
    action: 'pause',
    reason: 'A test',
    until: null,
    created_at: Date.now(),
    created_by: 'test',
  });
}

let cancelledId = '';
async function cancelMessage(): Promise<void> {
  const { data } = await api.send({
    from: 'orders@example.com',
    to: 'eve@example.net',
    subject: 'A',
    html: '{{company_address_html}}{{unsubscribe_email_html}}',
  });
  cancelledId = data.messageId;
  await api.post(`/web-setup/messages/${cancelledId}/cancel`);
}

/** A message that is deferred for an hour. */
function deferredMessage(): string {
  const message = enqueue(daemon.tables, Date.now(), {
    account_id: api.accountId,
    domain_id: idOf('/web-setup/domains', 'domainId'),
    dueAt: Date.now() + HOUR,
  });
  daemon.tables.messages.setState(message.seq, 'deferred', Date.now(), null, null);
  return message.message_id;
}

/** A pending delivery of the webhook. */
function webhookDelivery(): string {
  const webhook = daemon.tables.webhooks.get(api.accountId, idOf('/web-setup/webhooks', 'webhookId'));
  if (webhook === null) throw new Error('the webhook does not exist');
  const at = Date.now();
  const id = `${at}_${randomUUID().slice(-12)}`;
  const eventSeq = daemon.tables.events.insert({
    event_id: `evt_${id}`,
    account_id: api.accountId,
    kind: 'email_sent',
    at,
    message_seq: null,
    domain_id: null,
    data: '{}',
  });
  daemon.tables.webhookDeliveries.insert({
    webhook: webhook.number,
    eventSeq,
    deliveryId: `whd_${id}`,
    at,
  });
  return `whd_${id}`;
}

/** `data` of the first successful write by path: the source of ids. */
const made = new Map<string, unknown>();

function idOf(path: string, name: string): string {
  const id = find(made.get(path), name) ?? find(made.get(path), ALIASES[name] ?? '');
  if (id === null) throw new Error(`no response of ${path} has ${name}: add it to OVERRIDES`);
  return id;
}

/** Names of ids in responses that differ from those in paths. */
const ALIASES: Record<string, string> = { identifier: 'contactIdentifier' };

function find(value: unknown, name: string): string | null {
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, inner] of Object.entries(value)) {
    const id: unknown = key === name ? inner : find(inner, name);
    if (typeof id === 'string') return id;
  }
  return null;
}

interface PreparedRequest {
  path: string;
  body: Record<string, unknown> | undefined;
  /** Body and media type of an upload. */
  upload?: { raw: string | Buffer; type: string };
}

/** Path and body of a request that succeeds. */
async function prepare(operation: Operation): Promise<PreparedRequest> {
  const { before, body, params, upload } = OVERRIDES[operation.spec.operationId] ?? {};
  await before?.();
  const overridden = params?.() ?? {};
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string, at: number) =>
    encodeURIComponent(overridden[name] ?? idOf(operation.path.slice(0, at - 1), name)),
  );
  if (upload !== undefined) return { path, body: undefined, upload };
  const [[type, sent] = []] = Object.entries(operation.spec.requestBody?.content ?? {});
  if (type === undefined || sent === undefined) return { path, body: undefined };
  const { example } = sent;
  return typeof example === 'string'
    ? { path, body: undefined, upload: { raw: example, type } }
    : { path, body: { ...example, ...body?.() } };
}

/** Responses that do not conform to the document. */
const deviations: string[] = [];

async function call(
  operation: Operation,
  { path, body, upload }: PreparedRequest,
  options: {
    query?: Record<string, string>;
    raw?: string;
    headers?: Record<string, string | null>;
    by?: typeof api;
  } = {},
): Promise<Answered> {
  const { query = {}, raw = upload?.raw, by = api } = options;
  const headers = { ...(upload === undefined ? {} : { 'Content-Type': upload.type }), ...options.headers };
  const search = new URLSearchParams(query).toString();
  const answer = await by.call(operation.method, search === '' ? path : `${path}?${search}`, {
    headers,
    ...(raw === undefined ? (body === undefined ? {} : { body }) : { rawBody: raw }),
  });
  const faults = described.faultsOfAnswer(operation, answer);
  if (answer.headers.get('x-request-id') === null) faults.push('no X-Request-Id');
  if (answer.headers.get('cache-control') !== 'no-store') faults.push('no Cache-Control: no-store');
  deviations.push(...faults.map((fault) => `${operation.name}: ${fault} ${answer.text}`));
  return answer;
}

interface Refused {
  code: string;
  fields: string[];
}

function refusalIn({ text }: Answered): Refused {
  const { error } = JSON.parse(text);
  return { code: error.code, fields: (error.details ?? []).map(({ field }: { field: string }) => field) };
}

/** Status and error code: `401 UNAUTHENTICATED`. */
function outcome(answer: Answered): string {
  return `${answer.status} ${answer.status < 400 ? '' : refusalIn(answer).code}`;
}

/** The values of the path parameters. */
function idsIn(operation: Operation, path: string): string[] {
  const pattern = operation.path.split('/');
  return path.split('/').filter((_, at) => pattern[at]?.startsWith('{'));
}

/** An unknown id of the same format. */
function unknownLike(id: string): string {
  return id.slice(0, -1) + (id.endsWith('0') ? '1' : '0');
}

/** The row of each operation, by name: a comparison shows all operations that deviate. */
async function table<Row>(
  list: readonly Operation[],
  rowOf: (operation: Operation) => Promise<Row>,
): Promise<Record<string, Row>> {
  const rows: Record<string, Row> = {};
  for (const operation of list) rows[operation.name] = await rowOf(operation);
  return rows;
}

function same<Row>(list: readonly Operation[], row: Row): Record<string, Row> {
  return Object.fromEntries(list.map(({ name }) => [name, row]));
}

const linter = requirePrograms('redocly');

describe('the document', () => {
  it('has valid examples', async () => {
    expect(await table(operations, async (operation) => described.faultsOfExamples(operation))).toEqual(
      same(operations, []),
    );
  });

  it.skipIf(linter.missing)(`passes the linter${linter.reason}`, async () => {
    expect(await lintFaults(described.document)).toEqual([]);
  });

  it('takes less than 2.8 KB for each operation on average', () => {
    const { length } = JSON.stringify(described.document);
    expect(length / operations.length).toBeLessThan(2800);
  });

  it('names the schema of every request', () => {
    const anonymous = operations.filter(({ spec }) => {
      const schema = spec.requestBody?.content['application/json']?.schema;
      return schema !== undefined && schema['$ref'] === undefined;
    });
    expect(anonymous.map(({ name }) => name)).toEqual([]);
  });

  it('describes every tag', () => {
    expect(described.document.tags.filter(({ description }) => description === undefined)).toEqual([]);
  });

  it('yields a client that compiles', async () => {
    expect(await clientFaults(described.document)).toBe('');
  });

  it('has every method of every path', async () => {
    const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
    const expected: unknown[] = [];
    const actual: unknown[] = [];
    for (const [path, described] of Object.entries(document.paths)) {
      const known = Object.keys(described).map((method) => method.toUpperCase());
      if (known.includes('GET')) known.push('HEAD');
      for (const method of ['OPTIONS', ...methods.filter((method) => !known.includes(method))]) {
        const { status, headers } = await fetch(daemon.url + path.replaceAll(/\{\w+\}/g, 'x'), { method });
        actual.push([path, method, status, headers.get('allow')?.split(', ').toSorted()]);
        expected.push([path, method, method === 'OPTIONS' ? 204 : 405, [...known, 'OPTIONS'].toSorted()]);
      }
    }
    expect(actual).toEqual(expected);
  });
});

it('reports deviations of a response from the document', () => {
  const operation = operations.find(({ spec }) => spec.operationId === 'getCampaign');
  if (operation === undefined) throw new Error('getCampaign does not exist');
  const [example] = described.examplesOf(operation, '200') as {
    data: { campaign: Record<string, unknown> };
  }[];
  if (example === undefined) throw new Error('getCampaign has no example');
  const faults = (status: number, changes: Record<string, unknown>) => {
    const campaign = { ...example.data.campaign, ...changes };
    return described.faultsOfAnswer(operation, {
      status,
      headers: new Headers({ 'content-type': 'application/json; charset=utf-8' }),
      text: JSON.stringify({ success: true, data: { campaign } }),
    });
  };
  expect(faults(200, {})).toEqual([]);
  expect(faults(201, {})).toEqual(['status 201 is not in the document']);
  expect(faults(200, { status: 'odd' })[0]).toMatch(/^\/data\/campaign\/status /);
  expect(faults(200, { name: undefined })[0]).toMatch(/required property 'name'/);
  expect(faults(200, { more: 1 })[0]).toMatch(/must NOT have unevaluated properties/);
  expect(faults(200, { createdAt: '2026-01-31' })[0]).toMatch(/^\/data\/campaign\/createdAt /);
  expect(faults(200, { createdAt: '2026-01-31T12:00:00Z' })[0]).toMatch(/is not a time in UTC/);
});

describe('every operation', () => {
  const deleting = ({ method }: Operation) => method === 'DELETE';
  const last = ({ spec }: Operation) => LAST.includes(spec.operationId);
  const others = operations.filter((operation) => !deleting(operation));

  it('succeeds', async () => {
    const statuses = await table(others, async (operation) => {
      const { query = {} } = OVERRIDES[operation.spec.operationId] ?? {};
      const answer = await call(operation, await prepare(operation), { query });
      if (answer.status >= 300) return answer.text;
      if (operation.method !== 'GET' && !made.has(operation.path))
        made.set(operation.path, JSON.parse(answer.text).data);
      return 'success';
    });
    expect(statuses).toEqual(same(others, 'success'));
  });

  it('requires a key', async () => {
    const invalid = [
      { 'X-Api-Key': null },
      { 'X-Api-Key': `pr_${'0'.repeat(43)}` },
      { 'X-Id': other.accountId },
    ];
    const results = await table(keyed, async (operation) => {
      const ready = await prepare(operation);
      // Failures are limited by address: each operation uses another one.
      const from = { 'X-Forwarded-For': `192.0.2.${keyed.indexOf(operation)}` };
      const codes: string[] = [];
      for (const headers of invalid)
        codes.push(outcome(await call(operation, ready, { headers: { ...from, ...headers } })));
      return codes;
    });
    expect(results).toEqual(
      same(
        keyed,
        invalid.map(() => '401 UNAUTHENTICATED'),
      ),
    );
  });

  it('requires a key with its scope', async () => {
    const results = await table(keyed, async (operation) => {
      const key = operation.spec['x-scope'] === 'setup' ? api.keys.marketing : api.keys.setup;
      return outcome(await call(operation, await prepare(operation), { headers: { 'X-Api-Key': key } }));
    });
    expect(results).toEqual(same(keyed, '403 INSUFFICIENT_SCOPE'));
  });

  it('rejects invalid JSON and other media types', async () => {
    const withJson = keyed.filter(({ spec }) => spec.requestBody?.content['application/json'] !== undefined);
    const results = await table(withJson, async (operation) => {
      const ready = await prepare(operation);
      const code = async (raw: string, headers = {}) =>
        refusalIn(await call(operation, ready, { raw, headers })).code;
      return [
        await code('{'),
        await code('[]'),
        await code('7'),
        await code('{}', { 'Content-Type': 'text/plain' }),
      ];
    });
    expect(results).toEqual(
      same(withJson, ['INVALID_JSON', 'VALIDATION_ERROR', 'VALIDATION_ERROR', 'UNSUPPORTED_MEDIA_TYPE']),
    );
  });

  it('names the invalid field', async () => {
    const expected: unknown[] = [];
    const actual: unknown[] = [];
    for (const operation of keyed) {
      const ready = await prepare(operation);
      for (const { what, field, body, query } of described.brokenRequests(operation, ready.body ?? {})) {
        const sent = body === undefined ? ready : { ...ready, body: body as Record<string, unknown> };
        const answer = await call(operation, sent, query === undefined ? {} : { query });
        const fields = answer.status === 400 ? refusalIn(answer).fields : [answer.text];
        const named = fields.map((path) => path.split(/[.[]/)[0]);
        actual.push([operation.name, what, answer.status, named.includes(field) ? field : named]);
        expected.push([operation.name, what, 400, field]);
      }
    }
    expect(expected.length).toBeGreaterThan(100);
    expect(actual).toEqual(expected);
  });

  it('responds the same to an unknown id and to that of another account', async () => {
    // Operators see all accounts, and a language is no id.
    const withIds = keyed.filter(
      ({ path, spec }) => /\{(?!language\})/.test(path) && spec['x-scope'] !== 'operator',
    );
    const results = await table(withIds, async (operation) => {
      const ready = await prepare(operation);
      const ids = idsIn(operation, ready.path);
      const statuses = new Set<number>();
      for (const id of ids) {
        const path = ready.path.replace(id, unknownLike(id));
        statuses.add((await call(operation, { ...ready, path })).status);
      }
      const responseTo = async (path: string) => {
        const { status, text } = await call(operation, { ...ready, path }, { by: other });
        statuses.add(status);
        const { requestId: _, ...rest } = JSON.parse(
          idsIn(operation, path).reduce((left, id) => left.replaceAll(id, '…'), text),
        );
        return rest;
      };
      const unknown = ids.reduce((path, id) => path.replace(id, unknownLike(id)), ready.path);
      const ofOther = await responseTo(ready.path);
      const ofUnknown = await responseTo(unknown);
      return {
        statuses: [...statuses],
        difference: isDeepStrictEqual(ofOther, ofUnknown) ? null : [ofOther, ofUnknown],
      };
    });
    expect(results).toEqual(same(withIds, { statuses: [404], difference: null }));
  });

  it('returns no data of another account', async () => {
    const lists = keyed.filter(
      // Operators see the whole installation.
      ({ method, path, spec }) => method === 'GET' && !path.includes('{') && spec['x-scope'] !== 'operator',
    );
    const ids = [...made.values()].flatMap((data) => JSON.stringify(data).match(/\w+_\d{13}_\w{12}/g) ?? []);
    const results = await table(lists, async (operation) => {
      const { text } = await call(operation, await prepare(operation), { by: other });
      return [api.accountId, ...ids].filter((id) => text.includes(id));
    });
    expect(ids.length).toBeGreaterThan(10);
    expect(results).toEqual(same(lists, []));
  });

  it('deletes once', async () => {
    const deletions = [
      ...operations.filter((operation) => deleting(operation) && !last(operation)).toReversed(),
      ...operations.filter((operation) => deleting(operation) && last(operation)),
    ];
    const results = await table(deletions, async (operation) => {
      const ready = await prepare(operation);
      return [(await call(operation, ready)).status, (await call(operation, ready)).status];
    });
    expect(results).toEqual(same(deletions, [200, 404]));
  });

  it('conforms to the document in all responses above', () => {
    expect(deviations).toEqual([]);
  });
});
