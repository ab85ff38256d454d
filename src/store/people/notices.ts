import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** What can begin to fail, and its owners are notified of. `limit`: an automatic limit of sending. */
export type NoticeKind = 'domain' | 'webhook' | 'limit';

/** A failure of which the owners of an account were notified. */
export interface FailureNoticeRow {
  account_id: string;
  kind: NoticeKind;
  /** Of the domain, webhook or limit. */
  cause_id: string;
  /** `well`: they were notified of the end, too. */
  state: 'failing' | 'well';
  /** When they were notified of the failure. */
  noticed_at: number;
}

/** Mail to a person that was not accepted yet. */
export interface NoticeMailRow {
  mail_id: string;
  person_id: string;
  subject: string;
  text: string;
  /** `sending`: the result of an attempt is not recorded yet. */
  state: 'waiting' | 'sending';
  attempts: number;
  due_at: number;
  created_at: number;
}

/** When a failure began of which owners have to be notified, epoch ms; `limit`: rows. */
export interface NoticePeriod {
  from: number;
  to: number;
  /** A cause of which they were notified since then is quiet. */
  quietFrom: number;
  limit: number;
}

/** SQL: the notice about a failure that goes on, or that is quiet. The columns are those of the cause. */
export function noticedCause(kind: NoticeKind, accountId: string, causeId: string): string {
  return `
    SELECT 1 FROM failure_notices AS n WHERE n.account_id = ${accountId} AND n.kind = '${kind}' AND n.cause_id = ${causeId}
      AND (n.state = 'failing' OR n.noticed_at > @quietFrom)`;
}

const STAYS = { stays: 'people who use the console are neither recipients nor contacts' } as const;

export const ATTENTION_SEEN_POLICY = {
  table: 'attention_seen',
  personal: ['person_id'],
  erasure: STAYS,
  retention: { until: 'the person is deleted' },
} as const satisfies DataPolicy;

export const NOTICE_MAIL_POLICY = {
  table: 'notice_mails',
  personal: ['person_id', 'subject', 'text'],
  erasure: STAYS,
  retention: { until: 'the mail is accepted or a day old, or the person is deleted' },
} as const satisfies DataPolicy;

/** `attention_seen`: what a person has seen of what needs attention in an account; '': in the installation. */
export function attentionSeenTable(db: Database) {
  const sql = statements(db);
  const put = sql.run<[string, string, string]>(`
    INSERT INTO attention_seen (person_id, account_id, seen) VALUES (?, ?, ?)
    ON CONFLICT (person_id, account_id) DO UPDATE SET seen = excluded.seen`);
  const get = db
    .prepare<[string, string], string>(
      'SELECT seen FROM attention_seen WHERE person_id = ? AND account_id = ?',
    )
    .pluck();
  return {
    /** Replaces what was seen before. */
    put: (personId: string, accountId: string, seen: readonly string[]): void =>
      put(personId, accountId, JSON.stringify(seen)),
    get: (personId: string, accountId: string): string[] => {
      const stored = get.get(personId, accountId);
      return stored === undefined ? [] : JSON.parse(stored);
    },
  };
}

/** `failure_notices`, by account and cause. */
export function failureNoticeTable(db: Database) {
  const sql = statements(db);
  const remove = sql.run<[string, string, string]>(
    'DELETE FROM failure_notices WHERE account_id = ? AND kind = ? AND cause_id = ?',
  );
  return {
    put: sql.run<[row: FailureNoticeRow]>(`
      INSERT INTO ${sql.row('failure_notices')}
      ON CONFLICT (account_id, kind, cause_id) DO UPDATE SET state = @state, noticed_at = @noticed_at`),
    list: sql.all<[limit: number], FailureNoticeRow>('SELECT * FROM failure_notices LIMIT +?'),
    remove: ({
      account_id,
      kind,
      cause_id,
    }: Pick<FailureNoticeRow, 'account_id' | 'kind' | 'cause_id'>): void =>
      remove(account_id, kind, cause_id),
  };
}

/** `notice_mails`. The state `sending` is committed before an attempt: no mail is sent again whose result is unknown. */
export function noticeMailTable(db: Database) {
  const sql = statements(db);
  return {
    insert: sql.run<[row: NoticeMailRow]>(`INSERT INTO ${sql.row('notice_mails')}`),
    update: sql.run<[row: NoticeMailRow]>(
      'UPDATE notice_mails SET state = @state, attempts = @attempts, due_at = @due_at WHERE mail_id = @mail_id',
    ),
    due: sql.all<[now: number, limit: number], NoticeMailRow>(`
      SELECT * FROM notice_mails WHERE state = 'waiting' AND due_at <= ? ORDER BY due_at LIMIT +?`),
    countOf: sql.count<[personId: string]>('SELECT count(*) FROM notice_mails WHERE person_id = ?'),
    remove: sql.run<[mailId: string]>('DELETE FROM notice_mails WHERE mail_id = ?'),
    /** Deletes mail whose last attempt has no result; returns how many. */
    removeSending: sql.changes("DELETE FROM notice_mails WHERE state = 'sending'"),
  };
}
