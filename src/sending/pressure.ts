import { statfs } from 'node:fs/promises';
import type { Config } from '../config/schema.ts';
import { SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Context } from '../store/context.ts';
import { NO_ACCOUNT } from '../store/readers/reads.ts';
import { ensureReserve, RESERVE_BYTES } from '../store/reserve.ts';

const CHECK_INTERVAL_MS = 5 * SECOND;
const RETRY_AFTER_SECONDS = 30;
/** The share of the queue's limit that campaigns can fill: a paused campaign must not block other mail. */
const CAMPAIGN_SHARE = 0.9;
/** Counting up to this number is fast. Above it the count of the last check is exact enough for the reserved share. */
const MAX_EXACT_COUNT = 100_000;
/** The reserve is this part of the queue's limit, a ninth; an account may have up to nine times its unused part. */
const RESERVE_FACTOR = 9;
/** Accounts that are refused individually; with more, all are refused. */
const MAX_LARGE_ACCOUNTS = 10_000;
/** How long an account that is below its limit of stored bytes may send without another check. */
const STORED_CHECK_MS = SECOND;
const MAX_CHECKED_ACCOUNTS = 10_000;

/** Why mail is refused: `accounts` are those whose mail is, null: all. */
interface Shortage {
  kind: 'disk' | 'queue';
  reason: string;
  accounts: ReadonlySet<string> | null;
}

/** `limits` is read at each check, because a reload changes it. */
export interface PressureContext extends Pick<Context, 'tables' | 'reader' | 'log'> {
  config: {
    data: Pick<Config['data'], 'dir'>;
    limits: Pick<Config['limits'], 'queuedMessages' | 'freeDiskBytes'>;
  };
}

/**
 * Whether more mail can be accepted: the limit of the queue and the free disk space, checked every few seconds. Under
 * pressure sends are refused with 503; deliveries continue. Below the limit of free space everything that accounts
 * store is refused, too.
 *
 * Above the limit of the queue, a ninth of it is reserved for accounts with few messages, so that one account cannot
 * block the others: an account may have 9 times as many messages as the unused part of the reserve (dynamic thresholds,
 * as in the shared buffers of switches). An account that is alone can fill the queue up to its limit. Accepts mail
 * until the first check, which `start` runs; `start` rejects with its error. Then a loop checks every 5 s; the error of
 * a later check is logged, and the last result applies.
 */
export function createPressure(
  { config, tables, reader, log }: PressureContext,
  {
    storedRefusal = () => null,
    unrecorded = () => null,
  }: {
    /** Refuses an account that stores as many bytes as it may; null: it stores fewer. */
    storedRefusal?: (accountId: string) => Refusal | null;
    /** Null while outcomes of deliveries can be recorded, else the reason: accepted mail could not be sent. */
    unrecorded?: () => string | null;
  },
) {
  const { data, limits } = config;
  let shortage: Shortage | null = null;
  let queued = 0;

  async function check(): Promise<void> {
    const free = await freeBytes();
    queued = tables.queue.count();
    const current: Shortage | null =
      free < limits.freeDiskBytes
        ? { kind: 'disk', reason: 'the disk is nearly full', accounts: null }
        : queued >= limits.queuedMessages
          ? await queueShortage(queued, limits.queuedMessages)
          : null;
    if (current?.kind !== shortage?.kind)
      log.warn({ reason: current?.reason }, current === null ? 'accepting mail again' : 'refusing new mail');
    shortage = current;
  }

  /** Reserves space for the operator's commands while there is enough. */
  async function checkAndReserve(): Promise<void> {
    await check();
    if (limits.freeDiskBytes > 0 && (await freeBytes()) >= limits.freeDiskBytes + 2 * RESERVE_BYTES)
      await ensureReserve(data.dir);
  }

  async function freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(data.dir);
    return bavail * bsize;
  }

  async function queueShortage(messages: number, limit: number): Promise<Shortage> {
    const reason = `the queue has ${messages} messages, and its limit is ${limit}`;
    const unusedReserve = Math.floor(limit / RESERVE_FACTOR) - (messages - limit);
    if (unusedReserve <= 0) return { kind: 'queue', reason, accounts: null };
    const threshold = unusedReserve * RESERVE_FACTOR;
    try {
      const large = await reader.table(NO_ACCOUNT, 'queue', 'largestAccounts', threshold, MAX_LARGE_ACCOUNTS);
      return { kind: 'queue', reason, accounts: large.length < MAX_LARGE_ACCOUNTS ? new Set(large) : null };
    } catch (error) {
      log.error({ err: error }, 'queued messages of accounts could not be counted; refusing new mail of all');
      return { kind: 'queue', reason, accounts: null };
    }
  }

  /** Accounts whose stored bytes were below their limit, with the time of the check, monotonic ms. */
  const below = new Map<string, number>();

  /** Checked once a second for each account: a send must not cost a read. */
  function checkedStoredRefusal(accountId: string): Refusal | null {
    const now = performance.now();
    if (now - (below.get(accountId) ?? Number.NEGATIVE_INFINITY) < STORED_CHECK_MS) return null;
    const refusal = storedRefusal(accountId);
    if (below.size >= MAX_CHECKED_ACCOUNTS) below.clear();
    if (refusal === null) below.set(accountId, now);
    else below.delete(accountId);
    return refusal;
  }

  const loop = createLoop({
    name: 'pressure',
    run: checkAndReserve,
    firstMs: CHECK_INTERVAL_MS,
    intervalMs: CHECK_INTERVAL_MS,
    log,
  });

  return {
    /** Null: mail of the account is accepted. Without an account: mail of all accounts is accepted. */
    refusal: (accountId?: string): Refusal | null => {
      const isShort =
        accountId === undefined || shortage?.accounts === null || shortage?.accounts.has(accountId);
      const current =
        (isShort ? shortage?.reason : null) ??
        (unrecorded() ? 'outcomes of deliveries cannot be recorded' : null);
      if (current !== null)
        return refuse('UNAVAILABLE', `Nothing was accepted: ${current}`, { retryAfter: RETRY_AFTER_SECONDS });
      return accountId === undefined ? null : checkedStoredRefusal(accountId);
    },
    /** Why nothing more is stored for an account, such as contacts; null: it is. */
    storageRefusal: (accountId: string): Refusal | null =>
      shortage?.kind === 'disk'
        ? refuse('UNAVAILABLE', `Nothing more is stored: ${shortage.reason}`, {
            retryAfter: RETRY_AFTER_SECONDS,
          })
        : storedRefusal(accountId),
    /** Messages that campaigns can still add to the queue; a share of its limit is reserved for other mail. */
    capacity: (): number => {
      const count = limits.queuedMessages <= MAX_EXACT_COUNT ? tables.queue.count() : queued;
      // Rounded up, so that campaigns can send even with a limit of one.
      return Math.max(0, Math.ceil(limits.queuedMessages * CAMPAIGN_SHARE) - count);
    },
    isDiskLow: (): boolean => shortage?.kind === 'disk',
    /** Messages in the queue at the last check. */
    queued: (): number => queued,
    /** Resolves after the first check. */
    start: async (): Promise<void> => {
      await check();
      loop.start();
    },
    stop: loop.stop,
  };
}

export type Pressure = ReturnType<typeof createPressure>;
