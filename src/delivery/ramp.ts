import { DAY, MINUTE, SECOND } from '../core/clock.ts';
import { createTokenBucket, type TokenBucket } from '../core/token-bucket.ts';
import { attemptsOf } from '../reputation/rates.ts';
import type { Context } from '../store/context.ts';
import { MARKETING_PRIORITY, type QueuePriority, TRANSACTIONAL_PRIORITY } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import { dayOf, reservedForTransactional } from './warmup.ts';

/*
 * The ramp of new accounts and new sending domains (`reputation.ramp`): how many messages they send on a day (UTC). Marketing mail
 * leaves as many to transactional mail as in the warm-up of a source address. Marketing mail above the limit waits for the next day;
 * transactional mail is slowed to `reputation.perMinute`, so that it leaves on the same day.
 */

/** Whose mail it is. */
export interface Sender {
  account_id: string;
  domain_id: string;
}

type RampDeps = Pick<Context, 'config'> & { tables: Pick<Tables, 'accounts' | 'accountLimits' | 'domains'> };

/** Day of the ramp of an account or a domain, and messages of this day. */
interface RampPosition {
  /** '': the account. */
  domainId: string;
  /** From 1. */
  day: number;
  cap: number;
}

/** Greater limits are none. */
const MAX_CAP = 1_000_000_000;

/** The ramps that a message of an account and a domain is subject to, at most two. Reads cached rows only. */
function positionsOf(
  { config, tables }: RampDeps,
  { account_id, domain_id }: Sender,
  now: number,
): RampPosition[] {
  const { messages, factor, days } = config.reputation.ramp;
  if (messages === 0) return [];
  const limits = tables.accountLimits.get(account_id);
  // The operator knows the sender.
  if (limits !== null && (limits.ramp_skipped === 1 || limits.messages_per_day !== null)) return [];
  const starts = [
    { domainId: '', startedAt: tables.accounts.get(account_id)?.created_at },
    { domainId: domain_id, startedAt: tables.domains.byId(domain_id)?.created_at },
  ];
  return starts.flatMap(({ domainId, startedAt }) => {
    if (startedAt === undefined) return [];
    const day = Math.max(1, (dayOf(now) - dayOf(startedAt)) / DAY + 1);
    const cap = Math.ceil(messages * factor ** (day - 1));
    return day > days || cap >= MAX_CAP ? [] : [{ domainId, day, cap }];
  });
}

/** Messages of a day. */
interface DayUse {
  transactional: number;
  marketing: number;
  /** On the day before. */
  transactionalBefore: number;
  /** Attempts in progress; only the running daemon has them. */
  inFlight: number;
}

/** Reads what the domains of an account have sent on a day; '': all of them. Attempts count, as those of a warm-up. */
function readUse(
  tables: Pick<Tables, 'domains' | 'reputationCounts'>,
  accountId: string,
  day: number,
): Map<string, DayUse> {
  const uses = new Map<string, DayUse>();
  for (const at of [day, day - DAY])
    for (const row of tables.reputationCounts.ofDay(at, accountId)) {
      const isTransactional = tables.domains.byId(row.domainId)?.use_case === 'tx';
      for (const key of ['', row.domainId]) {
        const use = useOf(uses, key);
        if (at === day) use[isTransactional ? 'transactional' : 'marketing'] += attemptsOf(row);
        else if (isTransactional) use.transactionalBefore += attemptsOf(row);
      }
    }
  return uses;
}

function useOf(uses: Map<string, DayUse>, key: string): DayUse {
  const known = uses.get(key);
  if (known !== undefined) return known;
  const use: DayUse = { transactional: 0, marketing: 0, transactionalBefore: 0, inFlight: 0 };
  uses.set(key, use);
  return use;
}

/** The ramp of an account or a domain today. */
export interface RampStatus {
  /** Null: the account. */
  domain: string | null;
  /** From 1 to `days`. */
  day: number;
  days: number;
  /** Messages of today (UTC). */
  limit: number;
  used: number;
}

/** The ramps of an account and its domains; none: nothing is limited. Reads the counts of two days. */
export function rampStatus(
  { config, tables }: Pick<Context, 'config' | 'tables'>,
  accountId: string,
  now: number,
): RampStatus[] {
  const { days, messages } = config.reputation.ramp;
  if (messages === 0) return [];
  const of = (domainId: string) =>
    positionsOf({ config, tables }, { account_id: accountId, domain_id: domainId }, now).find(
      (position) => position.domainId === domainId,
    );
  const uses = readUse(tables, accountId, dayOf(now));
  const found = [{ domain_id: '', name: null }, ...tables.domains.list(accountId)];
  return found.flatMap(({ domain_id, name: domain }) => {
    const position = of(domain_id);
    if (position === undefined) return [];
    const { transactional, marketing } = useOf(uses, domain_id);
    return [{ domain, day: position.day, days, limit: position.cap, used: transactional + marketing }];
  });
}

/** What one attempt counts toward, at most an account and a domain; it ends once. */
export type RampShare = readonly DayUse[];

/** What a message waits for, as the obstacles of source addresses (`EgressObstacle`). */
interface RampObstacle {
  kind: 'ramp';
  /** Epoch ms. */
  until: number;
  /** A clause. */
  text: string;
  /** Whether it is the ramp of one domain. */
  isOfDomain?: boolean;
}

interface AccountUse {
  uses: Map<string, DayUse>;
  /** Of transactional mail above the limit. */
  tokens: TokenBucket | null;
  perMinute: number;
}

/**
 * The ramps as delivery applies them. The counts of today are in memory, only of accounts and domains that are new; they are read
 * at the first use on a day, so that after a crash only messages that were in flight are missing.
 */
export function createRamp({
  config,
  clock,
  monotonic,
  tables,
}: Pick<Context, 'config' | 'clock' | 'monotonic' | 'tables'>) {
  let day = Number.NaN;
  const accounts = new Map<string, AccountUse>();

  function accountUse(accountId: string): AccountUse {
    const today = dayOf(clock.now());
    if (today !== day) {
      day = today;
      accounts.clear();
    }
    let known = accounts.get(accountId);
    if (known === undefined) {
      known = { uses: readUse(tables, accountId, day), tokens: null, perMinute: 0 };
      accounts.set(accountId, known);
    }
    return known;
  }

  /** The ramps that apply, each with its use and what is kept for transactional mail. */
  function limitsOf(sender: Sender, priority: QueuePriority) {
    return positionsOf({ config, tables }, sender, clock.now()).map((position) => {
      const use = useOf(accountUse(sender.account_id).uses, position.domainId);
      const reserved = priority === TRANSACTIONAL_PRIORITY ? 0 : reservedForTransactional(position.cap, use);
      return { ...position, use, used: use.transactional + use.marketing + use.inFlight, reserved };
    });
  }

  const exceededOf = (sender: Sender, priority: QueuePriority) =>
    limitsOf(sender, priority).find(({ used, reserved, cap }) => used + reserved >= cap);

  function tokensOf(accountId: string): TokenBucket {
    const account = accountUse(accountId);
    const { perMinute } = config.reputation;
    if (account.tokens === null || account.perMinute !== perMinute) {
      account.perMinute = perMinute;
      account.tokens = createTokenBucket(monotonic, { burst: 1, perSecond: (perMinute * SECOND) / MINUTE });
    }
    return account.tokens;
  }

  return {
    /** Why a message may not be sent now; null: it may. */
    obstacle: (sender: Sender | undefined, priority: QueuePriority): RampObstacle | null => {
      const exceeded = sender === undefined ? undefined : exceededOf(sender, priority);
      if (sender === undefined || exceeded === undefined) return null;
      const { domainId, used, cap, reserved } = exceeded;
      const who =
        domainId === '' ? 'the new account' : `the new domain ${tables.domains.byId(domainId)?.name ?? ''}`;
      if (priority === TRANSACTIONAL_PRIORITY) {
        const waitMs = tokensOf(sender.account_id).waitMs(1);
        if (waitMs === 0) return null;
        const text = `is slowed to ${config.reputation.perMinute} messages per minute, because ${who} has sent ${used} of ${cap} messages of today`;
        return { kind: 'ramp', until: clock.now() + Math.ceil(waitMs), text };
      }
      const kept = reserved === 0 ? '' : `, ${reserved} kept for transactional mail`;
      const text = `waits for tomorrow's messages of ${who} (${used} of ${cap} used${kept})`;
      return { kind: 'ramp', until: dayOf(clock.now()) + DAY, text, isOfDomain: domainId !== '' };
    },
    /** Counts a message in flight. */
    begin: (sender: Sender | undefined, priority: QueuePriority): RampShare => {
      if (sender === undefined) return [];
      const limits = limitsOf(sender, priority);
      // Only transactional mail leaves above the limit.
      if (limits.some(({ used, cap }) => used >= cap)) tokensOf(sender.account_id).charge(1);
      return limits.map(({ use }) => {
        use.inFlight++;
        return use;
      });
    },
    /** Ends a message in flight. `counted`: whether a server saw it. Counts of a day that is over are dropped. */
    end: (share: RampShare, priority: QueuePriority, counted: boolean): void => {
      for (const use of share) {
        use.inFlight--;
        if (counted) use[priority === TRANSACTIONAL_PRIORITY ? 'transactional' : 'marketing']++;
      }
    },
    /** How many marketing messages of an account and a domain may still leave today. */
    marketingLeft: (sender: Sender): number =>
      Math.min(
        Number.POSITIVE_INFINITY,
        ...limitsOf(sender, MARKETING_PRIORITY).map(({ cap, used, reserved }) =>
          Math.max(0, cap - used - reserved),
        ),
      ),
  };
}
