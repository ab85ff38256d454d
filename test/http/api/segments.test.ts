import { afterAll, describe, expect, it } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const SEGMENTS = '/web-setup/segments';
const GOLD = { field: 'customFields.plan', op: 'is', value: 'gold' };

interface Segment {
  segmentId: string;
  name: string;
  filter: object;
  count: number;
}

interface Contacts {
  contacts: { email: string }[];
  count: number;
  nextKey?: string;
}

/** An account with three contacts, two of them with the plan gold. */
async function start() {
  const api = await daemon.account('A');
  for (const [email, plan] of Object.entries({ 'a@x.test': 'gold', 'b@x.test': 'free', 'c@x.test': 'Gold' }))
    await api.post('/web-setup/contacts', { email, customFields: { plan } });
  const refused = async (method: string, path: string, body?: object) => {
    const { status, error } = await api.call(method, path, body === undefined ? {} : { body });
    return [status, error.code, error.message];
  };
  const create = async (name: string, filter: object = GOLD) =>
    (await api.post<{ segment: Segment }>(SEGMENTS, { name, filter })).data.segment;
  return { api, refused, create };
}

describe('a segment over HTTP', () => {
  it('is created, counted, listed, updated and deleted', async () => {
    const { api, refused, create } = await start();
    const segment = await create('Gold');
    expect(segment).toEqual({
      segmentId: expect.stringMatching(/^segment_\d{13}_[0-9a-z]{12}$/),
      name: 'Gold',
      filter: GOLD,
      count: 2,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    const path = `${SEGMENTS}/${segment.segmentId}`;
    expect((await api.get<{ segments: Segment[] }>(SEGMENTS)).data.segments).toEqual([segment]);
    const other = await create('Not gold', { not: GOLD });
    // A count that is known from the creation is shown, too.
    const { data: listed } = await api.get<{ segments: Segment[] }>(`${SEGMENTS}?counts=false&search=not`);
    expect(listed.segments).toEqual([other]);
    expect((await api.call('DELETE', `${SEGMENTS}/${other.segmentId}`)).status).toBe(200);
    const not = { not: GOLD };
    const updated = (await api.call('PATCH', path, { body: { filter: not } })).data;
    expect(updated).toMatchObject({ segment: { name: 'Gold', filter: not, count: 1 } });
    expect((await api.get<{ segment: Segment }>(path)).data.segment.count).toBe(1);
    expect(await refused('POST', SEGMENTS, { name: 'Gold', filter: GOLD })).toEqual([
      400,
      'VALIDATION_ERROR',
      `name: is the name of another segment (${segment.segmentId})`,
    ]);
    expect((await api.call('DELETE', path)).status).toBe(200);
    expect((await refused('GET', path)).slice(0, 2)).toEqual([404, 'SEGMENT_NOT_FOUND']);
  });

  it('lists its contacts page by page', async () => {
    const { api, refused, create } = await start();
    const { segmentId } = await create('Gold');
    const list = async (query: string) =>
      (await api.get<Contacts>(`/web-setup/contacts?segmentId=${segmentId}${query}`)).data;
    const first = await list('&limit=1');
    expect(first.contacts.map(({ email }) => email)).toEqual(['c@x.test']);
    const second = await list(`&limit=1&lastKey=${encodeURIComponent(first.nextKey ?? '')}`);
    expect(second.contacts.map(({ email }) => email)).toEqual(['a@x.test']);
    expect(second.nextKey).toBeUndefined();
    expect((await list('&status=unsubscribed')).count).toBe(0);
    expect(await refused('GET', `/web-setup/contacts?segmentId=${segmentId}&search=a`)).toEqual([
      400,
      'VALIDATION_ERROR',
      'segmentId: cannot be combined with search',
    ]);
    expect((await refused('GET', '/web-setup/contacts?segmentId=segment_1')).slice(0, 2)).toEqual([
      404,
      'SEGMENT_NOT_FOUND',
    ]);
  });

  it('previews a filter, and refuses one that is invalid', async () => {
    const { api, refused } = await start();
    const preview = (filter: object) => api.post<Contacts>(`${SEGMENTS}/preview`, { filter });
    const { data } = await preview({ any: [GOLD, { field: 'email', op: 'startsWith', value: 'b@' }] });
    expect(data.count).toBe(3);
    expect(data.contacts.map(({ email }) => email)).toEqual(['c@x.test', 'b@x.test', 'a@x.test']);
    const invalid = { all: [GOLD, { ...GOLD, op: 'like' }] };
    expect(await refused('POST', `${SEGMENTS}/preview`, { filter: invalid })).toEqual([
      400,
      'VALIDATION_ERROR',
      expect.stringContaining('filter.all[1].op: must be one of "is"'),
    ]);
    const unknown = { all: [GOLD, { not: { group: 'sgroup_1' } }] };
    expect(await refused('POST', SEGMENTS, { name: 'x', filter: unknown })).toEqual([
      400,
      'VALIDATION_ERROR',
      'filter.all[1].not.group: is not a subscription group of the account: sgroup_1',
    ]);
  });
});

describe('the sunset rule over HTTP', () => {
  const RULE = { enabled: true, months: 12, messages: 10, noticeDays: 14 };
  const SUNSET = '/web-setup/contacts/sunset';

  it.each<[field: string, value: unknown]>([
    ['enabled', 'yes'],
    ['enabled', undefined],
    ['months', 5],
    ['months', 37],
    ['months', 6.5],
    ['messages', 0],
    ['messages', 1001],
    ['messages', null],
    ['noticeDays', -1],
    ['noticeDays', 91],
    ['noticeDays', '14'],
  ])('refuses the %s %j, and stays as it was', async (field, value) => {
    const { api, refused } = await start();
    expect((await api.put(SUNSET, RULE)).status).toBe(200);
    const [status, code, message] = await refused('PUT', SUNSET, { ...RULE, [field]: value });
    expect([status, code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(message).toContain(field);
    expect((await api.get<{ sunset: object }>(SUNSET)).data.sunset).toMatchObject(RULE);
  });

  it.each(['months=5', 'months=x', 'messages=0', 'messages=1001'])(
    'refuses to count for %s',
    async (query) => {
      const { refused } = await start();
      const [status, code, message] = await refused('GET', `${SUNSET}?${query}`);
      expect([status, code]).toEqual([400, 'VALIDATION_ERROR']);
      expect(message).toContain(query.split('=')[0]);
    },
  );
});
