import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomainOf } from '../../support/store.ts';

/* `/web-setup/sequences` and the events of contacts, over HTTP. */
let daemon: InProcess;
let client: ApiClient;

const SEND = {
  from: 'News <news@news.test>',
  subject: 'Thanks',
  html: '<p>You paid {{event.total}}</p>{{company_address_html}}{{unsubscribe_email_html}}',
};
const ADA = `delivered+ada@simulator.${PLATFORM}`;

interface SequenceData {
  sequence: {
    sequenceId: string;
    status: string;
    steps: object[];
    people: { inProgress: number; ended: Record<string, number> };
  };
}
interface People {
  people: { email: string; state: string; step: number; reason: string | null }[];
  nextKey?: string;
}

beforeAll(async () => {
  daemon = await startInProcess();
  client = await daemon.account('Shop');
  insertDomainOf(daemon, client, { domain_id: 'domain_1', name: 'news.test', use_case: 'mk' });
});
afterAll(() => daemon.stop());

/** The fields that an error names. */
async function faults(body: object): Promise<string[]> {
  const { status, text } = await client.call('POST', '/web-setup/sequences', { body });
  expect(status, text).toBe(400);
  const { error }: { error: { details: { field: string }[] } } = JSON.parse(text);
  return error.details.map(({ field }) => field);
}

describe('a sequence over HTTP', () => {
  it('is created, activated, entered by an event, and listed with its people', async () => {
    const body = {
      name: 'Thanks',
      trigger: { event: 'bought' },
      steps: [{ send: SEND }, { wait: '2d' }, { end: true }],
    };
    const created = await client.post<SequenceData>('/web-setup/sequences', body);
    expect([created.status, created.data.sequence.status]).toEqual([201, 'draft']);
    const { sequenceId } = created.data.sequence;
    expect(sequenceId).toMatch(/^seq_/);
    expect(created.data.sequence.steps).toEqual(body.steps);
    const path = `/web-setup/sequences/${sequenceId}`;
    await client.post('/web-setup/contacts', { email: ADA, consentMethod: 'web_form' });
    const event = { name: 'bought', properties: { total: '49.90' }, idempotencyKey: 'order-1' };
    const record = async () => {
      const { status, data } = await client.post<{ sequences: object[] }>(
        `/web-setup/contacts/email:${ADA}/events`,
        event,
      );
      expect(status).toBe(202);
      return data.sequences;
    };
    expect(await record()).toEqual([]);
    expect((await client.post<SequenceData>(`${path}/activate`, {})).data.sequence.status).toBe('active');
    expect(await record()).toEqual([{ sequenceId, result: 'entered' }]);
    expect(await record()).toEqual([{ sequenceId, result: 'repeated' }]);
    await eventually('the first message', async () => {
      const { data } = await client.get<People>(`${path}/people?step=2`);
      return data.people.length === 1;
    });
    const { data } = await client.get<People>(`${path}/people?state=active`);
    expect(data.people).toMatchObject([{ email: ADA, state: 'active', step: 2, reason: null }]);
    const messages = await client.get<{ messages: { campaignId: string; subject: string }[] }>(
      '/web-setup/messages',
    );
    expect(messages.data.messages).toMatchObject([{ campaignId: `${sequenceId}_1_0`, subject: 'Thanks' }]);
    expect((await client.post<SequenceData>(`${path}/pause`, {})).data.sequence.status).toBe('paused');
    expect((await client.call('DELETE', path)).status).toBe(200);
    expect((await client.call('GET', path)).status).toBe(404);
  });

  it('names the fields that are invalid', async () => {
    const trigger = { event: 'bought' };
    expect(await faults({ name: 'A', trigger: {}, steps: [] })).toEqual(['trigger']);
    expect(await faults({ name: 'A', trigger: { event: 'a', joined: 'b' }, steps: [] })).toHaveLength(1);
    expect(await faults({ name: 'A', trigger, steps: [{ wait: '2 days' }] })).toEqual(['steps[0].wait']);
    expect(await faults({ name: 'A', trigger, steps: [{ wait: '400d' }] })).toEqual(['steps[0].wait']);
    expect(await faults({ name: 'A', trigger, steps: [{}] })).toEqual(['steps[0]']);
    expect(await faults({ name: 'A', trigger, steps: [{ send: { from: 'a@news.test' } }] })).toEqual([
      'steps[0].send.html',
      'steps[0].send.subject',
    ]);
    expect(
      await faults({
        name: 'A',
        trigger,
        steps: [{ when: { field: 'nope', op: 'is', value: 1 }, otherwise: 'end' }],
      }),
    ).toEqual(['steps[0].when.field']);
    expect(await faults({ name: 'A', trigger, steps: [{ wait: '1d' }], status: 'active' })).toEqual([
      'steps',
    ]);
    expect((await client.get<{ sequences: object[] }>('/web-setup/sequences')).data.sequences).toEqual([]);
  });

  it('has as many steps, and as much in them, as the limits allow', async () => {
    const trigger = { event: 'bought' };
    const waits = (count: number) => Array.from({ length: count }, () => ({ wait: '1d' }));
    const html = (length: number) => [{ send: { ...SEND, html: 'x'.repeat(length) } }];
    const half = html(256 * 1024);
    for (const steps of [waits(50), half]) {
      const { status, text } = await client.post('/web-setup/sequences', { name: 'A', trigger, steps });
      expect(status, text).toBe(201);
    }
    expect(await faults({ name: 'A', trigger, steps: waits(51) })).toEqual(['steps']);
    expect(await faults({ name: 'A', trigger, steps: html(256 * 1024 + 1) })).toEqual(['steps[0].send.html']);
    expect(await faults({ name: 'A', trigger, steps: [...half, ...half] })).toEqual(['steps']);
    expect(await faults({ name: 'A', trigger: { event: 'x'.repeat(101) }, steps: [] })).toEqual([
      'trigger.event',
    ]);
    const record = (total: number) =>
      client.call('POST', `/web-setup/contacts/email:${ADA}/events`, {
        body: { name: 'bought', properties: { total: 'x'.repeat(total - '{"total":""}'.length) } },
      });
    expect((await record(8 * 1024)).status).toBe(202);
    const above = await record(8 * 1024 + 1);
    expect([above.status, above.text]).toEqual([400, expect.stringContaining('"field":"properties"')]);
  });
});
