import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE, SECOND } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomainOf } from '../../support/store.ts';

/** Transactional mail with a time: what the caller gets and sees. Simulated recipients, so that nothing is delivered elsewhere. */
const TO = `delivered@simulator.${PLATFORM}`;
const MAIL = {
  to: TO,
  from: 'orders@sender.test',
  subject: 'Later',
  html: '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
};

let daemon: InProcess;
let api: ApiClient;
let other: ApiClient;

interface Sent {
  messageId: string;
  message: string;
  status: string;
  scheduledAt?: string;
  recipients: { status: string; messageId: string }[];
  delivery?: object;
}
interface Shown {
  messageId: string;
  status: string;
  scheduledAt?: string;
  nextAttemptAt?: string;
}

const later = (ms: number) => new Date(Date.now() + ms).toISOString();
const send = (changes: object, headers: Record<string, string> = {}) =>
  api.call<Sent>('POST', '/transactional/send', { body: { ...MAIL, ...changes }, headers });
const show = async (id: string) => (await api.get<Shown>(`/web-setup/messages/${id}`)).data;
const list = async (status: string) =>
  (await api.get<{ messages: Shown[] }>(`/web-setup/messages?status=${status}`)).data.messages;
const reschedule = (id: string, body: object, by = api) =>
  by.call<Shown>('PATCH', `/web-setup/messages/${id}`, { body });
const statusIs = (id: string, status: string) =>
  eventually(`the status ${status}`, async () => ((await show(id)).status === status ? true : null));

beforeAll(async () => {
  daemon = await startInProcess();
  api = await daemon.account('A');
  other = await daemon.account('B');
  insertDomainOf(daemon, api, { domain_id: 'domain_1_tx', name: 'sender.test', use_case: 'tx' });
});
afterAll(() => daemon.stop());

describe('a transactional send with scheduledAt', () => {
  it('is scheduled, listed and sent at its time', async () => {
    const scheduledAt = later(2 * HOUR);
    const { status, data } = await send({ scheduledAt });
    expect(status).toBe(200);
    expect(data).toMatchObject({
      message: 'Email scheduled',
      status: 'scheduled',
      scheduledAt,
      recipients: [{ status: 'scheduled', messageId: data.messageId }],
    });
    const shown = { messageId: data.messageId, status: 'scheduled', scheduledAt, nextAttemptAt: scheduledAt };
    expect(await show(data.messageId)).toMatchObject(shown);
    expect(await list('scheduled')).toEqual([expect.objectContaining(shown)]);
    expect(await list('queued,scheduled')).toHaveLength(1);
    expect(await list('queued')).toEqual([]);
    await reschedule(data.messageId, { scheduledAt: later(SECOND) });
    await statusIs(data.messageId, 'delivered');
    expect(await list('scheduled')).toEqual([]);
  });

  it.each(['Z', '+01:00', '+0100', '+01', '-05:30'])('accepts the offset %s', async (offset) => {
    const local = new Date(Date.now() + DAY).toISOString().slice(0, 19);
    const { data } = await send({ scheduledAt: `${local}${offset}` });
    const [, sign = '+', hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(offset) ?? [];
    const ahead = (Number(hours) * HOUR + Number(minutes) * MINUTE) * (sign === '-' ? -1 : 1);
    expect(data.scheduledAt).toBe(new Date(Date.parse(`${local}Z`) - ahead).toISOString());
  });

  it.each([
    [() => later(31 * DAY)],
    [() => later(-HOUR)],
    [() => later(HOUR).slice(0, 19)],
    [() => later(DAY).slice(0, 10)],
    [() => 'tomorrow'],
  ])('is refused with another time: %#', async (scheduledAt) => {
    const { status, error } = await send({ scheduledAt: scheduledAt() });
    expect([status, error.code, error.details?.[0]?.field]).toEqual([400, 'VALIDATION_ERROR', 'scheduledAt']);
  });

  it('is sent now when the time has just passed', async () => {
    const { data } = await send({ scheduledAt: later(-MINUTE) });
    expect([data.status, data.scheduledAt]).toEqual(['sent', undefined]);
  });

  it('is explained by the queue', async () => {
    const { data } = await send({ scheduledAt: later(HOUR) });
    const explained = await api.get<{ reasons: { code: string; text: string }[] }>(
      `/web-setup/queue/messages/${data.messageId}`,
    );
    expect(explained.data.reasons[0]).toMatchObject({
      code: 'scheduled',
      text: `It is scheduled for ${data.scheduledAt}.`,
    });
  });

  it('does not wait for an outcome', async () => {
    const { data } = await send({ scheduledAt: later(HOUR) }, { Prefer: 'wait=30' });
    expect([data.status, data.delivery]).toEqual(['scheduled', undefined]);
  });

  it('is accepted for each item of a batch, and counts as accepted', async () => {
    const { data } = await api.post<{ results: { data: Sent }[] }>('/transactional/send-batch', {
      messages: [
        { ...MAIL, scheduledAt: later(HOUR) },
        { ...MAIL, scheduledAt: later(2 * HOUR) },
      ],
    });
    expect(data.results.map((result) => result.data.status)).toEqual(['scheduled', 'scheduled']);
  });

  it('checks the recipient again when it is due', async () => {
    const to = 'late@reader.test';
    const { data } = await send({ to, scheduledAt: later(HOUR) });
    await api.post('/web-setup/suppressions', { email: to });
    await reschedule(data.messageId, { scheduledAt: later(0) });
    await statusIs(data.messageId, 'failed');
    const { events } = (
      await api.get<{ events: { event: string }[] }>(`/web-setup/events?messageId=${data.messageId}`)
    ).data;
    expect(events.map(({ event }) => event)).toContain('email_suppressed');
    expect((await send({ to, scheduledAt: later(HOUR) })).error.code).toBe('RECIPIENT_SUPPRESSED');
  });

  it('is cancelled like a queued message', async () => {
    const { data } = await send({ scheduledAt: later(HOUR) });
    const cancelled = await api.post(`/web-setup/messages/${data.messageId}/cancel`);
    expect([cancelled.status, (await show(data.messageId)).status]).toEqual([200, 'cancelled']);
    expect((await reschedule(data.messageId, { scheduledAt: later(HOUR) })).error.code).toBe('INVALID_STATE');
  });
});

describe('PATCH /web-setup/messages/{id}', () => {
  it('moves the time and the expiry of the message', async () => {
    const { data } = await send({ scheduledAt: later(HOUR) });
    const before = daemon.tables.messages.byId(data.messageId);
    const scheduledAt = later(3 * DAY);
    const moved = await reschedule(data.messageId, { scheduledAt });
    expect([moved.status, moved.data]).toMatchObject([200, { status: 'scheduled', scheduledAt }]);
    const after = daemon.tables.messages.byId(data.messageId);
    const change = Date.parse(scheduledAt) - Date.parse(data.scheduledAt ?? '');
    expect((after?.expires_at ?? 0) - (before?.expires_at ?? 0)).toBe(change);
  });

  it.each([
    [() => ({ scheduledAt: later(31 * DAY) }), 'scheduledAt'],
    [() => ({ scheduledAt: later(-HOUR) }), 'scheduledAt'],
    [() => ({}), 'scheduledAt'],
    [() => ({ scheduled_at: later(HOUR) }), 'scheduled_at'],
  ])('refuses another time: %#', async (body, field) => {
    const { data } = await send({ scheduledAt: later(HOUR) });
    const { status, error } = await reschedule(data.messageId, body());
    expect([status, error.details?.[0]?.field]).toEqual([400, field]);
    expect((await show(data.messageId)).scheduledAt).toBe(data.scheduledAt);
  });

  it('refuses messages that are not scheduled, and hides those of other accounts', async () => {
    const sent = (await send({})).data.messageId;
    expect((await reschedule(sent, { scheduledAt: later(HOUR) })).error.code).toBe('INVALID_STATE');
    const { data } = await send({ scheduledAt: later(HOUR) });
    const foreign = await reschedule(data.messageId, { scheduledAt: later(DAY) }, other);
    expect([foreign.status, foreign.error.code]).toEqual([404, 'MESSAGE_NOT_FOUND']);
  });
});
