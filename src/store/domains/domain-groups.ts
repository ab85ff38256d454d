import type { Database } from '../database.ts';

/** Domain groups. Every domain is in one group, and every account has a default group. */
export interface DomainGroupRow {
  group_id: string;
  account_id: string;
  name: string;
  description: string | null;
  color: string | null;
  icon: string | null;
  is_default: 0 | 1;
  created_at: number;
  updated_at: number;
}

export type CountedDomainGroup = DomainGroupRow & { domain_count: number };

export function domainGroupTable(db: Database) {
  const counted =
    'SELECT g.*, (SELECT count(*) FROM domains d WHERE d.group_id = g.group_id) AS domain_count FROM domain_groups g';
  const insert = db.prepare<DomainGroupRow>(`
    INSERT INTO domain_groups (group_id, account_id, name, description, color, icon, is_default, created_at, updated_at)
    VALUES (@group_id, @account_id, @name, @description, @color, @icon, @is_default, @created_at, @updated_at)`);
  const update = db.prepare<DomainGroupRow>(`
    UPDATE domain_groups SET name = @name, description = @description, color = @color, icon = @icon, updated_at = @updated_at
    WHERE group_id = @group_id AND account_id = @account_id`);
  const get = db.prepare<[string, string], CountedDomainGroup>(
    `${counted} WHERE g.account_id = ? AND g.group_id = ?`,
  );
  const list = db.prepare<[string], CountedDomainGroup>(
    `${counted} WHERE g.account_id = ? ORDER BY g.created_at, g.group_id`,
  );
  const defaultOf = db.prepare<[string], CountedDomainGroup>(
    `${counted} WHERE g.account_id = ? AND g.is_default = 1`,
  );
  const remove = db.prepare<[string, string]>(
    'DELETE FROM domain_groups WHERE account_id = ? AND group_id = ?',
  );
  return {
    insert: (row: DomainGroupRow): void => {
      insert.run(row);
    },
    update: (row: DomainGroupRow): void => {
      update.run({ ...row });
    },
    get: (accountId: string, groupId: string): CountedDomainGroup | null =>
      get.get(accountId, groupId) ?? null,
    list: (accountId: string): CountedDomainGroup[] => list.all(accountId),
    defaultOf: (accountId: string): CountedDomainGroup | null => defaultOf.get(accountId) ?? null,
    remove: (accountId: string, groupId: string): void => {
      remove.run(accountId, groupId);
    },
  };
}
