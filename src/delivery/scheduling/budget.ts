import { type QueuePriority, TRANSACTIONAL_PRIORITY } from '../../store/messages/queue.ts';

/**
 * A limit on all deliveries (sessions, content bytes in flight) that accounts and sites share. There are no fixed
 * parts: an account or a site may use a multiple of what is free (dynamic thresholds). One alone gets most of the
 * budget, several get equal parts, and there is always some left for the next one.
 */
export interface Budget {
  /**
   * Whether the share fits now. An account or a site without a share gets one if the budget has space for it; a share
   * of size 0 always fits.
   */
  admits(share: BudgetShare): boolean;
  take(share: BudgetShare): void;
  release(share: BudgetShare): void;
  used(): number;
}

export interface BudgetShare {
  account: string;
  site: string;
  priority: QueuePriority;
  size: number;
}

/** What sessions that ended have released, in addition to a slot. */
export interface FreedShares {
  /** A share of the sessions of sites that have not answered. */
  unanswered: boolean;
}

/**
 * The part of each content that does not count toward the limit on bytes, so that large messages to slow hosts do not
 * block ordinary mail. The number of sessions bounds the sum of these parts.
 */
export const UNCOUNTED_BYTES = 64 * 1024;
/** The multiple of the free budget that an account may use, by priority: alone it gets 4/5 and 2/3. */
const ACCOUNT_FACTOR = [4, 2] as const;
/** The multiple of the free budget that a site may use, by priority: alone it gets 2/3 and 1/2. */
const SITE_FACTOR = [2, 1] as const;
/** The share of the budget that all marketing mail together may use. */
const MARKETING_SHARE = 0.9;

/**
 * `total`: the limit in sessions or bytes. `take` does not check it: call `admits` first, and pass the same share to
 * `release`. Accounts and sites without a share take no memory.
 */
export function createBudget(total: number): Budget {
  const accounts = new Map<string, number>();
  const sites = new Map<string, number>();
  let used = 0;

  const add = (to: Map<string, number>, key: string, size: number) => {
    const sum = (to.get(key) ?? 0) + size;
    if (sum > 0) to.set(key, sum);
    else to.delete(key);
  };
  const change = ({ account, site }: BudgetShare, size: number) => {
    used += size;
    add(accounts, account, size);
    add(sites, site, size);
  };

  return {
    admits: ({ account, site, priority, size }) => {
      if (size === 0) return true;
      // A share larger than the budget is admitted alone.
      if (used === 0) return true;
      const free = (priority === TRANSACTIONAL_PRIORITY ? total : total * MARKETING_SHARE) - used;
      if (size > free) return false;
      const ofAccount = accounts.get(account) ?? 0;
      if (ofAccount > 0 && ofAccount + size > free * ACCOUNT_FACTOR[priority]) return false;
      const ofSite = sites.get(site) ?? 0;
      return ofSite === 0 || ofSite + size <= free * SITE_FACTOR[priority];
    },
    take: (share) => change(share, share.size),
    release: (share) => change(share, -share.size),
    used: () => used,
  };
}

/** Concurrent sessions if the configuration sets no number and the process has enough file descriptors. */
const DEFAULT_CONNECTIONS = 500;
/** File descriptors that listeners and the database use. */
const OTHER_FILES = 64;
/**
 * File descriptors per session: as many connections may be idle as are in use, and the listeners need as many again.
 */
const FILES_PER_CONNECTION = 4;

/** The default of `delivery.connections` for a limit of open files; null: no limit. */
export function defaultConnections(files: number | null): number {
  if (files === null) return DEFAULT_CONNECTIONS;
  const affordable = Math.floor((files - OTHER_FILES) / FILES_PER_CONNECTION);
  return Math.min(DEFAULT_CONNECTIONS, Math.max(1, affordable));
}
