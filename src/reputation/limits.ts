import type { Config } from '../config/schema.ts';
import type { RateFigures } from '../events/event-types.ts';
import type { RateSignal } from '../store/sending-limits.ts';
import type { RateLimitSettings, Verdict } from './judgement.ts';

/* Settings, figures and texts that campaigns and streams have in common. */

export type ReputationConfig = Pick<Config, 'reputation'>;

/** The limits of the configuration. */
export function configuredLimits({ reputation }: ReputationConfig): RateLimitSettings {
  const { hardBounces, complaints, blocks, unsubscribes } = reputation;
  return { hard_bounces: hardBounces, complaints, blocks, unsubscribes };
}

/** The figures of a verdict, with the precision that they have. */
export function figuresOf({ messages, events, rate, lowerBound, limit }: Verdict): RateFigures {
  return { messages, events, rate: rounded(rate), lowerBound: rounded(lowerBound), limit };
}

function rounded(percent: number): number {
  return Math.round(percent * 1000) / 1000;
}

/** What a person can do. */
export const REMEDIES: Readonly<Record<RateSignal, string>> = {
  hard_bounces:
    'Remove addresses that are old or were never confirmed, and send to those that opened mail recently. Addresses that bounced are suppressed already.',
  complaints:
    'Send only to people who asked for this mail, make the unsubscribe link easy to find, and send less often. People who complained are suppressed already.',
  blocks:
    'Read the replies of the receivers in the bounced and deferred messages: they name the content, the domain or the address that they refuse.',
  unsubscribes: 'Send less often, and only what people signed up for.',
};

/** Why a resumption needs a reason. */
export const RESUMED = 'it was stopped automatically, and the reason to continue is recorded';

/** `8.7 % of 310 messages bounced because their addresses do not exist (limit: 5 %)`. */
export function describeFigures(signal: RateSignal, { rate, messages, limit }: RateFigures): string {
  return `${rate} % of ${messages} messages ${WHAT[signal]} (limit: ${limit} %)`;
}

const WHAT: Readonly<Record<RateSignal, string>> = {
  hard_bounces: 'bounced because their addresses do not exist',
  complaints: 'were complained about',
  blocks: 'were refused because of reputation or content',
  unsubscribes: 'led to an opt-out',
};
