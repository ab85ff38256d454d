import { type Clock, HOUR, MINUTE } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';

/**
 * Limits the messages that change to the secondary lane, because whatever blocks the primary lane would soon block it
 * too: to a share of the account's attempts of the last hour, and to a number per hour for all accounts. The counts are in
 * memory: a restart begins with the minimum of each account.
 */
export interface FailoverCap {
  /** Counts an attempt over the primary lane. */
  countAttempt(accountId: string): void;
  /** Counts a message that changes its lane, if the cap admits it. */
  take(accountId: string, limits: FailoverLimits): boolean;
}

export interface FailoverLimits {
  /** Of an account's attempts, 0 to 1. */
  share: number;
  /** Of all accounts. */
  perHour: number;
}

/** Messages of an account per hour that the share never excludes. */
const MIN_OF_ACCOUNT = 20;
const MAX_ACCOUNTS = 10_000;
const SLOT_MS = 5 * MINUTE;
const SLOTS = HOUR / SLOT_MS;

/** `clock`: monotonic. */
export function createFailoverCap(clock: Clock): FailoverCap {
  const accounts = createLru<{ attempts: HourCount; messages: HourCount }>(MAX_ACCOUNTS);
  const all = createHourCount(clock);

  function countsOf(accountId: string) {
    const known = accounts.get(accountId);
    if (known !== undefined) return known;
    const counts = { attempts: createHourCount(clock), messages: createHourCount(clock) };
    accounts.set(accountId, counts);
    return counts;
  }

  return {
    countAttempt: (accountId) => countsOf(accountId).attempts.add(),
    take: (accountId, { share, perHour }) => {
      if (share === 0 || all.sum() >= perHour) return false;
      const { attempts, messages } = countsOf(accountId);
      if (messages.sum() >= Math.max(MIN_OF_ACCOUNT, Math.floor(attempts.sum() * share))) return false;
      messages.add();
      all.add();
      return true;
    },
  };
}

/** Counts what happened in the last hour, in slots of five minutes. */
interface HourCount {
  add(): void;
  sum(): number;
}

function createHourCount(clock: Clock): HourCount {
  const slots = Array.from({ length: SLOTS }, () => 0);
  let current = slotOf(clock);

  function advance(): number {
    const now = slotOf(clock);
    const passed = Math.min(now - current, SLOTS);
    for (let n = 1; n <= passed; n++) slots[(current + n) % SLOTS] = 0;
    current = Math.max(now, current);
    return current % SLOTS;
  }

  return {
    add: () => {
      const slot = advance();
      slots[slot] = (slots[slot] ?? 0) + 1;
    },
    sum: () => {
      advance();
      return slots.reduce((total, count) => total + count, 0);
    },
  };
}

function slotOf(clock: Clock): number {
  return Math.floor(clock.now() / SLOT_MS);
}
