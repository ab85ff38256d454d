import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { contentOf, insertDomain } from '../../support/store.ts';

// Starts the whole daemon, which is slow on a busy machine.
/** The compliance templates that a subscription group has for itself. */
const GROUPS = '/web-setup/contacts/subscription-groups';
const TEMPLATES = '/web-setup/compliance-templates';
const FIELDS = ['unsubscribeTemplateId', 'reportAbuseTemplateId', 'companyAddressTemplateId'] as const;

/** The variable that each type must contain. */
const REQUIRED_VARIABLE = {
  unsubscribe: '{{unsubscribe_url}}',
  report_abuse: '{{report_abuse_url}}',
  company_address: '{{company_address}}',
};
type Kind = keyof typeof REQUIRED_VARIABLE;

interface Group {
  group: { subscriptionGroupId: string } & Record<(typeof FIELDS)[number], string | null>;
}

let daemon: InProcess;
let client: ApiClient;
let other: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess();
  client = await daemon.account('Shop');
  other = await daemon.account('Other');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  for (const name of ['shop.test', 'plain.test']) {
    const row = {
      account_id: client.accountId,
      group_id: group?.group_id ?? '',
      use_case: 'mk' as const,
      name,
    };
    insertDomain(
      daemon.tables,
      { ...row, domain_id: `domain_1_${name}`, next_check_at: Date.now() + DAY },
      Date.now(),
    );
  }
  await client.post('/web-setup/contacts', { email: 'ada@reader.test' });
});
afterAll(() => daemon.stop());

async function template(type: Kind, words: string, more: object = {}, of = client): Promise<string> {
  const htmlContent = `<p>${words} <a href="https://x.example/${REQUIRED_VARIABLE[type]}">${REQUIRED_VARIABLE[type]}</a></p>`;
  const body = { name: words, type, htmlContent, isDefault: false, ...more };
  return (await of.post<{ template: { templateId: string } }>(TEMPLATES, body)).data.template.templateId;
}

const newGroup = async (fields: object = {}) =>
  (await client.post<Group>(GROUPS, { name: 'News', ...fields })).data.group;

/** The html of a mail to Ada as it is stored for sending. */
async function mailed(groupId: string | null, from = 'a@shop.test'): Promise<string> {
  if (groupId !== null) await client.post(`${GROUPS}/${groupId}/subscriptions`, { email: 'ada@reader.test' });
  const { data } = await client.post<{ recipients: { messageId: string }[] }>('/marketing/send', {
    to: 'ada@reader.test',
    from,
    subject: 'News',
    html: '{{company_address_html}}|{{unsubscribe_email_html}}|{{report_abuse_email_html}}',
    ...(groupId === null ? {} : { subscriptionGroupId: groupId }),
  });
  const message = daemon.tables.messages.byId(data.recipients[0]?.messageId ?? '');
  return contentOf(daemon.tables, message ?? undefined).html;
}

/** The words of the three templates that were used, '-' for the built-in one. */
async function used(groupId: string | null, from?: string): Promise<string[]> {
  const html = await mailed(groupId, from);
  return html.split('|').map((part) => /of the [a-z]+/.exec(part)?.[0] ?? '-');
}

describe('a compliance template of a group', () => {
  it('belongs to the account and has the type of the field', async () => {
    const fields = {
      unsubscribeTemplateId: await template('unsubscribe', 'Leave'),
      reportAbuseTemplateId: await template('report_abuse', 'Report'),
      companyAddressTemplateId: await template('company_address', 'Us'),
    };
    const made = await newGroup(fields);
    expect(made).toMatchObject(fields);
    const path = `${GROUPS}/${made.subscriptionGroupId}`;
    const { data } = await client.call<Group>('PATCH', path, { body: { unsubscribeTemplateId: null } });
    const { unsubscribeTemplateId: _, ...others } = fields;
    expect(data.group).toMatchObject(others);
    expect(data.group).not.toHaveProperty('unsubscribeTemplateId');
  });

  it.each(FIELDS)('is 404 as %s if it is unknown or belongs to another account', async (field) => {
    const { subscriptionGroupId } = await newGroup();
    const foreign = await template('unsubscribe', 'Theirs', {}, other);
    for (const id of ['ctemplate_1_unknown', foreign]) {
      for (const [method, path] of [
        ['POST', GROUPS],
        ['PUT', `${GROUPS}/${subscriptionGroupId}`],
        ['PATCH', `${GROUPS}/${subscriptionGroupId}`],
      ] as const) {
        const { status, error } = await client.call(method, path, { body: { name: 'News', [field]: id } });
        expect([status, error.code, error.details?.[0]?.field]).toEqual([404, 'TEMPLATE_NOT_FOUND', field]);
      }
    }
    const { data } = await client.get<Group>(`${GROUPS}/${subscriptionGroupId}`);
    expect(data.group).not.toHaveProperty(field);
  });

  it.each([
    ['unsubscribeTemplateId', 'report_abuse'],
    ['reportAbuseTemplateId', 'company_address'],
    ['companyAddressTemplateId', 'unsubscribe'],
  ] as const)('is 400 as %s if its type is %s', async (field, type) => {
    const { status, error } = await client.post(GROUPS, { name: 'News', [field]: await template(type, 'x') });
    expect([status, error.code, error.details?.[0]?.field]).toEqual([400, 'VALIDATION_ERROR', field]);
  });

  it('is checked after the group', async () => {
    const body = { unsubscribeTemplateId: 'ctemplate_1_unknown' };
    const { error } = await client.call('PATCH', `${GROUPS}/sgroup_1_unknown`, { body });
    expect(error.code).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
  });
});

describe('mail to a group', () => {
  it('uses the template of the group, else of the From domain, else of the account, else the built-in one', async () => {
    const bare = await newGroup();
    expect(await used(bare.subscriptionGroupId)).toEqual(['-', '-', '-']);

    await template('company_address', 'of the account', { isDefault: true });
    await template('unsubscribe', 'of the account', { isDefault: true });
    expect(await used(bare.subscriptionGroupId)).toEqual(['of the account', 'of the account', '-']);

    await template('unsubscribe', 'of the domain', { isDefault: true, domain: 'shop.test' });
    expect(await used(bare.subscriptionGroupId)).toEqual(['of the account', 'of the domain', '-']);
    expect(await used(bare.subscriptionGroupId, 'a@plain.test')).toEqual([
      'of the account',
      'of the account',
      '-',
    ]);

    const unsubscribeTemplateId = await template('unsubscribe', 'of the group');
    const reportAbuseTemplateId = await template('report_abuse', 'of the group');
    const own = await newGroup({ unsubscribeTemplateId, reportAbuseTemplateId });
    const wanted = ['of the account', 'of the group', 'of the group'];
    expect(await used(own.subscriptionGroupId)).toEqual(wanted);
    expect(await used(own.subscriptionGroupId, 'a@plain.test')).toEqual(wanted);
    expect(await used(null)).toEqual(['of the account', 'of the domain', '-']);
    expect(await used(bare.subscriptionGroupId)).toEqual(['of the account', 'of the domain', '-']);

    // Removed, or changed to another type: the next one in the order is used.
    await client.call('DELETE', `${TEMPLATES}/${unsubscribeTemplateId}`);
    const { data } = await client.get<Group>(`${GROUPS}/${own.subscriptionGroupId}`);
    expect(data.group).toMatchObject({ reportAbuseTemplateId });
    expect(data.group).not.toHaveProperty('unsubscribeTemplateId');
    expect(await used(own.subscriptionGroupId)).toEqual(['of the account', 'of the domain', 'of the group']);
    await client.put(`${TEMPLATES}/${reportAbuseTemplateId}`, {
      name: 'x',
      type: 'company_address',
      htmlContent: '{{company_address}} of the wrong type',
    });
    expect(await used(own.subscriptionGroupId)).toEqual(['of the account', 'of the domain', '-']);
  });

  it('ignores a template of another account with the same id', async () => {
    const unsubscribeTemplateId = await template('unsubscribe', 'of the group');
    const own = await newGroup({ unsubscribeTemplateId });
    const { status } = await other.call('DELETE', `${TEMPLATES}/${unsubscribeTemplateId}`);
    expect(status).toBe(404);
    expect((await used(own.subscriptionGroupId))[1]).toBe('of the group');
  });
});
