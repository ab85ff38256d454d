import { iso } from '../core/clock.ts';
import type { ReputationCounts } from '../store/reputation/reputation-counts.ts';
import type { SpamRateRow } from '../store/reputation/spam-rates.ts';
import { changeSentence } from './changes.ts';
import type { SendingLimit } from './monitor.ts';
import { attemptsOf, reputationRates } from './rates.ts';
import type { DayCounts, Reputation } from './report.ts';

/** As the API returns it. `days`: length of the period. `limits`: those in force. */
export function presentReputation(found: Reputation, days: number, limits: SendingLimit[]) {
  const { dmarc } = found;
  return {
    from: iso(found.from),
    to: iso(found.to),
    days,
    total: { ...presentCounted(found.total), days: found.days.map(presentDay) },
    providers: found.providers.map(({ provider, counts: sums, days: ofProvider }) => ({
      provider,
      ...presentCounted(sums),
      days: ofProvider.map(presentDay),
    })),
    domains: found.domains.map(({ domainId, name, counts: sums }) => ({
      domainId,
      domain: name,
      ...presentCounted(sums),
    })),
    sourceAddresses: found.sources.map(({ name, counts: sums }) => ({ name, ...presentCounted(sums) })),
    dmarc: {
      messages: dmarc.messages,
      passed: dmarc.passed,
      passRate: dmarc.messages === 0 ? null : dmarc.passed / dmarc.messages,
      days: dmarc.days.map(({ day: at, messages, passed }) => ({ date: dateOf(at), messages, passed })),
    },
    changes: found.changes.map((change) => ({
      rate: change.rate,
      trend: change.trend,
      provider: change.provider,
      domain: change.domain,
      since: dateOf(change.since),
      share: change.share,
      before: change.before,
      sentence: changeSentence(change),
    })),
    limits,
    spamRates: found.spamRates.map(presentSpamRate),
  };
}

function presentDay({ day: at, counts: sums }: DayCounts) {
  return { date: dateOf(at), ...presentCounts(sums) };
}

function presentCounted(sums: ReputationCounts) {
  return { ...presentCounts(sums), rates: reputationRates(sums) };
}

function presentCounts(sums: ReputationCounts) {
  return {
    volume: sums.volume,
    attempts: attemptsOf(sums),
    delivered: sums.delivered,
    deferred: sums.deferred,
    hardBounced: sums.hardBounced,
    softBounced: sums.softBounced,
    blocked: sums.blocked,
    bounced: sums.hardBounced + sums.softBounced,
    complained: sums.complained,
    unsubscribed: sums.unsubscribed,
    opened: sums.opened,
    clicked: sums.clicked,
  };
}

/** As the API returns it. */
export function presentSpamRate({ provider, about, day: at, rate }: SpamRateRow) {
  // A domain has no address as its name.
  const of = /^[\d.]+$|:/.test(about) ? { address: about } : { domain: about };
  return { provider, ...of, day: dateOf(at), rate };
}

function dateOf(at: number): string {
  return iso(at).slice(0, 10);
}
