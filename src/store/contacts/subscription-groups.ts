import type { Database } from '../database/database.ts';
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
  const insert = db.prepare<NewSubscriptionGroup>(`
    INSERT INTO subscription_groups (subscription_group_id, account_id, name, description, is_active, tags,
      unsubscribe_template_id, report_abuse_template_id, company_address_template_id, sign_up, created_at, updated_at)
    VALUES (@subscription_group_id, @account_id, @name, @description, @is_active, @tags, @unsubscribe_template_id,
      @report_abuse_template_id, @company_address_template_id, @sign_up, @created_at, @updated_at)`);
  const update = db.prepare<SubscriptionGroupRow>(`
    UPDATE subscription_groups SET name = @name, description = @description, is_active = @is_active, tags = @tags,
      unsubscribe_template_id = @unsubscribe_template_id, report_abuse_template_id = @report_abuse_template_id,
      company_address_template_id = @company_address_template_id, sign_up = @sign_up, updated_at = @updated_at
    WHERE seq = @seq`);
  const get = db.prepare<[string, string], SubscriptionGroupRow>(
    'SELECT * FROM subscription_groups WHERE account_id = ? AND subscription_group_id = ? AND deleted_at IS NULL',
  );
  const ofForm = db.prepare<[string], SubscriptionGroupRow>(
    'SELECT * FROM subscription_groups WHERE subscription_group_id = ? AND deleted_at IS NULL AND sign_up IS NOT NULL',
  );
  const list = db.prepare<[string, number, string, number], SubscriptionGroupRow>(`
    SELECT * FROM subscription_groups
    WHERE account_id = ? AND deleted_at IS NULL AND seq < ? AND instr(lower(name), lower(?)) > 0
    ORDER BY seq DESC LIMIT +?`);
  const clearTemplate = db.prepare<{ accountId: string; templateId: string }>(`
    UPDATE subscription_groups SET
      unsubscribe_template_id = nullif(unsubscribe_template_id, @templateId),
      report_abuse_template_id = nullif(report_abuse_template_id, @templateId),
      company_address_template_id = nullif(company_address_template_id, @templateId)
    WHERE account_id = @accountId AND deleted_at IS NULL AND @templateId IN
      (unsubscribe_template_id, report_abuse_template_id, company_address_template_id)`);
  const setImportStatus = db.prepare<[ImportStatus, number]>(
    'UPDATE subscription_groups SET import_status = ? WHERE seq = ?',
  );
  const interrupt = db.prepare(
    "UPDATE subscription_groups SET import_status = 'interrupted' WHERE import_status = 'running'",
  );
  const markDeleted = db.prepare<[number, number]>(
    'UPDATE subscription_groups SET deleted_at = ? WHERE seq = ?',
  );
  const deleted = db
    .prepare<[], number>('SELECT seq FROM subscription_groups WHERE deleted_at IS NOT NULL')
    .pluck();
  const remove = db.prepare<[number]>('DELETE FROM subscription_groups WHERE seq = ?');
  return {
    /** Returns its seq. */
    insert: (row: NewSubscriptionGroup): number => Number(insert.run(row).lastInsertRowid),
    /** Writes the columns that an account may change. */
    update: (row: SubscriptionGroupRow): void => {
      update.run(row);
    },
    get: (accountId: string, groupId: string): SubscriptionGroupRow | null =>
      get.get(accountId, groupId) ?? null,
    /** The group of a sign-up form, of any account; null: there is no such form. */
    ofForm: (groupId: string): SubscriptionGroupRow | null => ofForm.get(groupId) ?? null,
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<SubscriptionGroupRow> =>
      pageOf(list.all(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search, limit + 1), limit),
    /** Removes a deleted compliance template from all groups of the account. */
    clearTemplate: (accountId: string, templateId: string): void => {
      clearTemplate.run({ accountId, templateId });
    },
    setImportStatus: (seq: number, status: ImportStatus): void => {
      setImportStatus.run(status, seq);
    },
    /** Marks running imports as interrupted: at the start of a daemon they belong to a process that has ended. */
    interruptImports: (): void => {
      interrupt.run();
    },
    markDeleted: (seq: number, at: number): void => {
      markDeleted.run(at, seq);
    },
    /** Deleted groups whose memberships are not all deleted yet. */
    deleted: (): number[] => deleted.all(),
    /** The group's memberships and opt-outs must be deleted first. */
    remove: (seq: number): void => {
      remove.run(seq);
    },
  };
}
