import type { Log } from '../core/log.ts';

/**
 * Marketing mail has no one-click unsubscribe while its links are http (RFC 8058 §3.1), and the large receivers ask
 * bulk senders for it: the daemon warns when it starts, and every account with its first marketing send since then.
 */
export interface OneClickNotice {
  /** Warnings for the answer to this account's next marketing send. */
  warnings(accountId: string): string[];
  /** A marketing send of this account was accepted. */
  sent(accountId: string): void;
}

const WARNING =
  'List-Unsubscribe-Post (one-click unsubscribe, RFC 8058) is left out: public.url is not https, and Gmail and ' +
  'Yahoo require it of bulk senders';

export function createOneClickNotice({ publicUrl, log }: { publicUrl: string; log: Log }): OneClickNotice {
  if (new URL(publicUrl).protocol === 'https:') return { warnings: () => [], sent: () => undefined };
  log.warn({ publicUrl }, 'public.url is not https: marketing mail carries no one-click unsubscribe');
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
