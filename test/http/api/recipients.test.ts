import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

/** Sends to several recipients of whom some are refused, and several addresses for replies. */
const TO = `delivered@simulator.${PLATFORM}`;
const HTML = '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>';
const MAIL = { from: 'orders@sender.test', subject: 'Hi', html: HTML };
const GONE = 'gone@reader.test';

let daemon: InProcess;
let api: ApiClient;

interface Sent {
  messageId: string;
  jobId: string;
  totalRecipients: number;
  recipients: {
    email: string;
    status: string;
    role: string;
    messageId?: string;
    code?: string;
    reason?: string;
  }[];
}

const send = (changes: object, stream = 'transactional') =>
  api.post<Sent>(`/${stream}/send`, { ...MAIL, ...changes });
const source = async (id: string) =>
  (await api.get<{ source: string }>(`/web-setup/messages/${id}/source`)).data.source;

beforeAll(async () => {
  daemon = await startInProcess();
  api = await daemon.account('A');
  const [group] = daemon.tables.domainGroups.list(api.accountId);
  const row = { account_id: api.accountId, group_id: group?.group_id ?? '', next_check_at: Date.now() + DAY };
  for (const [name, use_case] of [
    ['sender.test', 'tx'],
    ['news.test', 'mk'],
  ] as const)
    insertDomain(daemon.tables, { ...row, domain_id: `domain_1_${use_case}`, name, use_case }, Date.now());
  await api.post('/web-setup/suppressions', { email: GONE });
});
afterAll(() => daemon.stop());

describe('a refused recipient among several', () => {
  it('refuses the request by default', async () => {
    for (const onRefused of [{}, { onRefused: 'refuse' }]) {
      const { status, error } = await send({ to: [TO, GONE], ...onRefused });
      expect([status, error.code]).toEqual([403, 'RECIPIENT_SUPPRESSED']);
    }
  });

  it('is skipped on request, not named to the others, and has an event', async () => {
    const { status, data } = await send({ to: GONE, cc: [TO, 'x@reader.test'], onRefused: 'skip' });
    expect(status).toBe(200);
    expect(data).toMatchObject({
      totalRecipients: 3,
      recipients: [
        { email: TO, status: 'sent', role: 'cc', messageId: data.messageId },
        { email: 'x@reader.test', status: 'sent', role: 'cc' },
        { email: GONE, status: 'refused', role: 'to', code: 'RECIPIENT_SUPPRESSED', reason: 'manual' },
      ],
    });
    expect(data.recipients[2]).not.toHaveProperty('messageId');
    expect(await source(data.messageId)).not.toContain(GONE);
    const { events } = (
      await api.get<{ events: { event: string; recipient: string }[] }>(
        `/web-setup/events?recipient=${GONE}&event=email_suppressed`,
      )
    ).data;
    expect(events.length).toBeGreaterThan(0);
  });

  it('is skipped in marketing mail', async () => {
    const changes = { from: 'n@news.test', to: ['nobody@reader.test', TO], onRefused: 'skip' };
    const { status, data } = await send(changes, 'marketing');
    expect([status, data.recipients]).toMatchObject([
      202,
      [
        { email: TO, status: 'queued' },
        {
          email: 'nobody@reader.test',
          status: 'refused',
          code: 'CONSENT_REQUIRED',
          reason: 'not_subscribed',
        },
      ],
    ]);
    const listed = await api.get<{ count: number }>(`/web-setup/messages?jobId=${data.jobId}`);
    expect(listed.data.count).toBe(1);
  });

  it('refuses the request when all are refused', async () => {
    const { status, error } = await send({ to: GONE, onRefused: 'skip' });
    expect([status, error.code]).toEqual([403, 'RECIPIENT_SUPPRESSED']);
    expect((await send({ to: TO, onRefused: 'ignore' })).error.details?.[0]?.field).toBe('onRefused');
  });
});

describe('several reply addresses', () => {
  it('are one Reply-To field', async () => {
    const { data } = await send({ to: TO, replyTo: ['Help <help@example.com>', 'a@example.com'] });
    expect(await source(data.messageId)).toMatch(/^Reply-To: Help <help@example\.com>, a@example\.com\r?$/m);
    const one = await send({ to: TO, replyTo: ['help@example.com'] });
    expect(await source(one.data.messageId)).toMatch(/^Reply-To: help@example\.com\r?$/m);
    const none = await send({ to: TO, replyTo: [] });
    expect(await source(none.data.messageId)).not.toContain('Reply-To');
  });

  it.each([
    [['a@example.com', 'nonsense'], 'replyTo[1]'],
    [Array.from({ length: 11 }, (_, n) => `a${n}@example.com`), 'replyTo'],
    [['a@example.com, b@example.com'], 'replyTo[0]'],
    [5, 'replyTo'],
  ])('are refused: %j', async (replyTo, field) => {
    const { status, error } = await send({ to: TO, replyTo });
    expect([status, error.details?.[0]?.field]).toEqual([400, field]);
  });
});
