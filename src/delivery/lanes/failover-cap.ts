import { type Clock, HOUR, MINUTE } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';

/**
 * Limits the messages that change to the secondary lane, because whatever blocks the primary lane would soon block it
 * too: to a share of the account's attempts in the last hour, and to a number per hour for all accounts. The counts of
 * messages that changed are stored, so that a daemon that restarts repeatedly does not exceed the cap. The counts of
 * attempts are not: after a restart an account has its minimum until it has made attempts.
 */
export interface FailoverCap {
  /** Counts an attempt over the primary lane. */
  countAttempt(accountId: string): void;
  /** Counts a message that changes its lane, if the cap admits it. */
  take(accountId: string, limits: FailoverLimits): boolean;
  /** What `take` admitted in the last hour, as text for `FailoverCapOptions.stored`. */
  stored(): string;
}

export interface FailoverCapOptions {
  /** Monotonic. */
  clock: Clock;
  /** The system clock, for the stored times. Default: `clock`. */
  wallClock?: Clock;
  /** What `stored` returned before the restart; null: nothing. A text that cannot be read counts as nothing. */
  stored?: string | null;
}

export interface FailoverLimits {
  /** Maximum share of an account's attempts that may change the lane, 0 to 1. */
  share: number;
  /** Maximum number of changes per hour of all accounts together. */
  perHour: number;
}

/** Messages of an account per hour that the share never excludes. */
const MIN_OF_ACCOUNT = 20;
const MAX_ACCOUNTS = 10_000;
const SLOT_MS = 5 * MINUTE;
const SLOTS = HOUR / SLOT_MS;
/** Accounts whose counts are stored; after a restart, the messages of others count only toward the total. */
const MAX_STORED_ACCOUNTS = 1000;
const NO_ACCOUNT = '';

/** Messages that changed their lane: account, time of the period (epoch ms), number. */
type StoredCount = [accountId: string, at: number, messages: number];

/**
 * Begins with the counts in `stored` that are not older than an hour. Counts 10,000 accounts in periods of five
 * minutes; the least recently used account is forgotten first, while the total of all accounts remains.
 */
export function createFailoverCap({ clock, wallClock = clock, stored }: FailoverCapOptions): FailoverCap {
  const accounts = createLru<{ attempts: HourCount; messages: HourCount }>(MAX_ACCOUNTS);
  const all = createHourCount(clock);
  /** Accounts with messages in the last hour; others that had some earlier are removed by the next `stored`. */
  const changed = new Set<string>();

  function countsOf(accountId: string) {
    const known = accounts.get(accountId);
    if (known !== undefined) return known;
    const counts = { attempts: createHourCount(clock), messages: createHourCount(clock) };
    accounts.set(accountId, counts);
    return counts;
  }

  for (const [accountId, at, messages] of readCounts(stored ?? null)) {
    // A time in the future is that of a clock that was set back: it counts as now.
    const ageMs = Math.max(0, wallClock.now() - at);
    all.add(messages, ageMs);
    if (accountId === NO_ACCOUNT) continue;
    countsOf(accountId).messages.add(messages, ageMs);
    changed.add(accountId);
  }

  function toStored(): StoredCount[] {
    const now = wallClock.now();
    // The end of the period: a count that is stored after each of many restarts must not become older than it is.
    const timeOf = (slot: number) => now - Math.max(0, clock.now() - ((slot + 1) * SLOT_MS - 1));
    const rows: StoredCount[] = [];
    const rest = new Map(all.list().map(({ slot, count }) => [slot, count]));
    let accountsStored = 0;
    for (const accountId of changed) {
      const list = accounts.peek(accountId)?.messages.list() ?? [];
      if (list.length === 0) changed.delete(accountId);
      if (list.length === 0 || accountsStored >= MAX_STORED_ACCOUNTS) continue;
      accountsStored++;
      for (const { slot, count } of list) {
        rows.push([accountId, timeOf(slot), count]);
        rest.set(slot, (rest.get(slot) ?? 0) - count);
      }
    }
    for (const [slot, count] of rest) if (count > 0) rows.push([NO_ACCOUNT, timeOf(slot), count]);
    return rows;
  }

  return {
    countAttempt: (accountId) => countsOf(accountId).attempts.add(),
    take: (accountId, { share, perHour }) => {
      if (share === 0 || all.sum() >= perHour) return false;
      const { attempts, messages } = countsOf(accountId);
      if (messages.sum() >= Math.max(MIN_OF_ACCOUNT, Math.floor(attempts.sum() * share))) return false;
      messages.add();
      all.add();
      if (changed.size < MAX_ACCOUNTS) changed.add(accountId);
      return true;
    },
    stored: () => JSON.stringify(toStored()),
  };
}

/** Counts what happened in the last hour, in slots (periods) of five minutes. */
interface HourCount {
  /** Default: one, now. What is older than an hour is ignored. */
  add(count?: number, ageMs?: number): void;
  sum(): number;
  /** The numbers of the periods that have any. `slot`: see `slotAt`. */
  list(): { slot: number; count: number }[];
}

function createHourCount(clock: Clock): HourCount {
  const slots = Array.from({ length: SLOTS }, () => 0);
  let current = slotAt(clock.now());

  /** Clears the slots of periods that have begun since the last call. */
  function advance(): void {
    const now = slotAt(clock.now());
    const passed = Math.min(now - current, SLOTS);
    for (let n = 1; n <= passed; n++) slots[indexOf(current + n)] = 0;
    current = Math.max(now, current);
  }

  return {
    add: (count = 1, ageMs = 0) => {
      advance();
      const slot = slotAt(clock.now() - ageMs);
      if (current - slot >= SLOTS) return;
      slots[indexOf(slot)] = (slots[indexOf(slot)] ?? 0) + count;
    },
    sum: () => {
      advance();
      return slots.reduce((total, count) => total + count, 0);
    },
    list: () => {
      advance();
      return Array.from({ length: SLOTS }, (_, back) => {
        const slot = current - back;
        return { slot, count: slots[indexOf(slot)] ?? 0 };
      }).filter(({ count }) => count > 0);
    },
  };
}

function slotAt(ms: number): number {
  return Math.floor(ms / SLOT_MS);
}

/** A slot before the origin of the clock is negative. */
function indexOf(slot: number): number {
  return ((slot % SLOTS) + SLOTS) % SLOTS;
}

/** Reads what `stored` wrote; entries in another form are ignored. */
function readCounts(text: string | null): StoredCount[] {
  if (text === null) return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A damaged text loses only the counts of one hour.
    return [];
  }
  return Array.isArray(value) ? value.filter(isStoredCount) : [];
}

function isStoredCount(value: unknown): value is StoredCount {
  if (!Array.isArray(value)) return false;
  const [accountId, at, messages]: unknown[] = value;
  return typeof accountId === 'string' && Number.isFinite(at) && Number.isSafeInteger(messages);
}
