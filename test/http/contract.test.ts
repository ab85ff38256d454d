import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { HOUR } from '../../src/core/clock.ts';
import type { CreatedDomain, DomainRecord } from '../support/api-client.ts';
import { PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { enqueue } from '../support/store.ts';
import { type Answered, type Operation, readDocument } from './document.ts';
import { clientFaults, lintFaults } from './openapi/clients.ts';
import { markdownReference, readApiDoc } from './openapi/markdown.ts';

/**
 * Compares the document with the daemon: every operation is called with its examples, in the order of the document,
 * then with each kind of invalid request that the document implies. Every response must conform to the document. Ids
 * in paths come from earlier responses.
 *
 * New operations are included automatically. An operation whose example requires other resources, or has an id, needs an
 * entry in OVERRIDES.
 */
// A verification sends many DNS queries.
vi.setConfig({ testTimeout: 30_000 });

const daemon = await startInProcess();
afterAll(() => daemon.stop());
const api = await daemon.account('One');
const other = await daemon.account('Two');
const described = await readDocument(daemon.url);
const { operations } = described;
const keyed = operations.filter(({ spec }) => spec.security === undefined);

interface Override {
  /** Creates what the operation requires. */
  before?: () => Promise<void> | void;
  /** Replaces fields of the example. */
  body?: () => object;
  params?: () => Record<string, string>;
  query?: Record<string, string>;
}

/** A marketing domain, and a recipient who has given consent. */
const NEWS = { from: 'News <news@news.example.com>', to: 'grace@example.net' };

const OVERRIDES: Record<string, Override> = {
  assignDomainGroup: { body: () => ({ groupId: domainGroupId }), before: makeDomainGroup },
  verifyDomain: { before: publishDomain },
  sendMarketing: { before: agreeToNews, body: () => NEWS },
  listDomainGroupsOfOwner: { params: () => ({ ownerId: api.accountId }) },
  getMessage: { params: () => ({ id: idOf('/transactional/send', 'messageId') }) },
  cancelMessage: { params: () => ({ id: deferredMessage() }) },
  retryMessage: { params: () => ({ id: deferredMessage() }) },
  checkTlsHost: { query: { domain: `track.${PLATFORM}` } },
  sendCampaign: { before: makeCampaign, params: () => ({ campaignId }), body: () => laterToNews },
  pauseCampaign: { before: scheduleCampaign, params: () => ({ campaignId }) },
  resumeCampaign: { before: pauseCampaign, params: () => ({ campaignId }) },
  cancelCampaign: { before: scheduleCampaign, params: () => ({ campaignId }) },
  retryWebhookDelivery: { params: () => ({ deliveryId: webhookDelivery() }) },
};

/** Deleted last: other resources refer to them. */
const LAST = ['deleteDomainGroup'];

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
    scheduledAt: new Date(Date.now() + HOUR).toISOString(),
  };
}

async function scheduleCampaign(): Promise<void> {
  await makeCampaign();
  const mail = { subject: 'A', html: '{{company_address_html}}{{unsubscribe_email_html}}' };
  await api.post(`/web-setup/campaigns/${campaignId}/send`, { ...mail, ...laterToNews });
}

async function pauseCampaign(): Promise<void> {
  await scheduleCampaign();
  await api.post(`/web-setup/campaigns/${campaignId}/pause`);
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

interface Ready {
  path: string;
  body: Record<string, unknown> | undefined;
  /** Body and media type of an upload. */
  upload?: { raw: string; type: string };
}

/** Path and body of a request that succeeds. */
async function readied(operation: Operation): Promise<Ready> {
  const { before, body, params } = OVERRIDES[operation.spec.operationId] ?? {};
  await before?.();
  const overridden = params?.() ?? {};
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string, at: number) =>
    encodeURIComponent(overridden[name] ?? idOf(operation.path.slice(0, at - 1), name)),
  );
  const [[type, sent] = []] = Object.entries(operation.spec.requestBody?.content ?? {});
  if (type === undefined || sent === undefined) return { path, body: undefined };
  const { example } = sent;
  return typeof example === 'string'
    ? { path, body: undefined, upload: { raw: example, type } }
    : { path, body: { ...example, ...body?.() } };
}

async function call(
  operation: Operation,
  { path, body, upload }: Ready,
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
  // Every response conforms to the document.
  expect(described.faultsOfAnswer(operation, answer), answer.text).toEqual([]);
  expect(answer.headers.get('x-request-id')).toMatch(/./);
  expect(answer.headers.get('cache-control')).toBe('no-store');
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

/** The values of the path parameters. */
function idsIn(operation: Operation, path: string): string[] {
  const pattern = operation.path.split('/');
  return path.split('/').filter((_, at) => pattern[at]?.startsWith('{'));
}

/** An unknown id of the same format. */
function unknownLike(id: string): string {
  return id.slice(0, -1) + (id.endsWith('0') ? '1' : '0');
}

const by = (list: Operation[]) => list.map((operation) => [operation.name, operation] as const);

describe('the document', () => {
  it.each(by(operations))('has valid examples: %s', (_, operation) => {
    expect(described.faultsOfExamples(operation)).toEqual([]);
  });

  it('passes the linter', async () => {
    expect(await lintFaults(described.document)).toEqual([]);
  });

  it('is below 250 KB', () => {
    expect(JSON.stringify(described.document).length).toBeLessThan(250 * 1024);
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

  it('is the source of docs/api: run `npm run docs:api` after a change', () => {
    const expected = markdownReference(described.document);
    const actual = new Map([...expected.keys()].map((name) => [name, readApiDoc(name)]));
    expect(actual).toEqual(expected);
  });

  it('has every path in the source of the API', () => {
    const folder = new URL('../../src/http/api/', import.meta.url);
    const named = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(new URL(file, folder), 'utf8'))
      .flatMap((source) => [...source.matchAll(/path: ['`](\/[^'`$]*)['`]/g)].map((match) => match[1] ?? ''));
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((path) => described.document.paths[path] === undefined)).toEqual([]);
  });

  it.each(Object.entries(described.document.paths))('has every method of %s', async (path, methods) => {
    const expected = Object.keys(methods).map((method) => method.toUpperCase());
    if (expected.includes('GET')) expected.push('HEAD');
    const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => !expected.includes(method));
    for (const method of ['OPTIONS', ...others]) {
      const { status, headers } = await fetch(daemon.url + path.replaceAll(/\{\w+\}/g, 'x'), { method });
      expect([method, status]).toEqual([method, method === 'OPTIONS' ? 204 : 405]);
      expect(headers.get('allow')?.split(', ').toSorted()).toEqual([...expected, 'OPTIONS'].toSorted());
    }
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
  expect(faults(200, { createdAt: '2026-01-31T12:00:00Z' })[0]).toMatch(/is no time in UTC/);
});

describe('every operation', () => {
  const deleting = ({ method }: Operation) => method === 'DELETE';
  const last = ({ spec }: Operation) => LAST.includes(spec.operationId);

  it.each(by(operations.filter((operation) => !deleting(operation))))(
    'succeeds: %s',
    async (_, operation) => {
      const { query = {} } = OVERRIDES[operation.spec.operationId] ?? {};
      const answer = await call(operation, await readied(operation), { query });
      expect(answer.status, answer.text).toBeLessThan(300);
      if (operation.method !== 'GET' && !made.has(operation.path))
        made.set(operation.path, JSON.parse(answer.text).data);
    },
  );

  it.each(by(keyed))('requires a key: %s', async (_, operation) => {
    const ready = await readied(operation);
    // Failures are limited by address: each operation uses another one.
    const from = { 'X-Forwarded-For': `192.0.2.${keyed.indexOf(operation)}` };
    for (const headers of [
      { 'X-Api-Key': null },
      { 'X-Api-Key': `pr_${'0'.repeat(43)}` },
      { 'X-Id': other.accountId },
    ]) {
      const answer = await call(operation, ready, { headers: { ...from, ...headers } });
      expect([answer.status, refusalIn(answer).code]).toEqual([401, 'UNAUTHENTICATED']);
    }
  });

  it.each(by(keyed))('requires a key with its scope: %s', async (_, operation) => {
    const key = operation.spec['x-scope'] === 'setup' ? api.keys.marketing : api.keys.setup;
    const answer = await call(operation, await readied(operation), { headers: { 'X-Api-Key': key } });
    expect([answer.status, refusalIn(answer).code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });

  it.each(by(keyed.filter(({ spec }) => spec.requestBody?.content['application/json'] !== undefined)))(
    'rejects invalid JSON and other types: %s',
    async (_, operation) => {
      const ready = await readied(operation);
      const code = async (raw: string, headers = {}) =>
        refusalIn(await call(operation, ready, { raw, headers })).code;
      expect(await code('{')).toBe('INVALID_JSON');
      expect(await code('[]')).toBe('VALIDATION_ERROR');
      expect(await code('7')).toBe('VALIDATION_ERROR');
      expect(await code('{}', { 'Content-Type': 'text/plain' })).toBe('UNSUPPORTED_MEDIA_TYPE');
    },
  );

  it.each(by(keyed.filter((operation) => described.brokenRequests(operation, {}).length > 0)))(
    'names the invalid field: %s',
    async (_, operation) => {
      const ready = await readied(operation);
      for (const { what, field, body, query } of described.brokenRequests(operation, ready.body ?? {})) {
        const asked = body === undefined ? ready : { ...ready, body: body as Record<string, unknown> };
        const answer = await call(operation, asked, query === undefined ? {} : { query });
        expect([what, answer.status], answer.text).toEqual([what, 400]);
        expect(refusalIn(answer).fields.map((path) => path.split(/[.[]/)[0])).toContain(field);
      }
    },
  );

  const withIds = keyed.filter(({ path }) => path.includes('{'));

  it.each(by(withIds))(
    'responds the same to an unknown id and to that of another account: %s',
    async (_, operation) => {
      const ready = await readied(operation);
      const ids = idsIn(operation, ready.path);
      for (const id of ids) {
        const answer = await call(operation, { ...ready, path: ready.path.replace(id, unknownLike(id)) });
        expect(answer.status, answer.text).toBe(404);
      }
      const nowhere = ids.reduce((path, id) => path.replace(id, unknownLike(id)), ready.path);
      const responseTo = async (path: string) => {
        const { status, text } = await call(operation, { ...ready, path }, { by: other });
        const { requestId: _, ...rest } = JSON.parse(
          idsIn(operation, path).reduce((left, id) => left.replaceAll(id, '…'), text),
        );
        return { status, ...rest };
      };
      const ofOther = await responseTo(ready.path);
      expect(ofOther.status).toBe(404);
      expect(ofOther).toEqual(await responseTo(nowhere));
    },
  );

  it.each(by(keyed.filter(({ method, path }) => method === 'GET' && !path.includes('{'))))(
    'returns no data of another account: %s',
    async (_, operation) => {
      const { text } = await call(operation, await readied(operation), { by: other });
      const ids = [...made.values()].flatMap(
        (data) => JSON.stringify(data).match(/\w+_\d{13}_\w{12}/g) ?? [],
      );
      for (const id of [api.accountId, ...ids]) expect(text).not.toContain(id);
    },
  );

  it.each([
    ...by(operations.filter((operation) => deleting(operation) && !last(operation)).toReversed()),
    ...by(operations.filter((operation) => deleting(operation) && last(operation))),
  ])('deletes once: %s', async (_, operation) => {
    const ready = await readied(operation);
    const answer = await call(operation, ready);
    expect(answer.status, answer.text).toBe(200);
    expect((await call(operation, ready)).status).toBe(404);
  });
});
