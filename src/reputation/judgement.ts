import { LIMIT_LEVELS, type LimitLevel, RATE_SIGNALS, type RateSignal } from '../store/sending-limits.ts';

/*
 * When a rate of hard bounces, complaints, blocks or opt-outs limits sending. Pure.
 *
 * A limit is reached when the observed rate is at least its share and, so that few messages decide nothing, the lower
 * bound of the rate (Wilson score interval, 95 %) is above a share that is tolerated: for a pause the limit of the level before
 * it, for other levels their own limit. The rates of a stream are judged again and again while it grows, which multiplies the
 * chances of a false stop: a minimum number of messages and of events keeps them low.
 *
 * With the defaults and the sample of a campaign, computed exactly (test/reputation/judgement.test.ts): 8 % hard bounces stop
 * within 400 messages in 99.5 % of cases, 0.5 % complaints within 2,000 in 92.3 % and within 5,000 in 99.1 %, and of campaigns of
 * 10,000 messages with 1 % hard bounces and 0.03 % complaints one of 11,500 stops. For complaints no rule is much better: 2,000
 * messages with 0.5 % have ten, of which too few arrive by chance. The best test of 1,950 results (Neyman, Pearson) that stops at
 * most one clean campaign of 10,000 finds 93.2 % of them, and one that finds 99.5 % stops one clean campaign of 55.
 */

/** What became of the messages of a stream. A message can count more than once, such as one that is delivered and reported. */
export interface RateCounts {
  delivered: number;
  bounced: number;
  /** Of `bounced`: the address is permanently invalid. */
  hardBounced: number;
  /** Bounces and deferrals because of the sender's reputation or content. Of a campaign, only its first attempts are deferrals. */
  blocked: number;
  complained: number;
  unsubscribed: number;
}

export const NO_COUNTS: Readonly<RateCounts> = {
  delivered: 0,
  bounced: 0,
  hardBounced: 0,
  blocked: 0,
  complained: 0,
  unsubscribed: 0,
};

/** Percent of messages from which each level applies; an absent level does not exist. */
export type SignalLimits = { [Level in LimitLevel]?: number | undefined };
export type RateLimitSettings = Record<RateSignal, SignalLimits>;

/** Fewer messages, or fewer events among them, decide nothing. */
export interface SampleSize {
  messages: number;
  events: number;
  /** Events that are complaints: they are so rare that clean mail has few by chance. Default: `events`. */
  complaints?: number;
}

/** Of one campaign. */
export const CAMPAIGN_SAMPLE: SampleSize = { messages: 100, events: 10, complaints: 6 };
/** Of a stream of an account or a domain: a campaign stops long before its whole stream. */
export const STREAM_SAMPLE: SampleSize = { messages: 1000, events: 10 };

/** 95 %, one-sided. */
const CONFIDENCE_Z = 1.645;
/** A limit that does not need a person ends when the rate is below this part of it. */
const RELEASE_SHARE = 0.7;

/** A limit that is reached. */
export interface Verdict {
  signal: RateSignal;
  level: LimitLevel;
  /** The sample: messages and those among them that count. */
  messages: number;
  events: number;
  /** Percent; `lowerBound`: the rate is higher with a confidence of 95 %. */
  rate: number;
  lowerBound: number;
  /** Percent: the limit that is reached. */
  limit: number;
}

/** The lower bound of a share of which `events` of `messages` were observed (Wilson 1927), between 0 and 1. */
export function wilsonLowerBound(events: number, messages: number, z = CONFIDENCE_Z): number {
  if (messages === 0) return 0;
  const share = events / messages;
  const z2 = z * z;
  const spread = z * Math.sqrt((share * (1 - share)) / messages + z2 / (4 * messages * messages));
  return Math.max(0, (share + z2 / (2 * messages) - spread) / (1 + z2 / messages));
}

/** The sample of each signal. */
const SAMPLES: Readonly<Record<RateSignal, (counts: RateCounts) => Pick<SampleSize, 'messages' | 'events'>>> =
  {
    hard_bounces: ({ delivered, bounced, hardBounced }) => ({
      messages: delivered + bounced,
      events: hardBounced,
    }),
    complaints: ({ delivered, complained }) => ({ messages: delivered, events: complained }),
    blocks: ({ delivered, blocked }) => ({ messages: delivered + blocked, events: blocked }),
    unsubscribes: ({ delivered, unsubscribed }) => ({ messages: delivered, events: unsubscribed }),
  };

/** The highest level that the counts reach, of any of the signals; null: none. */
export function judge(
  counts: RateCounts,
  limits: RateLimitSettings,
  sample: SampleSize,
  signals: readonly RateSignal[] = RATE_SIGNALS,
): Verdict | null {
  return signals
    .map((signal) => judgeSignal(SAMPLES[signal](counts), signal, limits[signal], sample))
    .reduce((worst, next) => (isHigher(next, worst) ? next : worst), null);
}

function judgeSignal(
  { messages, events }: Pick<SampleSize, 'messages' | 'events'>,
  signal: RateSignal,
  limits: SignalLimits,
  sample: SampleSize,
): Verdict | null {
  const minEvents = signal === 'complaints' ? (sample.complaints ?? sample.events) : sample.events;
  if (messages < sample.messages || events < minEvents) return null;
  const rate = (100 * events) / messages;
  const lowerBound = 100 * wilsonLowerBound(events, messages);
  for (const level of LIMIT_LEVELS.toReversed()) {
    const limit = limits[level];
    if (limit === undefined || rate < limit) continue;
    if (lowerBound > toleratedShare(limits, level, limit))
      return { signal, level, messages, events, rate, lowerBound, limit };
  }
  return null;
}

/** Percent that the lower bound must exceed for this level. */
function toleratedShare({ notice, slow }: SignalLimits, level: LimitLevel, limit: number): number {
  return level === 'pause' ? Math.min(slow ?? notice ?? limit, limit) : limit;
}

function isHigher(one: Verdict | null, other: Verdict | null): boolean {
  if (one === null) return false;
  return other === null || levelRank(one.level) > levelRank(other.level);
}

/** Greater for a stricter level. */
export function levelRank(level: LimitLevel): number {
  return LIMIT_LEVELS.indexOf(level);
}

/** Whether a limit that was reached still applies: it ends clearly below where it began, so that it does not change often. */
export function stillApplies(counts: RateCounts, signal: RateSignal, limit: number): boolean {
  const { messages, events } = SAMPLES[signal](counts);
  return messages > 0 && (100 * events) / messages >= limit * RELEASE_SHARE;
}

/** The counts without those of an earlier time. */
export function countsSince(counts: RateCounts, before: RateCounts): RateCounts {
  return {
    delivered: Math.max(0, counts.delivered - before.delivered),
    bounced: Math.max(0, counts.bounced - before.bounced),
    hardBounced: Math.max(0, counts.hardBounced - before.hardBounced),
    blocked: Math.max(0, counts.blocked - before.blocked),
    complained: Math.max(0, counts.complained - before.complained),
    unsubscribed: Math.max(0, counts.unsubscribed - before.unsubscribed),
  };
}

/** Messages of a campaign that may wait for their first result until this many have one; then a part of those that have. */
const FIRST_AHEAD = 50;
const PROVEN_RESULTS = 2000;
const AHEAD_SHARE = 0.25;

/**
 * How many messages of a campaign may be under way: few until the results of the first ones show whether it may continue, so
 * that a stop comes in time.
 */
export function messagesAhead({ delivered, bounced }: Pick<RateCounts, 'delivered' | 'bounced'>): number {
  const results = delivered + bounced;
  return results < PROVEN_RESULTS ? FIRST_AHEAD : Math.floor(results * AHEAD_SHARE);
}
