import { accountLimitReached, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Context } from '../store/context.ts';
import type { CountedDomainGroup } from '../store/domains/domain-groups.ts';
import { type Page, pageOf } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Domain groups: an account's classification of its domains. Every domain is in one group; the default group is
 * created with the account and cannot be deleted.
 */

export interface DomainGroupInput {
  name: string;
  description: string | null;
  color: string | null;
  icon: string | null;
}

export type DomainGroupPatch = Partial<DomainGroupInput>;

/** Selects a page of the groups of an account. */
export interface DomainGroupFilter {
  accountId: string;
  /** Only groups after this one; null: from the oldest on. */
  afterId: string | null;
  limit: number;
}

/** Maximum number of groups of an account, with the default group. */
export const MAX_GROUPS = 1000;

/**
 * Keeps no state: reads use `tables`, each change is one unit of work. Refuses with `GROUP_NOT_FOUND`,
 * `GROUP_NOT_EMPTY` (also for the default group) and `LIMIT_REACHED`.
 */
export function createDomainGroups({
  tables,
  writer,
  clock,
  ids,
}: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids'>) {
  return {
    /** A page of the groups of an account, oldest first; null: it has no group `afterId`. */
    page: ({ accountId, afterId, limit }: DomainGroupFilter): Page<CountedDomainGroup> | null => {
      const { domainGroups } = tables;
      if (afterId === null) return pageOf(domainGroups.list(accountId, undefined, limit + 1), limit);
      const after = domainGroups.get(accountId, afterId);
      return after === null ? null : pageOf(domainGroups.list(accountId, after, limit + 1), limit);
    },

    get: (accountId: string, groupId: string): CountedDomainGroup | Refusal =>
      findGroup(tables, accountId, groupId),

    /** Refuses more than MAX_GROUPS of an account. */
    create: (accountId: string, input: DomainGroupInput): Promise<CountedDomainGroup | Refusal> =>
      writer.run(({ domainGroups }): CountedDomainGroup | Refusal => {
        if (domainGroups.count(accountId) >= MAX_GROUPS)
          return accountLimitReached('domainGroups', MAX_GROUPS, {
            resources: 'domain groups',
            remedy: 'delete one that is empty',
          });
        const now = clock.now();
        const row = {
          ...input,
          group_id: ids.make('dgroup'),
          account_id: accountId,
          is_default: 0 as const,
          created_at: now,
          updated_at: now,
        };
        domainGroups.insert(row);
        return { ...row, domain_count: 0 };
      }, accountId),

    /** Changes the fields of the patch. */
    update: (
      accountId: string,
      groupId: string,
      patch: DomainGroupPatch,
    ): Promise<CountedDomainGroup | Refusal> =>
      writer.run((tx) => {
        const group = findGroup(tx, accountId, groupId);
        if (isRefusal(group)) return group;
        const updated = { ...group, ...patch, updated_at: clock.now() };
        tx.domainGroups.update(updated);
        return updated;
      }, accountId),

    /** Refused for a group with domains, and for the default group. */
    remove: (accountId: string, groupId: string): Promise<Refusal | null> =>
      writer.run((tx) => {
        const group = findGroup(tx, accountId, groupId);
        if (isRefusal(group)) return group;
        if (group.is_default === 1)
          return refuse(
            'GROUP_NOT_EMPTY',
            'The default group cannot be deleted: domains registered without a group are added to it',
          );
        if (group.domain_count > 0)
          return refuse(
            'GROUP_NOT_EMPTY',
            `The group still has ${group.domain_count} domain${group.domain_count === 1 ? '' : 's'}: move them to another group first`,
          );
        tx.domainGroups.remove(accountId, groupId);
        return null;
      }, accountId),
  };
}

/** Returns a group of the account. The refusal is equal for an unknown group and for one of another account. */
export function findGroup(tables: Tables, accountId: string, groupId: string): CountedDomainGroup | Refusal {
  return (
    tables.domainGroups.get(accountId, groupId) ??
    refuse('GROUP_NOT_FOUND', `There is no domain group ${groupId}`)
  );
}
