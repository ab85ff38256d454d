import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import { createTally } from '../core/concurrency/tally.ts';

export interface MailUploadOptions {
  holder: string;
  /** The network around the holder; null: the holder has none. */
  network: string | null;
  /** May use the reserve. */
  isProven: boolean;
  /** Called when the upload is ended to free its memory: releases its bytes. */
  evict(reason: EvictionReason): void;
}

export type EvictionReason = 'memory-needed' | 'too-slow';

export interface BudgetOptions {
  bytes: number;
  /** Parts of `bytes`, 0 to 1. */
  holderShare: number;
  networkShare: number;
  reserve: number;
}

/** Free amount of each upload. Not part of the budget: 64 MB for 1,000 connections. */
export const FREE_BYTES = 65_536;
/** Age below which an upload is not ended to free memory. */
const MIN_AGE_MS = 2 * SECOND;
/** Half-life of received bytes in the rate of an upload. */
const HALF_LIFE_MS = 5 * SECOND;
/** Minimum rate: this many bytes within this time. RFC 5321 §4.5.3.2.5 grants 3 minutes per chunk. */
export const MIN_WINDOW_BYTES = 4096;
export const MIN_RATE_WINDOW_MS = MINUTE;

interface Active extends MailUploadOptions {
  charged: number;
  reserved: number;
  since: number;
  isFinished: boolean;
  /** Bytes that arrived, weighted by age, as of `rateAt`. */
  rate: number;
  rateAt: number;
  windowAt: number;
  windowBytes: number;
}

export type ReceiveBudget = ReturnType<typeof createReceiveBudget>;
export type MailUpload = ReturnType<ReceiveBudget['open']>;

/**
 * Memory for mail that is being received, shared by all connections of a listener. Each upload has a small free amount,
 * so that an ordinary bounce always fits. Beyond it:
 *
 * - a holder (a client's address, or an account) and a network each have a share;
 * - a part is reserved for mail to recipients whose signed token proves that it concerns one of our messages;
 * - when the memory is used up, the slowest upload of the largest holder is ended, unless the requesting holder is
 *   larger;
 * - an upload below the minimum rate is always ended.
 *
 * `options` are fixed. Has no timer: the listener calls `sweep`. `evict` is called after the memory of the upload was
 * released, also inside the `reserve` of another upload.
 */
export function createReceiveBudget(clock: Clock, options: BudgetOptions) {
  const limits = {
    holder: options.bytes * options.holderShare,
    network: options.bytes * options.networkShare,
    unproven: options.bytes * (1 - options.reserve),
  };
  const active = new Set<Active>();
  const holders = createTally();
  const networks = createTally();
  let unproven = 0;

  function charge(upload: Active, bytes: number): void {
    upload.charged += bytes;
    if (!upload.isProven) unproven += bytes;
    holders.add(upload.holder, bytes);
    if (upload.network !== null) networks.add(upload.network, bytes);
  }

  /** Ends uploads until `bytes` more fit; false when that is impossible. */
  function freeMemory(upload: Active, bytes: number): boolean {
    const { holder, network, isProven } = upload;
    const size = () => holders.of(holder) + bytes;
    const sameHolder = (other: Active) => other.holder === holder;
    const sameNetwork = (other: Active) => other.network === network;
    const larger = (other: Active) => sameHolder(other) || holders.of(other.holder) >= size();
    return (
      endUntil(() => size() <= limits.holder, upload, sameHolder) &&
      endUntil(
        () => network === null || networks.of(network) + bytes <= limits.network,
        upload,
        (other) => sameNetwork(other) && larger(other),
      ) &&
      endUntil(
        () => isProven || unproven + bytes <= limits.unproven,
        upload,
        (other) => !other.isProven && larger(other),
      ) &&
      endUntil(() => holders.total + bytes <= options.bytes, upload, larger)
    );
  }

  /** Ends matching uploads, the slowest first, until `fits`; false when none is left to end. */
  function endUntil(fits: () => boolean, upload: Active, matches: (other: Active) => boolean): boolean {
    while (!fits()) {
      const victim = slowest((other) => other !== upload && matches(other));
      if (victim === null) return false;
      end(victim, 'memory-needed');
    }
    return true;
  }

  /** The slowest upload of the largest holder that matches; null when none may be ended. */
  function slowest(matches: (other: Active) => boolean): Active | null {
    const now = clock.now();
    let found: Active | null = null;
    for (const other of active) {
      if (other.isFinished || other.charged === 0 || now - other.since < MIN_AGE_MS || !matches(other))
        continue;
      if (found === null || isWorse(other, found, now)) found = other;
    }
    return found;
  }

  function isWorse(one: Active, other: Active, now: number): boolean {
    const sizes = [holders.of(one.holder), holders.of(other.holder)] as const;
    return sizes[0] === sizes[1] ? rateAt(one, now) < rateAt(other, now) : sizes[0] > sizes[1];
  }

  function end(upload: Active, reason: EvictionReason): void {
    close(upload);
    upload.evict(reason);
  }

  function close(upload: Active): void {
    if (!active.delete(upload)) return;
    charge(upload, -upload.charged);
  }

  return {
    open: (uploadOptions: MailUploadOptions) => {
      const now = clock.now();
      const upload: Active = {
        ...uploadOptions,
        charged: 0,
        reserved: 0,
        since: now,
        isFinished: false,
        rate: 0,
        rateAt: now,
        windowAt: now,
        windowBytes: 0,
      };
      active.add(upload);
      return {
        /** Reserves memory; false, and nothing changed, when there is none. */
        reserve: (bytes: number): boolean => {
          if (!active.has(upload)) return false;
          const more = Math.max(0, upload.reserved + bytes - FREE_BYTES) - upload.charged;
          if (more > 0 && !freeMemory(upload, more)) return false;
          upload.reserved += bytes;
          if (more > 0) charge(upload, more);
          return true;
        },
        /** Counts bytes that arrived. */
        progress: (bytes: number): void => {
          const at = clock.now();
          upload.rate = rateAt(upload, at) + bytes;
          upload.rateAt = at;
          upload.windowBytes += bytes;
        },
        /** Everything has arrived: the upload is no longer ended to free memory. */
        finish: (): void => {
          upload.isFinished = true;
        },
        /** Releases all memory; further calls have no effect. */
        release: (): void => close(upload),
      };
    },
    /** Ends uploads below the minimum rate; called every few seconds. */
    sweep: (): void => {
      const now = clock.now();
      for (const upload of active) {
        if (upload.isFinished || now - upload.windowAt < MIN_RATE_WINDOW_MS) continue;
        if (upload.windowBytes < MIN_WINDOW_BYTES) end(upload, 'too-slow');
        upload.windowAt = now;
        upload.windowBytes = 0;
      }
    },
    /** Bytes in use, without the free amounts. */
    used: (): number => holders.total,
  };
}

function rateAt(upload: Active, now: number): number {
  return upload.rate * 2 ** (-Math.max(0, now - upload.rateAt) / HALF_LIFE_MS);
}
