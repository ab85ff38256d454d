import { afterAll, describe, expect, it } from 'vitest';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const GROUPS = '/web-setup/contacts/subscription-groups';
const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);

interface Group {
  subscriptionGroupId: string;
  totalSubscribers: number;
  activeSubscribers: number;
  [field: string]: unknown;
}

interface MembershipResult {
  message: string;
  subscriber: { isActive: boolean; email: string; [field: string]: unknown };
}

async function start() {
  const api = await daemon.account('A');
  const made = await api.post<{ group: Group }>(GROUPS, { name: 'News' });
  const { group } = made.data;
  const path = `${GROUPS}/${group.subscriptionGroupId}`;
  const add = (email: string) => api.post('/web-setup/contacts', { email });
  await add(ADA);
  const code = async (method: string, where: string, body?: object) => {
    const { status, error } = await api.call(method, where, body === undefined ? {} : { body });
    return [status, error.code];
  };
  return {
    api,
    group,
    path,
    members: `${path}/subscriptions`,
    add,
    code,
    counts: async () => {
      const { totalSubscribers, activeSubscribers } = (await api.get<{ group: Group }>(path)).data.group;
      return [totalSubscribers, activeSubscribers];
    },
  };
}

describe('a subscription group', () => {
  it('has all fields', async () => {
    const { api, group, path } = await start();
    expect(group).toEqual({
      subscriptionGroupId: expect.stringMatching(/^sgroup_\d{13}_[0-9a-z]{12}$/),
      groupId: group.subscriptionGroupId,
      name: 'News',
      userId: api.accountId,
      isActive: true,
      isDefault: false,
      isSystem: false,
      totalSubscribers: 0,
      activeSubscribers: 0,
      importStatus: null,
      tags: [],
      signUp: null,
      isPublic: false,
      archive: false,
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/),
    });
    expect((await api.get<object>(path)).data).toEqual({ group });
  });

  it.each(['PUT', 'PATCH'])('is updated by %s, field by field', async (method) => {
    const { api, path } = await start();
    const change = async (body: object) =>
      (await api.call<{ group: Group }>(method, path, { body })).data.group;
    await change({ description: 'Monthly', tags: ['a', 'b'] });
    const changed = await change({ name: 'Other', description: null, isActive: false });
    expect(changed).toMatchObject({ name: 'Other', tags: ['a', 'b'], isActive: false });
    expect(changed).not.toHaveProperty('description');
  });

  it('is listed newest first in pages, until it is deleted', async () => {
    const { api, path, code, group } = await start();
    await api.post(GROUPS, { name: 'Second' });
    interface Page {
      groups: Group[];
      count: number;
      nextKey?: string;
    }
    const first = (await api.get<Page>(`${GROUPS}?limit=1`)).data;
    expect(first).toMatchObject({ groups: [{ name: 'Second' }], count: 1 });
    const second = (await api.get<Page>(`${GROUPS}?limit=1&lastKey=${first.nextKey}`)).data;
    expect(second).toEqual({ groups: [group], count: 1 });
    expect((await api.call('DELETE', path)).status).toBe(200);
    expect((await api.get<Page>(GROUPS)).data.count).toBe(1);
    for (const method of ['GET', 'DELETE'])
      expect(await code(method, path)).toEqual([404, 'SUBSCRIPTION_GROUP_NOT_FOUND']);
  });
});

describe('a subscription', () => {
  it('reports a missing group before a missing contact', async () => {
    const { code } = await start();
    const none = `${GROUPS}/sgroup_1_x/subscriptions`;
    const calls: [string, string, object?][] = [
      ['GET', none],
      ['POST', none, { email: 'nobody@example.net' }],
      ['PUT', `${none}/email_${'0'.repeat(32)}`, {}],
      ['PATCH', `${none}/email_${'0'.repeat(32)}`, {}],
      ['GET', `${none}/email_${'0'.repeat(32)}`],
      ['DELETE', `${none}/email_${'0'.repeat(32)}`],
    ];
    for (const call of calls) expect(await code(...call)).toEqual([404, 'SUBSCRIPTION_GROUP_NOT_FOUND']);
  });

  it('accepts PUT without a body, and PATCH as PUT', async () => {
    const { api, members } = await start();
    const put = await api.call<MembershipResult>('PUT', `${members}/${ADA_ID}`);
    expect([put.status, put.data.subscriber.isActive]).toEqual([201, true]);
    const patch = await api.call<MembershipResult>('PATCH', `${members}/${ADA_ID}`, {
      body: { isActive: false },
    });
    expect([patch.status, patch.data.subscriber.isActive]).toEqual([200, false]);
  });

  it('has empty strings for missing values', async () => {
    const { api, members } = await start();
    await api.post('/web-setup/contacts', { phone: '+442079460000' });
    const added = await api.post<MembershipResult>(members, { phone: '+44 20 7946 0000' });
    expect(added.data.subscriber).toMatchObject({
      email: '',
      consentDetails: '',
      consentMethod: 'implicit_api',
    });
    const path = `${members}/${String(added.data.subscriber['contactIdentifier'])}`;
    expect((await api.get<object>(path)).data).toEqual({
      subscriptionId: `${String(added.data.subscriber['subscriptionGroupId'])}:${String(added.data.subscriber['contactIdentifier'])}`,
      subscriptionGroupId: added.data.subscriber['subscriptionGroupId'],
      contactIdentifier: added.data.subscriber['contactIdentifier'],
      email: '',
      isActive: true,
      joinedAt: expect.stringMatching(/Z$/),
      source: 'api',
      consentMethod: 'implicit_api',
      consentDetails: '',
      firstName: '',
      lastName: '',
      phone: '+442079460000',
      globalStatus: 'active',
      customFields: {},
    });
  });

  it('reports an opt-out when it is added again', async () => {
    const { api, members } = await start();
    await api.post(members, { email: ADA });
    await api.put(`${members}/${ADA_ID}`, { isActive: false });
    await api.call('DELETE', `${members}/${ADA_ID}`);
    const added = await api.post<MembershipResult>(members, { email: ADA });
    expect([added.status, added.data.subscriber.isActive, added.data.message]).toEqual([
      201,
      false,
      'Added as an inactive member: the contact has opted out of this group.',
    ]);
  });

  it.each([
    ['no identifier', {}, 'email'],
    ['an identifier in an unknown form', { contactIdentifier: ADA }, 'contactIdentifier'],
    [
      'an address and an identifier of different contacts',
      { email: ADA, contactIdentifier: `email_${'0'.repeat(32)}` },
      'contactIdentifier',
    ],
    ['an invalid isActive', { email: ADA, isActive: 'yes' }, 'isActive'],
    ['an unknown consent', { email: ADA, consentMethod: 'telepathy' }, 'consentMethod'],
  ])('is refused with %s', async (_, body, field) => {
    const { api, members } = await start();
    const answer = await api.post(members, body);
    expect([answer.status, answer.error.details?.map((detail) => detail.field)]).toEqual([400, [field]]);
  });

  it('is listed by group, activity and search', async () => {
    const { api, members, add } = await start();
    for (const email of ['bob@example.net', 'bea@example.net', 'cy@example.net']) {
      await add(email);
      await api.post(members, { email, isActive: email !== 'cy@example.net' });
    }
    interface Page {
      subscribers: { email: string }[];
      count: number;
      nextKey?: string;
    }
    const list = async (query: string) => {
      const emails: string[] = [];
      for (let key = ''; ; ) {
        const { subscribers, nextKey } = (await api.get<Page>(`${members}?limit=1&${query}${key}`)).data;
        emails.push(...subscribers.map(({ email }) => email));
        if (nextKey === undefined) return emails;
        key = `&lastKey=${nextKey}`;
      }
    };
    expect(await list('')).toEqual(['cy@example.net', 'bea@example.net', 'bob@example.net']);
    expect(await list('isActive=true')).toEqual(['bea@example.net', 'bob@example.net']);
    expect(await list('isActive=false')).toEqual(['cy@example.net']);
    expect(await list('search=b')).toEqual(['bea@example.net', 'bob@example.net']);
    expect(await list('search=ada')).toEqual([]);
    expect(await list('search=c&isActive=true')).toEqual([]);
  });
});

describe('concurrent requests', () => {
  it('50 adds of one contact get one 201, 49 times 200, and store one row', async () => {
    const { api, members, counts } = await start();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => api.post<MembershipResult>(members, { email: ADA })),
    );
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([...Array.from({ length: 49 }, () => 200), 201]);
    expect(new Set(answers.map(({ data }) => JSON.stringify(data.subscriber))).size).toBe(1);
    expect(await counts()).toEqual([1, 1]);
  });

  it('POST, PUT and DELETE in parallel leave correct counts', async () => {
    const { api, members, add, counts } = await start();
    const emails = Array.from({ length: 10 }, (_, n) => `m${n}@example.net`);
    await Promise.all(emails.map(add));
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => {
        const email = emails[(n * 7) % emails.length] ?? ADA;
        const one = `${members}/${emailIdentifier(email)}`;
        const round = Math.floor(n / 10) % 4;
        if (round === 0) return api.post(members, { email });
        return round === 3 ? api.call('DELETE', one) : api.put(one, { isActive: round === 1 });
      }),
    );
    expect(answers.filter(({ status }) => ![200, 201, 404].includes(status))).toEqual([]);
    const { subscribers } = (await api.get<{ subscribers: { isActive: boolean }[] }>(`${members}?limit=200`))
      .data;
    expect(await counts()).toEqual([
      subscribers.length,
      subscribers.filter(({ isActive }) => isActive).length,
    ]);
  });
});

describe('two accounts', () => {
  it('get the same response for a group of the other as for an unknown one', async () => {
    const { members, path, api } = await start();
    await api.post(members, { email: ADA });
    const other = await start();
    const never = path.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const calls: [string, (group: string) => string, object?][] = [
      ['GET', (group) => group],
      ['PUT', (group) => group, { name: 'X' }],
      ['PATCH', (group) => group, { name: 'X' }],
      ['DELETE', (group) => group],
      ['GET', (group) => `${group}/subscriptions`],
      ['POST', (group) => `${group}/subscriptions`, { email: ADA }],
      ['PUT', (group) => `${group}/subscriptions/${ADA_ID}`, {}],
      ['GET', (group) => `${group}/subscriptions/${ADA_ID}`],
      ['DELETE', (group) => `${group}/subscriptions/${ADA_ID}`],
    ];
    for (const [method, where, body] of calls) {
      expect(await other.code(method, where(path), body)).toEqual([404, 'SUBSCRIPTION_GROUP_NOT_FOUND']);
      expect(await other.code(method, where(never), body)).toEqual([404, 'SUBSCRIPTION_GROUP_NOT_FOUND']);
    }
    expect((await api.get<{ subscribers: object[] }>(members)).data.subscribers).toHaveLength(1);
  });
});
