import type { DomainRow } from '../store/domains/domains.ts';
import type { FailureNoticeRow, NoticeKind, NoticePeriod } from '../store/people/notices.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookRow } from '../store/webhooks.ts';

/** A domain or a webhook of an account that fails, or that works again. */
export interface Cause {
  accountId: string;
  accountName: string;
  kind: NoticeKind;
  id: string;
  name: string;
  /** Epoch ms: since when it fails. */
  since: number;
}

/** What became of a failure of which owners were notified. `handled`: a person has changed or removed its cause. */
export interface EndedFailure {
  notice: FailureNoticeRow;
  /** Null: handled. */
  worksAgain: Cause | null;
}

export interface FailingCauses {
  begun: Cause[];
  ended: EndedFailure[];
}

/** Causes of one kind, of all accounts; the next run reads further ones. */
const MAX_BEGUN = 1000;

/** Reads what began to fail in all accounts, and which of the noticed failures have ended. */
export const failingCauses = readQuery(
  'failingCauses',
  (tables: Tables, notices: FailureNoticeRow[], period: Omit<NoticePeriod, 'limit'>): FailingCauses => {
    const accountNames = new Map<string, string>();
    const nameOf = (accountId: string) => {
      const known = accountNames.get(accountId) ?? tables.accounts.get(accountId)?.name ?? '';
      accountNames.set(accountId, known);
      return known;
    };
    const ofDomain = (row: DomainRow): Cause => ({
      accountId: row.account_id,
      accountName: nameOf(row.account_id),
      kind: 'domain',
      id: row.domain_id,
      name: row.name,
      since: row.failing_since ?? 0,
    });
    const ofWebhook = (row: WebhookRow): Cause => ({
      accountId: row.account_id,
      accountName: nameOf(row.account_id),
      kind: 'webhook',
      id: row.webhook_id,
      // The path of the address may have a secret.
      name: row.name || new URL(row.url).host,
      since: row.failing_since ?? row.updated_at,
    });
    const endOf = (notice: FailureNoticeRow): EndedFailure[] => {
      if (notice.state !== 'failing') return [];
      if (notice.kind === 'domain') {
        const row = tables.domains.get(notice.account_id, notice.cause_id);
        if (row !== null && isDomainFailing(row)) return [];
        return [{ notice, worksAgain: row?.status === 'SUCCESS' ? ofDomain(row) : null }];
      }
      const row = tables.webhooks.get(notice.account_id, notice.cause_id);
      if (row !== null && isWebhookFailing(row)) return [];
      // Another address, or enabled again: whether its endpoint responds is not known.
      const isHandled = row === null || row.is_active === 0 || row.updated_at > notice.noticed_at;
      return [{ notice, worksAgain: isHandled ? null : ofWebhook(row) }];
    };
    return {
      begun: [
        ...tables.domains.toNotice({ ...period, limit: MAX_BEGUN }).map(ofDomain),
        ...tables.webhooks.toNotice({ ...period, limit: MAX_BEGUN }).map(ofWebhook),
      ],
      ended: notices.flatMap(endOf),
    };
  },
);

/** One that was verified before. */
function isDomainFailing({ status, failing_since }: DomainRow): boolean {
  return failing_since !== null && (status === 'TEMPORARY_FAILURE' || status === 'FAILED');
}

/** One that its account disabled needs nobody. */
function isWebhookFailing({ is_active, failing_since, off_reason }: WebhookRow): boolean {
  return is_active === 1 ? failing_since !== null : off_reason !== null;
}
