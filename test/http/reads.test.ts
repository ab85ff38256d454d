import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type OpenApiDocument, resolveResponse } from '../../src/http/openapi/document.ts';
import { type Route, routesOf } from '../../src/http/route.ts';
import { ReadRejected } from '../../src/store/database/failure.ts';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { type Api, jsonOf, startApi } from './harness.ts';

const route = routesOf({ tag: 'Things', scope: 'setup' });

/** A list whose read is rejected. */
function rejectedList(name: ReadRejected['reason']): Route {
  return route(`GET /web-setup/${name}`, {
    operationId: name,
    summary: 'List things',
    query: z.object({ color: z.string().optional(), limit: z.string().optional() }),
    response: { description: 'Things.', data: z.object({}) },
    narrowBy: ['color', 'limit'],
    handle: () => {
      throw new ReadRejected(name, 'no rows');
    },
  });
}

describe('a read that a reader thread did not finish', () => {
  let api: Api;
  beforeAll(async () => {
    const reasons = ['too-broad', 'busy', 'lost', 'closing'] as const;
    api = await startApi({ routes: reasons.map(rejectedList) });
  });
  afterAll(() => api.stop());

  const get = async (path: string) => {
    const response = await fetch(`${api.base}${path}`, { headers: api.as('setup') });
    return { response, body: await jsonOf(response) };
  };

  it('is answered 503 QUERY_TOO_BROAD with the parameters that narrow it', async () => {
    const { response, body } = await get('/web-setup/too-broad');
    expect(response.status).toBe(503);
    expect(body['error']).toEqual({
      code: 'QUERY_TOO_BROAD',
      message: 'No rows: narrow it with `color`, `limit`',
      details: [
        { field: 'color', message: 'narrows the query' },
        { field: 'limit', message: 'narrows the query' },
      ],
    });
    // A repeated query would fail, too.
    expect(response.headers.has('retry-after')).toBe(false);
  });

  it('names only filters that are not set yet', async () => {
    const { body } = await get('/web-setup/too-broad?color=red&limit=10');
    expect(body['error']).toEqual({
      code: 'QUERY_TOO_BROAD',
      message: 'No rows: narrow it with `limit`',
      details: [{ field: 'limit', message: 'narrows the query' }],
    });
  });

  it.each(['busy', 'lost', 'closing'])('is answered 503 with Retry-After: %s', async (reason) => {
    const { response, body } = await get(`/web-setup/${reason}`);
    expect([response.status, body['reasonCode'], response.headers.get('retry-after')]).toEqual([
      503,
      'UNAVAILABLE',
      '1',
    ]);
    expect(api.logged.filter(({ msg }) => msg === 'request failed')).toEqual([]);
  });

  it('is in the document of operations that may cause it', async () => {
    const response = await fetch(`${api.base}/openapi.json`);
    const document = (await response.json()) as OpenApiDocument;
    const described = document.paths['/web-setup/too-broad']?.['get']?.responses['503'];
    expect(resolveResponse(document, described ?? { description: '' }).description).toContain(
      'QUERY_TOO_BROAD',
    );
  });

  it('rejects narrowBy names that are not parameters', async () => {
    const broken = { ...rejectedList('busy'), narrowBy: ['size'] };
    await expect(startApi({ routes: [broken] })).rejects.toThrow('narrowBy names [size]');
  });
});

describe('every list', () => {
  let daemon: InProcess;
  let api: ApiClient;
  beforeAll(async () => {
    daemon = await startInProcess();
    api = await daemon.account('One');
  });
  afterAll(() => daemon.stop());

  interface Listed {
    list: string;
    path: string;
    body?: () => object;
    /** Text in the list after the write. */
    marker: string;
  }

  const CONTACTS = '/web-setup/contacts';
  let groupPath = '';
  it.each<Listed>([
    {
      list: '/web-setup/suppressions',
      path: '',
      body: () => ({ email: 'a@example.net', reason: 'manual', stream: 'tx' }),
      marker: 'a@example.net',
    },
    {
      list: '/web-setup/suppressions?stream=tx&reason=manual',
      path: '',
      body: () => ({ email: 'b@example.net', reason: 'manual', stream: 'tx' }),
      marker: 'b@example.net',
    },
    {
      list: '/web-setup/templates',
      path: '',
      body: () => ({ name: 'Shipped', html: '<p>Hi</p>' }),
      marker: 'Shipped',
    },
    { list: '/web-setup/campaigns', path: '', body: () => ({ name: 'Spring' }), marker: 'Spring' },
    {
      list: '/web-setup/compliance-templates',
      path: '',
      body: () => ({
        name: 'Leave',
        type: 'unsubscribe',
        htmlContent: '<a href="{{unsubscribe_url}}">x</a>',
      }),
      marker: 'Leave',
    },
    { list: CONTACTS, path: '', body: () => ({ email: 'ada@example.net' }), marker: 'ada@example.net' },
    {
      list: `${CONTACTS}?search=grace`,
      path: CONTACTS,
      body: () => ({ email: 'grace@example.net' }),
      marker: 'grace@example.net',
    },
    { list: `${CONTACTS}/subscription-groups`, path: '', body: () => ({ name: 'News' }), marker: 'News' },
  ])('has rows that were written before: $list', async ({ list, path, body, marker }) => {
    const bare = list.replace(/\?.*/, '');
    expect((await api.get(list)).text).not.toContain(marker);
    expect((await api.post(path || bare, body?.())).status).toBeLessThan(300);
    expect((await api.get(list)).text).toContain(marker);
  });

  it('has a new membership in the group and in the contact', async () => {
    const { data } = await api.post<{ group: { subscriptionGroupId: string } }>(
      `${CONTACTS}/subscription-groups`,
      { name: 'Offers' },
    );
    groupPath = `${CONTACTS}/subscription-groups/${data.group.subscriptionGroupId}/subscriptions`;
    const added = await api.post<{ contact: { contactIdentifier: string } }>(CONTACTS, {
      email: 'member@example.net',
    });
    await api.post(groupPath, { email: 'member@example.net' });
    expect((await api.get(groupPath)).text).toContain('member@example.net');
    expect((await api.get(`${groupPath}?search=member`)).text).toContain('member@example.net');
    const contact = await api.get(`${CONTACTS}/${added.data.contact.contactIdentifier}`);
    expect(contact.text).toContain(data.group.subscriptionGroupId);
  });

  it('has a message that was just sent', async () => {
    const input = { domain: 'shop.example.com', useCaseId: 'tx-local' };
    const { data } = await api.put<CreatedDomain>('/web-setup/domains', input);
    daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
    await daemon.publishPlatform();
    await api.post(`/web-setup/domains/${data.domainId}/verify`);
    for (let n = 0; n < 5; n++) {
      const sent = await api.send({
        from: 'shop@shop.example.com',
        to: `ada${n}@example.net`,
        subject: 'Hi',
        text: 'Hi {{company_address_html}} {{unsubscribe_email_html}}',
      });
      const { messageId } = sent.data;
      expect((await api.get('/web-setup/messages')).text).toContain(messageId);
      expect((await api.get(`/web-setup/messages?recipient=ada${n}@example.net`)).text).toContain(messageId);
      expect((await api.get(`/web-setup/messages/${messageId}`)).text).toContain(messageId);
    }
    const reports = await api.get(`/web-setup/domains/${data.domainId}/reports`);
    expect(reports.status).toBe(200);
  });

  it('has the event of the last request', async () => {
    for (let n = 0; n < 5; n++) {
      const email = `left${n}@example.net`;
      await api.post('/web-setup/suppressions', { email, reason: 'unsubscribe', stream: 'mk' });
      expect((await api.get('/web-setup/events?event=email_unsubscribed')).text).toContain(email);
    }
  });

  it('is counted in the metrics', async () => {
    await api.get('/web-setup/messages');
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toMatch(/postrider_reads_total\{read="messagePage",outcome="done"\} [1-9]/);
    expect(metrics).toMatch(/postrider_read_seconds_count\{read="messagePage"\} [1-9]/);
    expect(metrics).toMatch(/^postrider_reader_threads 2$/m);
    expect(metrics).toMatch(/^postrider_reads_waiting 0$/m);
    expect(metrics).toMatch(/^postrider_queue_messages \d+$/m);
  });
});
