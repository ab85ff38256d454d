import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { sendingObstacle } from '../../../src/sending/checks.ts';
import { MAX_TESTS_PER_HOUR, TEST_PREFIX } from '../../../src/sending/test-messages.ts';
import type { MemberRole } from '../../../src/store/people/people.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';
import { accepted, createTestBrowser, type TestBrowser } from './harness.ts';

/** Test messages to people of an account, over the whole daemon. */
let daemon: InProcess;
let client: ApiClient;
let templateId: string;
let people = 0;

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  for (const use_case of ['tx', 'mk'] as const)
    insertDomain(
      daemon.tables,
      {
        account_id: client.accountId,
        group_id: group?.group_id ?? '',
        domain_id: `domain_${use_case}`,
        use_case,
        name: `${use_case}.test`,
        next_check_at: Date.now() + DAY,
      },
      Date.now(),
    );
  const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
    name: 'Spring',
    subject: 'Spring, {{firstName|there}}',
    html: '<p>Hello {{firstName|there}}</p><p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
  });
  templateId = created.data.template.templateId;
});
afterAll(() => daemon.stop());

interface Person {
  email: string;
  browser: TestBrowser;
}

async function member(role: MemberRole = 'sender'): Promise<Person> {
  const email = `person${++people}@reader.test`;
  const invited = accepted(await daemon.people.invite(client.accountId, { email, role }, 'operator'));
  const browser = createTestBrowser(daemon.consoleUrl);
  const { status } = await browser.post('/console/session/link', { token: invited.link?.token });
  expect(status).toBe(200);
  return { email, browser };
}

const send = ({ browser, email }: Person, more: object = {}) =>
  browser.post(
    `/console/api/web-setup/templates/${templateId}/test`,
    { type: 'marketing', to: [email], from: 'Shop <news@mk.test>', ...more },
    client.accountId,
  );

const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
  status,
  body['reasonCode'],
];

// Sound: the response of the operation.
const messageIdsOf = (data: Record<string, unknown>) =>
  (data['messages'] as { messageId: string }[]).map(({ messageId }) => messageId);

/** The first stored message of a response. */
function messageOf(data: Record<string, unknown>) {
  const listed = daemon.tables.messages.byId(messageIdsOf(data)[0] ?? '');
  const row = listed === null ? null : daemon.tables.messages.bySeq(listed.seq);
  if (row === null) throw new Error('the message was not stored');
  return row;
}

describe('POST /web-setup/templates/{templateId}/test', () => {
  it('sends marketing mail to the person, who is neither a contact nor has consented', async () => {
    const person = await member();
    const response = await send(person, { templateVariables: { firstName: 'Ada' } });
    expect(response.status, JSON.stringify(response.body)).toBe(202);
    const message = messageOf(response.data);
    expect(message).toMatchObject({
      recipient: person.email,
      use_case: 'mk',
      subject: `${TEST_PREFIX}Spring, Ada`,
      campaign_id: null,
      subscription_group_id: null,
    });
    // Nor when it leaves the queue, where other marketing mail to the person is refused.
    expect(sendingObstacle(daemon.tables, message)).toBeNull();
    expect(sendingObstacle(daemon.tables, { ...message, essential: 0 })).toMatchObject({
      kind: 'email_suppressed',
      fields: { reasonCode: 'CONSENT_WITHDRAWN' },
    });
    const api = { from: 'news@mk.test', to: person.email, templateId };
    expect((await client.call('POST', '/marketing/send', { body: api })).status).toBe(403);
  });

  it('sends transactional mail, and a subject of the request', async () => {
    const person = await member('owner');
    const { data } = await send(person, { type: 'transactional', from: 'a@tx.test', subject: 'Order' });
    expect(messageOf(data)).toMatchObject({ use_case: 'tx', subject: '[Test] Order', essential: 0 });
  });

  it('is sent to several people of the account, and to nobody else', async () => {
    const [one, two] = [await member(), await member('viewer')];
    const { data } = await send(one, { to: [one.email, two.email.toUpperCase()] });
    expect(data['messages']).toMatchObject([{ recipient: one.email }, { recipient: two.email }]);
    const refused = await send(one, { to: [one.email, 'other@reader.test'] });
    expect(codeOf(refused)).toEqual([400, 'VALIDATION_ERROR']);
    expect(JSON.stringify(refused.body)).toContain('to[1]');
    const six = Array.from({ length: 6 }, () => one.email);
    expect(codeOf(await send(one, { to: six }))).toEqual([400, 'VALIDATION_ERROR']);
  });

  it('sends what a campaign has prepared with a key, where fields of contacts are empty', async () => {
    const { email } = await member();
    const created = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'Spring',
      prepared: { templateId, from: 'news@mk.test', subject: 'Now{{customFields.city}}' },
    });
    const { campaignId } = created.data.campaign;
    const { status, data } = await client.post<Record<string, unknown>>(
      `/web-setup/campaigns/${campaignId}/test`,
      { to: [email] },
    );
    expect(status).toBe(202);
    expect(messageOf(data)).toMatchObject({ recipient: email, subject: '[Test] Now', campaign_id: null });
  });

  it('sends a variant of a campaign by its name', async () => {
    const { email } = await member();
    const prepared = { templateId, from: 'news@mk.test', subject: 'One', variants: [{}, { subject: 'Two' }] };
    const created = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'Spring',
      prepared,
    });
    const test = (body: object) =>
      client.post<Record<string, unknown>>(`/web-setup/campaigns/${created.data.campaign.campaignId}/test`, {
        to: [email],
        ...body,
      });
    expect(messageOf((await test({})).data)).toMatchObject({ subject: '[Test] One' });
    expect(messageOf((await test({ variant: 'B' })).data)).toMatchObject({ subject: '[Test] Two' });
    for (const body of [{ variant: 'C' }, { variant: 'B', html: '<p>Hello</p>' }])
      expect((await test(body)).error.details?.[0]?.field).toBe('variant');
  });

  it.each(['hard_bounce', 'complaint', 'manual'] as const)(
    'is refused for an address that is suppressed because of %s',
    async (reason) => {
      const person = await member();
      daemon.tables.suppressions.add({
        account_id: client.accountId,
        recipient_hash: emailIdentifier(person.email),
        email: person.email,
        stream: 'all',
        reason,
        message_seq: null,
        created_at: Date.now(),
      });
      const response = await send(person);
      expect(codeOf(response)).toEqual([403, 'RECIPIENT_SUPPRESSED']);
      expect(JSON.stringify(response.body)).toContain(`${person.email} is suppressed`);
    },
  );

  it('is sent to a person who opted out of marketing mail', async () => {
    const person = await member();
    const body = { email: person.email, globalStatus: 'unsubscribed' };
    expect((await client.post('/web-setup/contacts', body)).status).toBe(201);
    const { data } = await send(person);
    expect(sendingObstacle(daemon.tables, messageOf(data))).toBeNull();
  });

  it('is limited by hour and person, where refused ones do not count', async () => {
    const person = await member();
    for (let refused = 0; refused < 3; refused++)
      expect((await send(person, { from: 'a@unknown.test' })).status).toBe(403);
    const results: number[] = [];
    for (let sent = 0; sent <= MAX_TESTS_PER_HOUR.caller; sent++) results.push((await send(person)).status);
    expect(results).toEqual([...Array.from({ length: MAX_TESTS_PER_HOUR.caller }, () => 202), 429]);
    expect((await send(await member())).status).toBe(202);
  });

  it('needs the permission to send', async () => {
    for (const role of ['viewer', 'author', 'developer'] as const)
      expect(codeOf(await send(await member(role)))).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });
});
