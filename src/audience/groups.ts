import { HOUR, MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Context } from '../store/context.ts';
import { createPortions } from '../store/maintenance/portions.ts';
import type { NamedPageFilter, Page } from '../store/rows/page.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { usedBySequences } from './sequences/entries.ts';

/*
 * Subscription groups. An inactive group has members and receives no mail. A deleted group is invisible immediately; its
 * memberships are deleted in the background, because it may have a million of them.
 */

export interface SubscriptionGroupFields {
  name: string;
  description: string | null;
  isActive: boolean;
  tags: string[];
  unsubscribeTemplateId: string | null;
  reportAbuseTemplateId: string | null;
  companyAddressTemplateId: string | null;
  signUp: SignUpForm | null;
  /** Whether the preference page shows it; null: if it has a sign-up form. */
  isPublic: boolean | null;
  /** Whether its campaigns are public pages (campaigns/archive.ts). */
  archive: boolean;
}

/** Whether the preference page of the account shows the group. */
export function isPublicGroup(row: Pick<SubscriptionGroupRow, 'is_public' | 'sign_up'>): boolean {
  return row.is_public === null ? row.sign_up !== null : row.is_public === 1;
}

/** The form of a group on the public pages. A person who submits it becomes a member after a confirmation by mail. */
export interface SignUpForm {
  /** Sender of the confirmation mail. */
  from: string;
  /** Null: the default, with the name of the group. */
  subject: string | null;
  /** First paragraph of the confirmation mail; null: the default. */
  intro: string | null;
}

/** The sign-up form of a group; null: it has none. */
export function signUpFormOf({ sign_up }: Pick<SubscriptionGroupRow, 'sign_up'>): SignUpForm | null {
  // Sound: only this module writes the column.
  return sign_up === null ? null : (JSON.parse(sign_up) as SignUpForm);
}

/** Each deleted group wakes the loop. */
const REMOVAL_INTERVAL_MS = HOUR;
/** Pause after a failure. */
const REMOVAL_RETRY_MS = MINUTE;
/** The writer's share of deletions, so that they take turns with requests. */
const REMOVAL_SHARE = 'deleted-groups';

/**
 * Starts nothing: the loop of `background` runs at its start, after each `remove` and every hour. Lists run through
 * `reader`, everything else on the calling thread.
 */
export function createSubscriptionGroups(
  context: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids' | 'log'>,
  mayAdd: MayAdd,
) {
  const { tables, reader, writer, clock, ids, log } = context;
  const portions = createPortions({ writer, share: REMOVAL_SHARE });
  let isFirstRun = true;

  async function removeDeleted(): Promise<void> {
    if (isFirstRun) await writer.run((tx) => tx.subscriptionGroups.interruptImports());
    isFirstRun = false;
    for (const seq of tables.subscriptionGroups.deleted()) {
      const completed = await portions.run((tx, rows) => {
        const removed = tx.subscriptions.removeOfGroup(seq, rows) || tx.groupOptOuts.removeOfGroup(seq, rows);
        if (removed === 0) tx.subscriptionGroups.remove(seq);
        return { rows, isDone: removed === 0 };
      });
      if (!completed) return;
    }
  }

  const loop = createLoop({
    name: 'deleted-groups',
    run: removeDeleted,
    intervalMs: REMOVAL_INTERVAL_MS,
    retryMs: REMOVAL_RETRY_MS,
    log,
  });

  return {
    /** Newest first. */
    list: (filter: NamedPageFilter): Promise<Page<SubscriptionGroupRow>> =>
      reader.table(filter.accountId, 'subscriptionGroups', 'list', filter),
    get: (accountId: string, groupId: string): SubscriptionGroupRow | Refusal =>
      findSubscriptionGroup(tables, accountId, groupId),
    create: (accountId: string, fields: SubscriptionGroupFields): Promise<SubscriptionGroupRow | Refusal> =>
      writer.run((tx): SubscriptionGroupRow | Refusal => {
        const full = mayAdd(tx, accountId);
        if (full !== null) return full;
        const now = clock.now();
        const row = {
          subscription_group_id: ids.make('sgroup'),
          account_id: accountId,
          ...columnsOf(fields, ids.token()),
          created_at: now,
          updated_at: now,
        };
        const seq = tx.subscriptionGroups.insert(row);
        return {
          ...row,
          seq,
          total_subscribers: 0,
          active_subscribers: 0,
          import_status: null,
          deleted_at: null,
        };
      }, accountId),
    /** Changes the fields that are present. */
    update: (
      accountId: string,
      groupId: string,
      fields: Partial<SubscriptionGroupFields>,
    ): Promise<SubscriptionGroupRow | Refusal> =>
      writer.run((tx): SubscriptionGroupRow | Refusal => {
        const group = findSubscriptionGroup(tx, accountId, groupId);
        if (isRefusal(group)) return group;
        const changed = {
          ...group,
          ...columnsOf({ ...fieldsOf(group), ...fields }, group.archive_key ?? ids.token()),
          updated_at: clock.now(),
        };
        tx.subscriptionGroups.update(changed);
        return changed;
      }, accountId),
    /** Deletes the group; its contacts and their consent history stay. */
    remove: async (accountId: string, groupId: string): Promise<SubscriptionGroupRow | Refusal> => {
      const group = await writer.run((tx): SubscriptionGroupRow | Refusal => {
        const found = findSubscriptionGroup(tx, accountId, groupId);
        if (isRefusal(found)) return found;
        const used = usedBySequences(
          `Subscription group ${found.name}`,
          tx.sequences.usingGroup(accountId, groupId),
        );
        if (used !== null) return used;
        tx.subscriptionGroups.markDeleted(found.seq, clock.now());
        return found;
      }, accountId);
      if (!isRefusal(group)) loop.wake();
      return group;
    },
    /** Ends imports that an earlier daemon did not finish, and deletes the memberships of deleted groups. */
    background: {
      start: loop.start,
      stop: () => {
        portions.stop();
        return loop.stop();
      },
    },
  };
}

export type SubscriptionGroups = ReturnType<typeof createSubscriptionGroups>;

/** Returns the same refusal for an unknown group and for one of another account. */
export function findSubscriptionGroup(
  tables: Tables,
  accountId: string,
  groupId: string,
): SubscriptionGroupRow | Refusal {
  return (
    tables.subscriptionGroups.get(accountId, groupId) ??
    refuse('SUBSCRIPTION_GROUP_NOT_FOUND', `There is no subscription group ${groupId}`)
  );
}

function fieldsOf(row: SubscriptionGroupRow): SubscriptionGroupFields {
  return {
    name: row.name,
    description: row.description,
    isActive: row.is_active === 1,
    // Sound: only this module writes the column.
    tags: JSON.parse(row.tags) as string[],
    unsubscribeTemplateId: row.unsubscribe_template_id,
    reportAbuseTemplateId: row.report_abuse_template_id,
    companyAddressTemplateId: row.company_address_template_id,
    signUp: signUpFormOf(row),
    isPublic: row.is_public === null ? null : row.is_public === 1,
    archive: row.archive_key !== null,
  };
}

/** `archiveKey`: that of the archive, if it is on. */
function columnsOf(fields: SubscriptionGroupFields, archiveKey: string) {
  return {
    name: fields.name,
    description: fields.description,
    is_active: fields.isActive ? (1 as const) : (0 as const),
    tags: JSON.stringify(fields.tags),
    unsubscribe_template_id: fields.unsubscribeTemplateId,
    report_abuse_template_id: fields.reportAbuseTemplateId,
    company_address_template_id: fields.companyAddressTemplateId,
    sign_up: fields.signUp === null ? null : JSON.stringify(fields.signUp),
    is_public: fields.isPublic === null ? null : fields.isPublic ? (1 as const) : (0 as const),
    archive_key: fields.archive ? archiveKey : null,
  };
}
