import { type Clock, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import type { Runtime } from '../../core/runtime.ts';
import { createTokenBucket, type TokenBucket } from '../../core/token-bucket.ts';
import type { SuspensionMemory } from '../scheduling/suspension.ts';

/** The configured limits. */
export interface Limits {
  connections: number;
  /** Messages per second; 0: no limit. */
  perSecond: number;
}

/** Limits from which the steps are then taken back. */
export interface Restriction {
  /** Nothing is allowed for this time, ms. Default: 0. */
  pauseMs?: number;
  /** Connections at most. */
  connections?: number;
  /** Messages per second at most. */
  perSecond?: number;
}

/** What survives a restart. Times are of the system clock, epoch ms. */
export interface LimiterMemory {
  level: number;
  /** Messages per second at which the first step halved; 0: the steps limit the connections alone. */
  pace: number;
  limitedUntil: number;
  /** When the first step was taken. */
  since: number;
  /** When the last step was taken or taken back, not before the end of `limitedUntil`. */
  steppedAt: number;
}

const FIRST_PAUSE_MS = MINUTE;
const MAX_PAUSE_MS = 30 * MINUTE;
/** A reply can name a shorter time, and a reply or a rule a longer one up to this. */
const MIN_NAMED_PAUSE_MS = SECOND;
const MAX_NAMED_PAUSE_MS = 4 * HOUR;
const DELIVERIES_PER_STEP = 100;
const STEP_BACK_AFTER_MS = 10 * MINUTE;
/** Halved 8 times: 1/256 of the rate. */
const MAX_LEVEL = 8;
/** Messages per second; a backoff does not go below it. */
const MIN_RATE = 0.1;

/** Like `LimiterMemory`; `limitedUntil` and `steppedAt` are of the monotonic clock. */
type Step = LimiterMemory;

export type Limiter = ReturnType<typeof createLimiter>;

interface LimiterOptions extends Pick<Runtime, 'clock' | 'monotonic'> {
  limits: Limits;
  memory?: LimiterMemory | null | undefined;
}

/**
 * The limits of connections and rate in force at a site, or of one account at a site. When the receiver asks to send
 * less, the limiter backs off: it allows nothing for the time that the reply names, else for a minute, twice as long for each
 * further step, at most half an hour, and halves connections and rate. Each hundred messages that are accepted after
 * that, or ten minutes after that time, take back one step. Over a limit, mail is slower; it never stops. After a refusal
 * because of our address it resumes with one connection.
 *
 * Replies to sessions that began before the last step belong to the same event and count once.
 *
 * Begins with the configured limits, or with the step in `memory`, whose times end at most 4 h from now. Starts no
 * timer: steps are taken back when a function is called.
 */
export function createLimiter({ clock, monotonic, memory = null, ...options }: LimiterOptions) {
  let { limits } = options;
  let step: Step | null = restore(memory, clock, monotonic);
  /** What is stored of the step; null: its times are not computed yet. */
  let stored = memory;
  let epoch = 0;
  let deliveries = 0;
  let bucket: { rate: number; tokens: TokenBucket } | null = null;

  /** Takes back the steps for which enough time has passed. */
  function settle(): void {
    if (step === null) return;
    const now = monotonic.now();
    const steps = Math.floor((now - step.steppedAt) / STEP_BACK_AFTER_MS);
    if (steps > 0) stepBack(steps, step.steppedAt + steps * STEP_BACK_AFTER_MS);
  }

  function stepBack(steps: number, at: number): void {
    if (step === null) return;
    deliveries = 0;
    const level = step.level - steps;
    step = level <= 0 ? null : { ...step, level, steppedAt: at };
    stored = null;
  }

  /** Messages per second allowed now; null: no limit. */
  function perSecond(): number | null {
    settle();
    const configured = limits.perSecond > 0 ? limits.perSecond : null;
    if (step === null || step.pace === 0) return configured;
    const base = configured === null ? step.pace : Math.min(configured, step.pace);
    const reduced = Math.max(base / 2 ** step.level, MIN_RATE);
    return configured === null ? reduced : Math.min(configured, reduced);
  }

  /** A bucket of one second; after a change of the rate it has one token. */
  function tokens(): TokenBucket | null {
    const rate = perSecond();
    if (rate === null) {
      bucket = null;
      return null;
    }
    if (bucket?.rate !== rate) {
      const isFirst = bucket === null && step === null;
      const burst = Math.max(1, rate);
      bucket = { rate, tokens: createTokenBucket(monotonic, { burst, perSecond: rate }) };
      if (!isFirst) bucket.tokens.charge(burst - 1);
    }
    return bucket.tokens;
  }

  /** The lowest level with at most this number of connections. */
  function levelOf(connections: number): number {
    let level = 0;
    while (level < MAX_LEVEL && limits.connections / 2 ** level >= connections + 1) level++;
    return level;
  }

  function stepTo(level: number, pace: number, ms: number): void {
    epoch++;
    deliveries = 0;
    const limitedUntil = monotonic.now() + ms;
    step = { level, pace, limitedUntil, since: step?.since ?? clock.now(), steppedAt: limitedUntil };
    stored = null;
  }

  /** Connections allowed now, at least 1. */
  function connections(): number {
    settle();
    return step === null ? limits.connections : Math.max(1, Math.floor(limits.connections / 2 ** step.level));
  }

  /** Milliseconds for which nothing is allowed; 0: messages are. */
  function limitedMs(): number {
    return step === null ? 0 : Math.max(0, step.limitedUntil - monotonic.now());
  }

  /** Milliseconds until that time and the rate allow the next message; 0: now. */
  function waitMs(): number {
    return Math.max(limitedMs(), tokens()?.waitMs(1) ?? 0);
  }

  /** Counts a message that begins now toward the rate. */
  function start(): void {
    tokens()?.charge(1);
  }

  /** A message that was counted in this epoch was not sent. */
  function undo(begunIn: number): void {
    if (begunIn === epoch) tokens()?.charge(-1);
  }

  /**
   * The receiver asked to send less. `namedMs`: the time that it names; null: none. `pace`: messages per second until now.
   * `resumesWithOne`: with one connection instead of half of them. Returns for how many ms nothing is allowed; 0: the
   * session began before the last step.
   */
  function throttled(begunIn: number, namedMs: number | null, pace: number, resumesWithOne = false): number {
    if (begunIn !== epoch) return 0;
    settle();
    const level = Math.min(Math.max((step?.level ?? 0) + 1, resumesWithOne ? levelOf(1) : 0), MAX_LEVEL);
    const ms =
      namedMs === null
        ? Math.min(FIRST_PAUSE_MS * 2 ** (level - 1), MAX_PAUSE_MS)
        : Math.min(Math.max(namedMs, MIN_NAMED_PAUSE_MS), MAX_NAMED_PAUSE_MS);
    const measured = step === null || step.pace === 0 ? Math.max(pace, 1) : step.pace;
    // One connection is slow enough: the rate is halved, as with one step.
    const extra = Math.max(level - (step?.level ?? 0) - 1, 0);
    stepTo(level, measured * 2 ** extra, ms);
    return ms;
  }

  /** Limits more immediately, whatever the epoch; sessions that began before belong to the same event. */
  function restrict({ pauseMs = 0, connections: allowed, perSecond: rate }: Restriction): void {
    settle();
    const wanted = allowed === undefined ? 1 : levelOf(allowed);
    const level = Math.min(Math.max(step?.level ?? 1, wanted, 1), MAX_LEVEL);
    const before = step?.pace ?? 0;
    const wantedPace = rate === undefined ? before : rate * 2 ** level;
    stepTo(
      level,
      before === 0 ? wantedPace : Math.min(before, wantedPace),
      Math.max(Math.min(pauseMs, MAX_NAMED_PAUSE_MS), limitedMs()),
    );
  }

  /** A message was accepted in a session of this epoch. */
  function delivered(begunIn: number): void {
    if (step === null || begunIn !== epoch) return;
    deliveries++;
    if (deliveries >= DELIVERIES_PER_STEP) stepBack(1, monotonic.now());
  }

  return {
    connections,
    perSecond,
    /** Steps below the configured limits; 0: none. */
    level: (): number => {
      settle();
      return step?.level ?? 0;
    },
    limitedMs,
    waitMs,
    start,
    undo,
    /** Changes with each step: a session refers to the one in which it began. */
    epoch: (): number => epoch,
    throttled,
    restrict,
    delivered,
    configure: (next: Limits): void => {
      limits = next;
    },
    /** What is stored; the same object while it does not change. Null: the limits are the configured ones. */
    memory: (): LimiterMemory | null => {
      settle();
      if (step === null || stored !== null) return stored;
      const toEpoch = (at: number) => clock.now() + at - monotonic.now();
      const { limitedUntil, steppedAt } = step;
      stored = { ...step, limitedUntil: toEpoch(limitedUntil), steppedAt: toEpoch(steppedAt) };
      return stored;
    },
  };
}

/** A time that is longer than any that is set comes from a clock that was changed: it is shortened. */
function restore(memory: LimiterMemory | null, clock: Clock, monotonic: Clock): Step | null {
  if (memory === null) return null;
  const toMonotonic = (at: number) => monotonic.now() + Math.min(at - clock.now(), MAX_NAMED_PAUSE_MS);
  const level = Math.min(Math.max(Math.trunc(memory.level), 1), MAX_LEVEL);
  const isKnown = Number.isFinite(memory.pace) && memory.pace !== 0;
  const pace = isKnown ? Math.max(memory.pace, MIN_RATE) : memory.pace === 0 ? 0 : 1;
  return {
    ...memory,
    level,
    pace,
    limitedUntil: toMonotonic(memory.limitedUntil),
    steppedAt: toMonotonic(memory.steppedAt),
  };
}

/** Accounts with reduced limits at one site; beyond it, the one that was slowed first is forgotten. */
const MAX_ACCOUNTS = 1000;

/** Limits of the accounts at almost all sites: there are none. */
const NONE: ReadonlyMap<string, LimiterMemory> = new Map();

interface AccountLimitsOptions extends Pick<Runtime, 'clock' | 'monotonic'> {
  limits: Limits;
  memory?: ReadonlyMap<string, LimiterMemory> | undefined;
}

/**
 * The accounts that a site asked to send less: a reply about one sender slows the mail of its account to that site, and
 * no other mail. An account whose limits are the configured ones again is forgotten when `memory` is called. Restores the
 * accounts in `memory`; at most 1000 are limited.
 */
export function createSiteAccountLimits({ memory: before, ...options }: AccountLimitsOptions) {
  const accounts = new Map<string, Limiter>();
  const add = (accountId: string, memory: LimiterMemory | null): Limiter => {
    const limiter = createLimiter({ ...options, memory });
    accounts.set(accountId, limiter);
    for (const oldest of accounts.keys()) {
      if (accounts.size <= MAX_ACCOUNTS) break;
      accounts.delete(oldest);
    }
    return limiter;
  };
  for (const [accountId, stored] of before ?? []) add(accountId, stored);

  return {
    /**
     * Whether the account may start one more message, of which `inFlight` are in progress. Called for every message: almost
     * always no account is limited.
     */
    admits: (accountId: string, inFlight: number): boolean => {
      if (accounts.size === 0) return true;
      const limiter = accounts.get(accountId);
      return limiter === undefined || (limiter.waitMs() === 0 && inFlight < limiter.connections());
    },
    /** Whether the limits of the account are reduced. */
    isLimited: (accountId: string): boolean => accounts.has(accountId),
    /** Counts a message of the account toward its rate. Returns the epoch in which it began. */
    start: (accountId: string): number => {
      const limiter = accounts.get(accountId);
      limiter?.start();
      return limiter?.epoch() ?? 0;
    },
    undo: (accountId: string, epoch: number): void => accounts.get(accountId)?.undo(epoch),
    /** Milliseconds until the site takes mail of the account again; 0: now. */
    limitedMs: (accountId: string): number => accounts.get(accountId)?.limitedMs() ?? 0,
    /** See `throttled` of the limiter. */
    throttled: (accountId: string, epoch: number, waitMs: number | null, pace: number): number =>
      (accounts.get(accountId) ?? add(accountId, null)).throttled(epoch, waitMs, pace),
    delivered: (accountId: string, epoch: number): void => accounts.get(accountId)?.delivered(epoch),
    configure: (limits: Limits): void => {
      options.limits = limits;
      for (const limiter of accounts.values()) limiter.configure(limits);
    },
    /** Number of accounts with reduced limits. */
    count: (): number => accounts.size,
    /** What is stored, by account. */
    memory: (): ReadonlyMap<string, LimiterMemory> => {
      if (accounts.size === 0) return NONE;
      const stored = new Map<string, LimiterMemory>();
      for (const [accountId, limiter] of accounts) {
        const own = limiter.memory();
        if (own === null) accounts.delete(accountId);
        else stored.set(accountId, own);
      }
      return stored;
    },
  };
}

/** The limits of a site in force, for metrics and explanations. */
export interface SiteLimits {
  connections: number;
  /** Messages per second; null: no limit. */
  perSecond: number | null;
  /** Steps below the configured limits; 0: none. */
  level: number;
  /** When the site first asked to send less, epoch ms; null: the limits are the configured ones. */
  since: number | null;
  limitedMs: number;
  suspendedMs: number;
  /** Accounts with limits of their own. */
  accounts: number;
  /** Messages in progress. */
  inFlight: number;
}

/** What survives a restart. */
export interface SiteMemory {
  limits: LimiterMemory | null;
  suspension: SuspensionMemory | null;
  /** The wait after which the site accepted greylisted mail, ms; null: not known. */
  greylistMs: number | null;
  /** Limits of accounts at the site, by account id. */
  accounts: ReadonlyMap<string, LimiterMemory>;
}
