import { DAY } from '../core/clock.ts';
import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import { type BoundId, idNumbers } from './rows/id-numbers.ts';

/** Limits of one account. Null: the configured default applies; -1: unlimited. */
export interface AccountLimitsRow {
  account_id: string;
  domains: number | null;
  webhooks: number | null;
  templates: number | null;
  contacts: number | null;
  messages_per_hour: number | null;
  messages_per_day: number | null;
  concurrent_requests: number | null;
  stored_bytes: number | null;
  campaigns: number | null;
  subscription_groups: number | null;
  suppressions: number | null;
  /** 1: the ramp of new accounts and domains does not apply. */
  ramp_skipped: 1 | null;
}

/** Resources whose number is limited. */
export const COUNTED_RESOURCES = [
  'domains',
  'webhooks',
  'templates',
  'contacts',
  'campaigns',
  'subscriptionGroups',
  'suppressions',
] as const;
export type CountedResource = (typeof COUNTED_RESOURCES)[number];

/**
 * `account_limits`, by account, cached until a write. Triggers count contacts in `contact_counts`, suppressions in
 * `suppression_counts` and bytes in `stored_bytes`; other resources are counted at each call.
 */
export function accountLimitTable(db: Database) {
  const sql = statements(db);
  const get = sql.get<[string], AccountLimitsRow>('SELECT * FROM account_limits WHERE account_id = ?');
  const ofAccount = cachedLookup(db, (accountId: string) => get(accountId));
  const counting = (sql: string) => db.prepare<[string], number>(sql).pluck();
  const counts: Record<CountedResource, ReturnType<typeof counting>> = {
    domains: counting('SELECT count(*) FROM domains WHERE account_id = ?'),
    webhooks: counting('SELECT count(*) FROM webhooks WHERE account_id = ?'),
    // Compliance templates count as templates.
    templates: counting(`
      SELECT count(*)
      FROM (SELECT account_id FROM templates UNION ALL SELECT account_id FROM compliance_templates)
      WHERE account_id = ?`),
    contacts: counting('SELECT contacts FROM contact_counts WHERE account_id = ?'),
    campaigns: counting('SELECT count(*) FROM campaigns WHERE account_id = ?'),
    subscriptionGroups: counting(
      'SELECT count(*) FROM subscription_groups WHERE account_id = ? AND deleted_at IS NULL',
    ),
    suppressions: counting('SELECT suppressions FROM suppression_counts WHERE account_id = ?'),
  };
  const { account } = idNumbers(db);
  const bytes = sql.count<[string | BoundId]>('SELECT bytes FROM stored_bytes WHERE account_id = ?');
  return {
    get: (accountId: string): AccountLimitsRow | null => ofAccount(accountId),
    /** Inserts or replaces the limits of an account. */
    put: sql.run<[row: AccountLimitsRow]>(`INSERT OR REPLACE INTO ${sql.row('account_limits')}`),
    /** Skips the ramp of an account and its domains; null: applies it again. */
    skipRamp: sql.run<[accountId: string, skipped: 1 | null]>(`
      INSERT INTO account_limits (account_id, ramp_skipped) VALUES (?, ?)
      ON CONFLICT (account_id) DO UPDATE SET ramp_skipped = excluded.ramp_skipped`),
    /** The number of resources of this kind that the account has. */
    count: (resource: CountedResource, accountId: string): number => counts[resource].get(accountId) ?? 0,
    /** Bytes of what the account manages and of the contents of its messages. */
    storedBytes: (accountId: string): number => {
      const number = account.find(accountId);
      // An account that has stored no message has no number.
      const ofMessages = number === accountId ? 0 : bytes(number);
      return bytes(accountId) + ofMessages;
    },
  };
}

/** Width of a slot of `message_counts`, ms. */
export const MESSAGE_SLOT_MS = 300_000;
/** Age at which a slot is deleted: no slot that overlaps the last day is older. */
const MAX_SLOT_AGE_MS = DAY + MESSAGE_SLOT_MS;

export interface MessageCount {
  /** Epoch ms at which the slot begins. */
  slot: number;
  messages: number;
}

/**
 * `message_counts`: accepted messages of an account in slots of five minutes. Beginning a slot deletes those that no
 * window of a day overlaps any more.
 */
export function messageCountTable(db: Database) {
  const sql = statements(db);
  const add = sql.changed<[number, string, number]>(
    'UPDATE message_counts SET messages = messages + ? WHERE account_id = ? AND slot = ?',
  );
  const insert = sql.run<[string, number, number]>(
    'INSERT INTO message_counts (account_id, slot, messages) VALUES (?, ?, ?)',
  );
  const purge = sql.run<[string, number]>('DELETE FROM message_counts WHERE account_id = ? AND slot < ?');
  const since = sql.all<[string, number, number], MessageCount>(
    'SELECT slot, messages FROM message_counts WHERE account_id = ? AND slot > ? AND slot <= ? ORDER BY slot',
  );
  return {
    /** Counts accepted messages, in the unit of work that stores them. */
    add: (accountId: string, messages: number, now: number): void => {
      const slot = now - (now % MESSAGE_SLOT_MS);
      if (add(messages, accountId, slot)) return;
      insert(accountId, slot, messages);
      purge(accountId, now - MAX_SLOT_AGE_MS);
    },
    /** The slots that overlap the last `windowMs`, oldest first. */
    within: (accountId: string, windowMs: number, now: number): MessageCount[] =>
      since(accountId, now - windowMs - MESSAGE_SLOT_MS, now),
  };
}
