import type { Database } from '../database/database.ts';
import { columnsSet, columnValues, statements } from '../database/statements.ts';
import { type NamedPageFilter, type Page, pageOf } from '../rows/page.ts';

/*
 * Subscription groups. `subscriptionTable` updates their counts with the memberships. A deleted group is invisible to
 * callers immediately; its row stays until its memberships are deleted.
 */

export type ImportStatus = 'running' | 'completed' | 'interrupted';

export interface SubscriptionGroupRow {
  /** The page key. */
  seq: number;
  subscription_group_id: string;
  account_id: string;
  name: string;
  description: string | null;
  is_active: 0 | 1;
  total_subscribers: number;
  active_subscribers: number;
  /** Null: there was no import into this group. */
  import_status: ImportStatus | null;
  /** A JSON array of strings. */
  tags: string;
  unsubscribe_template_id: string | null;
  report_abuse_template_id: string | null;
  company_address_template_id: string | null;
  /** A JSON object, `SignUpForm` of the audience module; null: the group has no form. */
  sign_up: string | null;
  /** Whether the preference page shows it; null: if it has a sign-up form. */
  is_public: 0 | 1 | null;
  /** Random, in the address of the archive of a private group; null: the group has no archive. */
  archive_key: string | null;
  deleted_at: number | null;
  created_at: number;
  updated_at: number;
}

export type NewSubscriptionGroup = Omit<
  SubscriptionGroupRow,
  'seq' | 'total_subscribers' | 'active_subscribers' | 'import_status' | 'deleted_at'
>;

/**
 * `subscription_groups`. Reads omit deleted groups, except `deleted`; pages follow the index
 * `subscription_groups_by_account`.
 */
export function subscriptionGroupTable(db: Database) {
  const sql = statements(db);
  const list = sql.all<[string, number, string, number], SubscriptionGroupRow>(`
    SELECT * FROM subscription_groups
    WHERE account_id = ? AND deleted_at IS NULL AND seq < ? AND instr(lower(name), lower(?)) > 0
    ORDER BY seq DESC LIMIT +?`);
  const clearTemplate = sql.run<[{ accountId: string; templateId: string }]>(`
    UPDATE subscription_groups SET
      unsubscribe_template_id = nullif(unsubscribe_template_id, @templateId),
      report_abuse_template_id = nullif(report_abuse_template_id, @templateId),
      company_address_template_id = nullif(company_address_template_id, @templateId)
    WHERE account_id = @accountId AND deleted_at IS NULL AND @templateId IN
      (unsubscribe_template_id, report_abuse_template_id, company_address_template_id)`);
  const setImportStatus = sql.run<[ImportStatus, number]>(
    'UPDATE subscription_groups SET import_status = ? WHERE seq = ?',
  );
  const markDeleted = sql.run<[number, number]>(
    'UPDATE subscription_groups SET deleted_at = ? WHERE seq = ?',
  );
  const byArchiveKey = sql.get<[string], SubscriptionGroupRow>(
    'SELECT * FROM subscription_groups WHERE archive_key = ? AND deleted_at IS NULL',
  );
  const withPublicArchive = sql.get<[string], SubscriptionGroupRow>(`
    SELECT * FROM subscription_groups
    WHERE subscription_group_id = ? AND archive_key IS NOT NULL AND deleted_at IS NULL
      AND coalesce(is_public, sign_up IS NOT NULL) = 1`);
  return {
    /** Returns its seq. */
    insert: sql.insert<[row: NewSubscriptionGroup]>(`
      INSERT INTO subscription_groups ${columnValues(`subscription_group_id, account_id, name, description,
        is_active, tags, unsubscribe_template_id, report_abuse_template_id, company_address_template_id, sign_up,
        is_public, archive_key, created_at, updated_at`)}`),
    /** Writes the columns that an account may change. */
    update: sql.run<[row: SubscriptionGroupRow]>(`
      UPDATE subscription_groups SET ${columnsSet(`name, description, is_active, tags, unsubscribe_template_id,
        report_abuse_template_id, company_address_template_id, sign_up, is_public, archive_key, updated_at`)}
      WHERE seq = @seq`),
    get: sql.get<[accountId: string, groupId: string], SubscriptionGroupRow>(
      'SELECT * FROM subscription_groups WHERE account_id = ? AND subscription_group_id = ? AND deleted_at IS NULL',
    ),
    /** The group of a sign-up form, of any account; null: there is no such form. */
    ofForm: sql.get<[groupId: string], SubscriptionGroupRow>(
      'SELECT * FROM subscription_groups WHERE subscription_group_id = ? AND deleted_at IS NULL AND sign_up IS NOT NULL',
    ),
    /** The group of any account with this archive: by its id if the group is public, else by the key. */
    ofArchive: (key: string): SubscriptionGroupRow | null => byArchiveKey(key) ?? withPublicArchive(key),
    /** Active groups that the preference page of the account shows, oldest first. */
    onPages: sql.all<[accountId: string, limit: number], SubscriptionGroupRow>(`
      SELECT * FROM subscription_groups INDEXED BY subscription_groups_on_pages
      WHERE account_id = ? AND deleted_at IS NULL AND is_active = 1
        AND coalesce(is_public, sign_up IS NOT NULL) = 1
      ORDER BY seq LIMIT +?`),
    /** Ids of active groups, oldest first, at most `limit`. */
    activeOf: sql.values<[accountId: string, limit: number], string>(`
      SELECT subscription_group_id FROM subscription_groups
      WHERE account_id = ? AND deleted_at IS NULL AND is_active = 1 ORDER BY seq LIMIT +?`),
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<SubscriptionGroupRow> =>
      pageOf(list(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search, limit + 1), limit),
    /** Removes a deleted compliance template from all groups of the account. */
    clearTemplate: (accountId: string, templateId: string): void => clearTemplate({ accountId, templateId }),
    setImportStatus: (seq: number, status: ImportStatus): void => setImportStatus(status, seq),
    /** Marks running imports as interrupted: at the start of a daemon they belong to a process that has ended. */
    interruptImports: sql.run(
      "UPDATE subscription_groups SET import_status = 'interrupted' WHERE import_status = 'running'",
    ),
    markDeleted: (seq: number, at: number): void => markDeleted(at, seq),
    /** Deleted groups whose memberships are not all deleted yet. */
    deleted: sql.values<[], number>('SELECT seq FROM subscription_groups WHERE deleted_at IS NOT NULL'),
    /** The group's memberships and opt-outs must be deleted first. */
    remove: sql.run<[seq: number]>('DELETE FROM subscription_groups WHERE seq = ?'),
  };
}
