import { expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSavedViews, type ViewOwner } from '../../src/people/saved-views.ts';
import { startStore } from '../support/store.ts';

const VIEW = { page: 'messages', name: 'Bounces', query: { status: 'bounced' } };
const ADA: ViewOwner = { personId: 'person_ada', accountId: 'acct_one' };

function start() {
  const { tables, writer, clock, ids } = startStore();
  for (const name of ['ada', 'bob'])
    tables.people.insert({
      person_id: `person_${name}`,
      email: `${name}@example.com`,
      email_key: `${name}@example.com`,
      name,
      operator: 0,
      operator_by_group: 0,
      status: 'active',
      language: null,
      password: null,
      totp: null,
      totp_used: 0,
      created_at: 0,
      updated_at: 0,
      signed_in_at: null,
      shortcuts: 1,
      failure_mail: 1,
    });
  return { tables, clock, views: createSavedViews({ tables, writer, clock, ids }) };
}

it('belong to a person and an account, and to no other', async () => {
  const { views } = start();
  await views.save(ADA, VIEW);
  expect(views.list(ADA)).toMatchObject([VIEW]);
  for (const other of [
    { ...ADA, personId: 'person_bob' },
    { ...ADA, accountId: null },
  ])
    expect(views.list(other)).toEqual([]);
  const [view] = views.list(ADA);
  expect(await views.remove('person_bob', view?.id ?? '')).toMatchObject({ code: 'NOT_FOUND' });
  expect(await views.remove(ADA.personId, view?.id ?? '')).toBeNull();
  expect(views.list(ADA)).toEqual([]);
});

it('are replaced by one of the same page and name', async () => {
  const { views } = start();
  await views.save(ADA, VIEW);
  await views.save(ADA, { ...VIEW, page: 'contacts' });
  await views.save(ADA, { ...VIEW, query: { period: '7d' } });
  expect(views.list(ADA).map(({ page, query }) => [page, query])).toEqual(
    expect.arrayContaining([
      ['contacts', VIEW.query],
      ['messages', { period: '7d' }],
    ]),
  );
  expect(views.list(ADA).length).toBe(2);
});

it('are at most 100 of a person', async () => {
  const { views } = start();
  for (let n = 0; n < 100; n++) await views.save(ADA, { ...VIEW, name: `View ${n}` });
  const refused = await views.save({ ...ADA, accountId: null }, VIEW);
  expect(isRefusal(refused) && refused.code).toBe('LIMIT_REACHED');
  // One with this name is replaced.
  expect(isRefusal(await views.save(ADA, { ...VIEW, name: 'View 7' }))).toBe(false);
});

it('are deleted with their person', async () => {
  const { tables, views } = start();
  await views.save(ADA, VIEW);
  tables.people.remove(ADA.personId);
  expect(tables.savedViews.ofPerson(ADA.personId, 9)).toEqual([]);
});
