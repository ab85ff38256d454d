import type { Log } from '../core/log.ts';

/**
 * Marketing mail has no one-click unsubscribe while its links are http (RFC 8058 §3.1), although large receivers require
 * it of bulk senders. The daemon logs a warning at its start and adds one to the first marketing send of each account.
 */
export interface OneClickNotice {
  /** Warnings for the response to the next marketing send of the account. */
  warnings(accountId: string): string[];
  /** A marketing send of this account was accepted. */
  sent(accountId: string): void;
}

const WARNING =
  'List-Unsubscribe-Post (one-click unsubscribe, RFC 8058) is omitted: public.url is not https, and Gmail and ' +
  'Yahoo require it of bulk senders';

/**
 * With https it does nothing. Otherwise it logs a warning now, and keeps the accounts that were warned in memory: after
 * a restart each is warned again.
 */
export function createOneClickNotice({ publicUrl, log }: { publicUrl: string; log: Log }): OneClickNotice {
  if (new URL(publicUrl).protocol === 'https:') return { warnings: () => [], sent: () => undefined };
  log.warn({ publicUrl }, 'public.url is not https: marketing mail has no one-click unsubscribe');
  const warned = new Set<string>();
  return {
    warnings: (accountId) => (warned.has(accountId) ? [] : [WARNING]),
    sent: (accountId) => {
      if (warned.has(accountId)) return;
      warned.add(accountId);
      log.warn(
        { accountId },
        'marketing mail without one-click unsubscribe accepted: public.url is not https',
      );
    },
  };
}
