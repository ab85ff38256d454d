import type { SendingLimitRow } from '../../src/store/sending-limits.ts';

/** Marketing mail of an account that is stopped because of its hard bounces. */
export function limitRow(changes: Partial<SendingLimitRow> = {}): SendingLimitRow {
  const figures = { messages: 1000, events: 70, rate: 7, lowerBound: 5.8, limit: 5 };
  return {
    limit_id: 'limit_1',
    account_id: 'acct_one',
    stream: 'mk',
    domain_id: '',
    provider: '',
    level: 'pause',
    figures: JSON.stringify({ reason: 'hard_bounces', ...figures }),
    per_minute: null,
    since: 0,
    counts_from: 0,
    seen_counts: null,
    ...changes,
  };
}
