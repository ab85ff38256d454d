import { DAY } from '../../core/clock.ts';
import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/**
 * MTA-STS policies of recipient domains (RFC 8461), one row per domain. They are stored because a policy protects only
 * until it is forgotten: an attacker who blocks its host must not profit from a restart.
 */
export interface StsPolicyRow {
  /** A-labels. */
  domain: string;
  /** The id in the TXT record for which the policy was fetched. */
  policy_id: string;
  mode: 'enforce' | 'testing' | 'none';
  /** JSON: the patterns. */
  mx: string;
  /** Seconds. */
  max_age: number;
  /** Epoch ms, like the times below. */
  fetched_at: number;
  expires_at: number;
  /** The next fetch in the background. */
  refresh_at: number;
  /** The day of the last use. */
  used_at: number;
}

export const STS_POLICY_POLICY = {
  table: 'sts_policies',
  personal: ['domain'],
  erasure: { stays: "a recipient domain's published policy, without data about a person" },
  retention: { until: 'the policy expires, after a year at most' },
} as const satisfies DataPolicy;

/** Maximum number of policies; a further one replaces the policy that was used least recently. */
export const MAX_STS_POLICIES = 20_000;

/**
 * `sts_policies`, by domain. `get` also returns a policy that has expired, until `expire` deletes it. `max`: rows at
 * most, the most recently used ones.
 */
export function stsPolicyTable(db: Database, max = MAX_STS_POLICIES) {
  const sql = statements(db);
  const get = db.prepare<[string], StsPolicyRow>('SELECT * FROM sts_policies WHERE domain = ?');
  const put = sql.run<[StsPolicyRow]>(`
    INSERT INTO ${sql.row('sts_policies')}
    ON CONFLICT (domain) DO UPDATE SET policy_id = excluded.policy_id, mode = excluded.mode, mx = excluded.mx,
      max_age = excluded.max_age, fetched_at = excluded.fetched_at, expires_at = excluded.expires_at,
      refresh_at = excluded.refresh_at, used_at = max(used_at, excluded.used_at)`);
  const count = sql.count('SELECT count(*) FROM sts_policies');
  const dropUnused = sql.run<[number]>(
    'DELETE FROM sts_policies WHERE domain IN (SELECT domain FROM sts_policies ORDER BY used_at LIMIT +?)',
  );
  const use = sql.run<[number, string, number]>(
    'UPDATE sts_policies SET used_at = ? WHERE domain = ? AND used_at < ?',
  );
  const postpone = sql.run<[number, string]>('UPDATE sts_policies SET refresh_at = ? WHERE domain = ?');
  return {
    get: (domain: string): StsPolicyRow | null => get.get(domain) ?? null,
    /** Inserts or replaces the policy of a domain. */
    put: (row: StsPolicyRow): void => {
      if (get.get(row.domain) === undefined) {
        const surplus = count() + 1 - max;
        if (surplus > 0) dropUnused(surplus);
      }
      put(row);
    },
    /** Whether `markUsed` would change the row: a day has passed. */
    needsUse: ({ used_at }: StsPolicyRow, now: number): boolean => used_at < now - (now % DAY),
    markUsed: (domain: string, now: number): void => {
      const day = now - (now % DAY);
      use(day, domain, day);
    },
    /** Sets the time of the next fetch, after a failed one. */
    postpone: (domain: string, refreshAt: number): void => postpone(refreshAt, domain),
    /** Policies to fetch again, the longest due first. */
    due: sql.all<[now: number, limit: number], StsPolicyRow>(
      'SELECT * FROM sts_policies WHERE refresh_at <= ? ORDER BY refresh_at LIMIT +?',
    ),
    /** Removes expired policies, at most `limit`; returns their number. */
    expire: sql.changes<[now: number, limit: number]>(`
      DELETE FROM sts_policies WHERE domain IN (
        SELECT domain FROM sts_policies WHERE expires_at <= ? ORDER BY expires_at LIMIT +?)`),
    count: (): number => count(),
  };
}
