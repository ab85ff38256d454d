import type { Database } from '../database/database.ts';
import { columnsSet, statements } from '../database/statements.ts';

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

/** The position in a list of groups. */
export type DomainGroupPosition = Pick<DomainGroupRow, 'created_at' | 'group_id'>;

export type CountedDomainGroup = DomainGroupRow & { domain_count: number };

const BEGINNING: DomainGroupPosition = { created_at: -1, group_id: '' };

/**
 * `domain_groups`; each read counts the domains of the group by the index `domains_by_group`. Pages follow
 * `domain_groups_by_account`. The table does not enforce that an account has one default.
 */
export function domainGroupTable(db: Database) {
  const sql = statements(db);
  const counted =
    'SELECT g.*, (SELECT count(*) FROM domains d WHERE d.group_id = g.group_id) AS domain_count FROM domain_groups g';
  const update = sql.run<[DomainGroupRow]>(`
    UPDATE domain_groups SET ${columnsSet('name, description, color, icon, updated_at')}
    WHERE group_id = @group_id AND account_id = @account_id`);
  const list = sql.all<[DomainGroupPosition & { accountId: string; limit: number }], CountedDomainGroup>(`
    ${counted} WHERE g.account_id = @accountId AND (g.created_at, g.group_id) > (@created_at, @group_id)
    ORDER BY g.created_at, g.group_id LIMIT +@limit`);
  return {
    insert: sql.run<[row: DomainGroupRow]>(`INSERT INTO ${sql.row('domain_groups')}`),
    update: (row: DomainGroupRow): void => update({ ...row }),
    get: sql.get<[accountId: string, groupId: string], CountedDomainGroup>(
      `${counted} WHERE g.account_id = ? AND g.group_id = ?`,
    ),
    /** The groups of an account after a position, oldest first. Default: all. */
    list: (
      accountId: string,
      { created_at, group_id }: DomainGroupPosition = BEGINNING,
      limit = -1,
    ): CountedDomainGroup[] => list({ accountId, created_at, group_id, limit }),
    count: sql.count<[accountId: string]>('SELECT count(*) FROM domain_groups WHERE account_id = ?'),
    defaultOf: sql.get<[accountId: string], CountedDomainGroup>(
      `${counted} WHERE g.account_id = ? AND g.is_default = 1`,
    ),
    remove: sql.run<[accountId: string, groupId: string]>(
      'DELETE FROM domain_groups WHERE account_id = ? AND group_id = ?',
    ),
  };
}
