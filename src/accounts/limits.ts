import type { Config } from '../config/schema.ts';
import { type Clock, DAY, HOUR } from '../core/clock.ts';
import { recordOf } from '../core/record-of.ts';
import { accountLimitReached, type Refusal, refuse } from '../core/refusal.ts';
import {
  type AccountLimitsRow,
  COUNTED_RESOURCES,
  type CountedResource,
  MESSAGE_SLOT_MS,
} from '../store/account-limits.ts';
import type { Writer } from '../store/database/writer.ts';
import type { MayAdd, Tables } from '../store/tables.ts';

/*
 * Limits per account. The values are read from the database at each use, so that a change by another process
 * (the command line) applies to the next request. Counts are checked in the unit of work that inserts the row,
 * which makes them exact under concurrency.
 */

/** The limits of an account, and their columns. */
const COLUMNS = {
  domains: 'domains',
  webhooks: 'webhooks',
  templates: 'templates',
  contacts: 'contacts',
  messagesPerHour: 'messages_per_hour',
  messagesPerDay: 'messages_per_day',
  concurrentRequests: 'concurrent_requests',
  storedBytes: 'stored_bytes',
  campaigns: 'campaigns',
  subscriptionGroups: 'subscription_groups',
  suppressions: 'suppressions',
} as const satisfies Record<string, keyof AccountLimitsRow>;

/** Name of a limit; a null value is unlimited. */
export type LimitName = keyof typeof COLUMNS;
/** The limits of an account in force; null: unlimited. */
export type AccountLimitValues = Record<LimitName, number | null>;

// Sound: the compiler checks that COLUMNS has exactly these keys.
export const LIMIT_NAMES = Object.keys(COLUMNS) as LimitName[];

const MESSAGE_WINDOWS = [
  { name: 'messagesPerHour', label: 'messages-per-hour', unit: 'messages per hour', ms: HOUR },
  { name: 'messagesPerDay', label: 'messages-per-day', unit: 'messages per day', ms: DAY },
] as const;

/** How many more messages an account may send now, and when the number increases if it is 0. */
export interface MessageAllowance {
  left: number;
  /** Epoch ms. */
  moreAt: number;
}

/** A limit with its use, for the operator. */
export interface LimitReading {
  limit: LimitName;
  /** Null: unlimited. */
  value: number | null;
  /** Whether the value is the configured default. */
  isDefault: boolean;
  /** Null for concurrent requests, which only the daemon knows. */
  used: number | null;
}

/** A number, null for unlimited, or 'default'. */
export type LimitChanges = { [Name in LimitName]?: number | null | 'default' | undefined };

export type AccountLimitDefaults = Partial<Pick<Config['limits']['account'], LimitName>>;

/** Stored for an unlimited value; NULL stands for the configured default. */
const UNLIMITED = -1;

/**
 * `defaults`: the values of limits that an account does not have; a limit that is absent in both is unlimited. Only
 * `of` reads through `tables` of `deps`; everything else reads through the caller's, so that its unit of work counts.
 */
export function createAccountLimits(deps: { tables: Tables; defaults: AccountLimitDefaults }) {
  const { tables, defaults } = deps;
  const mayAdd =
    (resource: CountedResource): MayAdd =>
    (tx, accountId) => {
      const limit = valueOf(tx.accountLimits.get(accountId), defaults, resource);
      if (limit === null || tx.accountLimits.count(resource, accountId) < limit) return null;
      return accountLimitReached(resource, limit);
    };
  return {
    /** The effective limits. */
    of: (accountId: string): AccountLimitValues => {
      const row = tables.accountLimits.get(accountId);
      return recordOf(LIMIT_NAMES, (name) => valueOf(row, defaults, name));
    },
    /** A check for each counted resource, called in the unit of work that inserts one. */
    mayAdd: recordOf(COUNTED_RESOURCES, mayAdd),
    /** Refuses an account (`LIMIT_REACHED`) that stores as many bytes as it may; null: it stores fewer. */
    storedRefusal: (accountId: string): Refusal | null => {
      const limit = valueOf(tables.accountLimits.get(accountId), defaults, 'storedBytes');
      if (limit === null || tables.accountLimits.storedBytes(accountId) < limit) return null;
      return accountLimitReached('storedBytes', limit);
    },
    /**
     * Counts `messages` of an account against its hour and its day, in the unit of work that stores them: all or none.
     * A unit that is rolled back has counted nothing.
     */
    takeMessages: (tx: Tables, accountId: string, messages: number, now: number): Refusal | null => {
      const row = tx.accountLimits.get(accountId);
      for (const window of MESSAGE_WINDOWS) {
        const limit = valueOf(row, defaults, window.name);
        if (limit === null) continue;
        const { left, enoughAt } = windowState(tx, accountId, limit, window.ms, messages, now);
        if (left < messages) return messagesRefused(window, limit, messages, enoughAt - now);
      }
      tx.messageCounts.add(accountId, messages, now);
      return null;
    },
    allowance: (tx: Tables, accountId: string, now: number): MessageAllowance => {
      const row = tx.accountLimits.get(accountId);
      const allowance = { left: Number.POSITIVE_INFINITY, moreAt: now };
      for (const { name, ms } of MESSAGE_WINDOWS) {
        const limit = valueOf(row, defaults, name);
        if (limit === null) continue;
        const { left, enoughAt } = windowState(tx, accountId, limit, ms, 1, now);
        allowance.left = Math.min(allowance.left, left);
        if (left === 0) allowance.moreAt = Math.max(allowance.moreAt, enoughAt);
      }
      return allowance;
    },
  };
}

export type AccountLimits = ReturnType<typeof createAccountLimits>;

/** Reads the limits of an account and their use. */
export function readLimits(
  tables: Tables,
  defaults: AccountLimitDefaults,
  accountId: string,
  now: number,
): LimitReading[] {
  const row = tables.accountLimits.get(accountId);
  const sent = (ms: number) => total(tables.messageCounts.within(accountId, ms, now));
  const used: Record<LimitName, number | null> = {
    ...recordOf(COUNTED_RESOURCES, (resource) => tables.accountLimits.count(resource, accountId)),
    storedBytes: tables.accountLimits.storedBytes(accountId),
    messagesPerHour: sent(HOUR),
    messagesPerDay: sent(DAY),
    concurrentRequests: null,
  };
  return LIMIT_NAMES.map((limit) => ({
    limit,
    value: valueOf(row, defaults, limit),
    isDefault: (row?.[COLUMNS[limit]] ?? null) === null,
    used: used[limit],
  }));
}

/** Changes limits of an account; absent ones are unchanged. Refuses an unknown account (`ACCOUNT_NOT_FOUND`). */
export function changeLimits(
  deps: { writer: Writer; clock: Clock },
  accountId: string,
  changes: LimitChanges,
): Promise<Refusal | null> {
  return deps.writer.run((tables): Refusal | null => {
    const account = tables.accounts.get(accountId);
    if (account === null) return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
    putLimits(tables, accountId, changes);
    return null;
  });
}

/** Changes limits of an account that exists, in the unit of work of the caller. */
export function putLimits(tables: Tables, accountId: string, changes: LimitChanges): void {
  const row = { ...(tables.accountLimits.get(accountId) ?? { ...NO_LIMITS, account_id: accountId }) };
  for (const name of LIMIT_NAMES) {
    const value = changes[name];
    if (value === undefined) continue;
    row[COLUMNS[name]] = value === 'default' ? null : (value ?? UNLIMITED);
  }
  tables.accountLimits.put(row);
}

const NO_LIMITS = { ...recordOf(Object.values(COLUMNS), () => null), ramp_skipped: null };

function valueOf(
  row: AccountLimitsRow | null,
  defaults: AccountLimitDefaults,
  name: LimitName,
): number | null {
  const own = row?.[COLUMNS[name]] ?? null;
  if (own === null) return defaults[name] ?? null;
  return own === UNLIMITED ? null : own;
}

/**
 * How many messages a sliding window still allows, and when `requested` messages fit. A slot counts until its last
 * instant has left the window, so that no window has more messages than the limit.
 */
function windowState(
  tables: Tables,
  accountId: string,
  limit: number,
  windowMs: number,
  requested: number,
  now: number,
): { left: number; enoughAt: number } {
  const slots = tables.messageCounts.within(accountId, windowMs, now);
  let used = total(slots);
  const left = Math.max(0, limit - used);
  let enoughAt = now;
  for (const { slot, messages } of slots) {
    if (limit - used >= requested) break;
    used -= messages;
    enoughAt = slot + MESSAGE_SLOT_MS + windowMs;
  }
  // So many messages never fit; this wait only keeps the caller from repeating the request immediately.
  if (limit < requested) enoughAt = now + windowMs;
  return { left, enoughAt };
}

function total(slots: readonly { messages: number }[]): number {
  return slots.reduce((sum, { messages }) => sum + messages, 0);
}

function messagesRefused(
  { name, label, unit, ms }: (typeof MESSAGE_WINDOWS)[number],
  limit: number,
  messages: number,
  waitMs: number,
): Refusal {
  const recipients = messages === 1 ? '1 recipient' : `${messages} recipients`;
  const never = limit > 0 && messages > limit;
  const when = never ? `in one request: send to at most ${limit} at a time` : 'now';
  const message = `This account's limit of ${limit} ${unit} does not allow ${recipients} ${when}`;
  return refuse('RATE_LIMITED', message, {
    details: [{ field: 'to', name, message: `limit ${name} (${limit}) is reached` }],
    retryAfter: Math.max(1, Math.ceil(waitMs / 1000)),
    limit: { name: label, calls: limit, seconds: ms / 1000 },
  });
}
