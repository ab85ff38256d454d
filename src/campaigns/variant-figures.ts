import { iso, isoOrNull } from '../core/clock.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { VariantCounts } from '../store/campaigns/campaign-variants.ts';
import type { Tables } from '../store/tables.ts';
import { CONFIDENCE, compareRates } from './comparison.ts';
import { decisionOf, hasRest, isPassEnd, testOf } from './variants.ts';

export const TEST_STATES = ['sending', 'waiting', 'decided', 'split'] as const;

/** What is known of an A/B test, from a row for each variant; null: the campaign has one content. */
export function presentTest({ campaignVariants, people }: Tables, send: CampaignSend) {
  const test = testOf(send);
  if (test === null) return null;
  const decision = decisionOf(send);
  const counts = campaignVariants.counts(send.campaign_seq);
  const { share, winner, waitHours } = test;
  const opens = compareRates(counts, 'opens').rates;
  const clicks = compareRates(counts, 'clicks').rates;
  const nameOf = (variant: number) => test.variants[variant]?.name ?? '';
  return {
    share,
    winner,
    waitHours,
    state: stateOf(send),
    decidesAt: decision === null ? isoOrNull(send.decide_at) : null,
    confidence: CONFIDENCE,
    variants: test.variants.map(({ name, subject }, variant) => {
      const { queued, delivered } = counts[variant] ?? NO_COUNTS;
      return {
        name,
        subject,
        queued,
        delivered,
        opens: opens[variant] ?? NO_RATE,
        clicks: clicks[variant] ?? NO_RATE,
      };
    }),
    decision:
      decision === null
        ? null
        : {
            variant: nameOf(decision.variant),
            reason: decision.reason,
            decidedAt: iso(decision.at),
            ...(decision.by === null ? {} : { by: people.get(decision.by)?.email ?? decision.by }),
            counts: decision.counts.map((one, variant) => ({ variant: nameOf(variant), ...one })),
          },
  };
}

const NO_COUNTS: VariantCounts = { queued: 0, delivered: 0, opened: 0, clicked: 0 };
const NO_RATE = { people: 0, rate: null, difference: null };

function stateOf(send: CampaignSend): (typeof TEST_STATES)[number] {
  if (!hasRest(testOf(send))) return 'split';
  if (send.decision !== null) return 'decided';
  return isPassEnd(send) ? 'waiting' : 'sending';
}
