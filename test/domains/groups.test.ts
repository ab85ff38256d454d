import { describe, expect, it, vi } from 'vitest';
import { accepted, startDomains } from './setup.ts';

const SHOPS = { name: 'Shops', description: null, color: '#2563eb', icon: null };

type Domains = Awaited<ReturnType<typeof startDomains>>['domains'];

const listed = ({ groups }: Domains, accountId: string) =>
  groups.page({ accountId, afterId: null, limit: 200 })?.rows ?? [];

describe('domain groups', () => {
  it('are limited for each account, and listed by reading one page', async () => {
    const { domains, tables } = await startDomains();
    const { groups } = domains;
    for (let n = tables.domainGroups.count('acct_one'); n < 1000; n++)
      tables.domainGroups.insert({
        ...SHOPS,
        group_id: `dgroup_${n}`,
        account_id: 'acct_one',
        is_default: 0,
        created_at: 5_000_000_000_000 + Math.floor(n / 3),
        updated_at: 1,
      });
    expect(await groups.create('acct_one', SHOPS)).toMatchObject({
      code: 'LIMIT_REACHED',
      extras: { details: [{ name: 'domainGroups' }] },
    });
    accepted(await groups.create('acct_two', SHOPS));
    accepted((await groups.remove('acct_one', 'dgroup_999')) ?? true);
    accepted(await groups.create('acct_one', SHOPS));
    const list = vi.spyOn(tables.domainGroups, 'list');
    const seen: string[] = [];
    for (let afterId: string | null = null; ; ) {
      const page = groups.page({ accountId: 'acct_one', afterId, limit: 150 });
      if (page === null) throw new Error('there is no such group');
      seen.push(...page.rows.map(({ group_id }) => group_id));
      afterId = seen.at(-1) ?? null;
      if (!page.more) break;
    }
    expect(new Set(seen).size).toBe(1000);
    expect(seen).toHaveLength(1000);
    expect(Math.max(...list.mock.results.map(({ value }) => (value as unknown[]).length))).toBe(151);
    expect(groups.page({ accountId: 'acct_two', afterId: 'dgroup_5', limit: 10 })).toBeNull();
  });

  it('are created, updated and deleted', async () => {
    const { domains, clock } = await startDomains();
    const { groups } = domains;
    const group = accepted(await groups.create('acct_one', SHOPS));
    expect(group).toMatchObject({
      ...SHOPS,
      group_id: expect.stringMatching(/^dgroup_\d{13}_[a-z0-9]{12}$/),
      account_id: 'acct_one',
      is_default: 0,
      domain_count: 0,
    });
    clock.advance(1000);
    const changed = accepted(
      await groups.update('acct_one', group.group_id, { name: 'Web shops', icon: '🛒' }),
    );
    expect(changed).toEqual({ ...group, name: 'Web shops', icon: '🛒', updated_at: clock.now() });
    expect(groups.get('acct_one', group.group_id)).toEqual(changed);
    expect(await groups.remove('acct_one', group.group_id)).toBeNull();
    expect(listed(domains, 'acct_one').map(({ group_id }) => group_id)).toEqual(['dgroup_acct_one']);
  });

  it('are not deleted while they have domains', async () => {
    const { domains, register } = await startDomains();
    const { group_id: groupId } = accepted(await domains.groups.create('acct_one', SHOPS));
    const moved = await register('one.example');
    accepted(await domains.assignGroup('acct_one', moved.domain_id, groupId));
    accepted(await domains.register('acct_one', { domain: 'two.example', useCaseId: 'tx-local', groupId }));
    expect(domains.groups.get('acct_one', groupId)).toMatchObject({ domain_count: 2 });
    expect(await domains.groups.remove('acct_one', groupId)).toMatchObject({
      code: 'GROUP_NOT_EMPTY',
      message: expect.stringContaining('2 domains'),
    });
    for (const { domain_id } of domains.list('acct_one'))
      await domains.assignGroup('acct_one', domain_id, 'dgroup_acct_one');
    expect(await domains.groups.remove('acct_one', groupId)).toBeNull();
  });

  it('include an undeletable default group', async () => {
    const { domains } = await startDomains();
    expect(await domains.groups.remove('acct_one', 'dgroup_acct_one')).toMatchObject({
      code: 'GROUP_NOT_EMPTY',
    });
    expect(listed(domains, 'acct_one')).toHaveLength(1);
  });

  it.each(['dgroup_acct_two', 'dgroup_0_never'])(
    'of other accounts are refused like unknown ones: %s',
    async (groupId) => {
      const { domains, register } = await startDomains();
      const domain = await register('one.example');
      const unknown = { code: 'GROUP_NOT_FOUND', message: `There is no domain group ${groupId}` };
      expect(domains.groups.get('acct_one', groupId)).toMatchObject(unknown);
      expect(await domains.groups.update('acct_one', groupId, { name: 'mine' })).toMatchObject(unknown);
      expect(await domains.groups.remove('acct_one', groupId)).toMatchObject(unknown);
      expect(await domains.assignGroup('acct_one', domain.domain_id, groupId)).toMatchObject(unknown);
      expect(listed(domains, 'acct_two').map(({ name }) => name)).toEqual(['Default']);
    },
  );
});
