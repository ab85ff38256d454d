import { afterAll, describe, expect, it } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const PATH = '/web-setup/suppressions';
const ADA = 'ada@example.net';

interface Page {
  suppressions: { email: string; stream: string; reason: string }[];
  count: number;
  nextKey?: string;
}

async function start() {
  const api = await daemon.account('A');
  const listed = async (query = '') =>
    (await api.get<Page>(PATH + query)).data.suppressions.map(
      ({ email, stream, reason }) => `${email} ${stream} ${reason}`,
    );
  return { api, listed };
}

describe('POST', () => {
  it('responds with 201 for a new suppression and 200 for an existing one', async () => {
    const { api, listed } = await start();
    const first = await api.post<object>(PATH, { email: ADA });
    expect([first.status, first.data]).toEqual([
      201,
      {
        suppression: {
          email: ADA,
          contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
          reason: 'manual',
          stream: 'all',
          createdAt: expect.stringMatching(/Z$/),
        },
      },
    ]);
    const again = await api.post(PATH, { email: ' ADA@Example.net ', reason: 'manual' });
    expect([again.status, again.data]).toEqual([200, first.data]);
    expect(await listed()).toEqual([`${ADA} all manual`]);
  });

  it('creates one for concurrent requests', async () => {
    const { api, listed } = await start();
    const answers = await Promise.all(Array.from({ length: 50 }, () => api.post(PATH, { email: ADA })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(49);
    expect(await listed()).toHaveLength(1);
  });

  it.each([
    ['no address', { email: 'nobody' }, 'email'],
    ['an unknown stream', { stream: 'sms' }, 'stream'],
    ['an unknown reason', { reason: 'because' }, 'reason'],
  ])('refuses %s', async (_, input, field) => {
    const { api } = await start();
    const { status, error } = await api.post(PATH, { email: ADA, ...input });
    expect([status, error.code, error.details?.[0]?.field]).toEqual([400, 'VALIDATION_ERROR', field]);
  });
});

describe('DELETE', () => {
  it.each([
    ['the query', { query: `?email=${ADA}&stream=mk` }],
    ['a body', { body: { email: ADA, stream: 'mk' } }],
    ['both', { query: `?email=${ADA}`, body: { email: ADA, stream: 'mk' } }],
  ])('reads its target from %s', async (_, { query = '', body }: { query?: string; body?: object }) => {
    const { api, listed } = await start();
    await api.post(PATH, { email: ADA });
    await api.post(PATH, { email: ADA, stream: 'mk' });
    const { status, data } = await api.call('DELETE', PATH + query, body === undefined ? {} : { body });
    expect([status, data]).toEqual([200, { message: expect.any(String), removed: 1 }]);
    expect(await listed()).toEqual([`${ADA} all manual`]);
  });

  it.each([
    ['has no address', {}, 400, 'email'],
    ['names two addresses', { query: `?email=${ADA}`, body: { email: 'bob@example.net' } }, 400, 'email'],
    ['names an address without a suppression', { query: '?email=bob@example.net' }, 404, undefined],
  ])(
    'is refused when it %s',
    async (_, { query = '', body }: { query?: string; body?: object }, expected, field) => {
      const { api, listed } = await start();
      await api.post(PATH, { email: ADA });
      const { status, error } = await api.call('DELETE', PATH + query, body === undefined ? {} : { body });
      expect([status, error.details?.[0]?.field]).toEqual([expected, field]);
      expect(await listed()).toHaveLength(1);
    },
  );
});

it('the history of an address names who deleted a suppression, and why', async () => {
  const { api } = await start();
  const removals = async (email: string, client = api) =>
    (await client.get<{ removals: object[]; count: number }>(`${PATH}/removals?email=${email}`)).data;
  await api.post(PATH, { email: ADA, reason: 'hard_bounce' });
  await api.call('DELETE', PATH, { body: { email: ADA, note: ' The mailbox was restored ' } });
  await api.post(PATH, { email: ADA });
  await api.call('DELETE', `${PATH}?email=${ADA}&note=`);
  const removal = {
    stream: 'all',
    suppressedAt: expect.stringMatching(/Z$/),
    removedBy: expect.stringMatching(/^key_/),
    removedAt: expect.stringMatching(/Z$/),
  };
  expect(await removals('ADA@example.net')).toEqual({
    removals: [
      { ...removal, reason: 'manual' },
      { ...removal, reason: 'hard_bounce', note: 'The mailbox was restored' },
    ],
    count: 2,
  });
  expect(await removals('bob@example.net')).toEqual({ removals: [], count: 0 });
  expect(await removals(ADA, (await start()).api)).toEqual({ removals: [], count: 0 });
  const long = await api.call('DELETE', PATH, { body: { email: ADA, note: 'x'.repeat(501) } });
  expect([long.status, long.error.details?.[0]?.field]).toEqual([400, 'note']);
});

it('the list is filtered, paged and separate for each account', async () => {
  const { api, listed } = await start();
  await api.post(PATH, { email: 'a@example.net', stream: 'tx' });
  await api.post(PATH, { email: 'b@example.net', reason: 'complaint' });
  await api.post(PATH, { email: 'c@example.net' });
  expect(await listed('?stream=tx')).toEqual(['a@example.net tx manual']);
  expect(await listed('?reason=complaint')).toEqual(['b@example.net all complaint']);
  expect(await listed('?email=C@example.net')).toEqual(['c@example.net all manual']);
  const { data } = await api.get<Page>(`${PATH}?limit=2`);
  expect(data).toMatchObject({
    count: 2,
    suppressions: [{ email: 'c@example.net' }, { email: 'b@example.net' }],
  });
  expect(await listed(`?lastKey=${data.nextKey}`)).toEqual(['a@example.net tx manual']);
  expect(await (await start()).listed()).toEqual([]);
});

it('the status of a contact follows its suppressions', async () => {
  const { api } = await start();
  await api.post('/web-setup/contacts', { email: ADA });
  const status = async () => {
    const path = '/web-setup/contacts/email_ae2c0afa556b74f2d501305b54c34910';
    return (await api.get<{ contact: { globalStatus: string } }>(path)).data.contact.globalStatus;
  };
  expect(await status()).toBe('active');
  await api.post(PATH, { email: ADA, stream: 'tx' });
  expect(await status()).toBe('active');
  await api.post(PATH, { email: ADA });
  expect(await status()).toBe('suppressed');
  await api.call('DELETE', PATH, { body: { email: ADA } });
  expect(await status()).toBe('active');
});
