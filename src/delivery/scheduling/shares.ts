import {
  type MailToLease,
  type QueuePriority,
  type ReadyMessage,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import { type Site, UNCOUNTED_BYTES } from './site.ts';

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

/** The multiple of the free budget that an account may use, by priority: alone it gets 4/5 and 2/3. */
const ACCOUNT_FACTOR = [4, 2] as const;
/** The multiple of the free budget that a site may use, by priority: alone it gets 2/3 and 1/2. */
const SITE_FACTOR = [2, 1] as const;
/** The share of the budget that all marketing mail together may use. */
const MARKETING_SHARE = 0.9;

/**
 * The share of the sessions that sites may use which have not answered: each holds its session until a timeout. Without a
 * limit, a few hundred dead destinations would leave no session for the others.
 */
const UNANSWERED_SHARE = 0.5;

/** The shares that a message holds while it has a slot. */
export interface HeldShares {
  session: BudgetShare;
  /** Of the sessions of sites that have not answered; of size 0 if the site had answered before. */
  unanswered: BudgetShare;
  bytes: BudgetShare;
}

export type Shares = ReturnType<typeof createShares>;

/**
 * The budgets for all deliveries: sessions, sessions of sites that have not answered, and content bytes. Of a content,
 * only the bytes beyond `UNCOUNTED_BYTES` count toward `limits.bytes`.
 */
export function createShares(limits: { sessions: number; bytes: number }) {
  const sessions = createBudget(limits.sessions);
  const unanswered = createBudget(Math.max(1, Math.floor(limits.sessions * UNANSWERED_SHARE)));
  const bytes = createBudget(limits.bytes);

  function sharesOf(site: Site, message: MailToLease): HeldShares {
    const { account_id: account, priority } = message;
    const { key } = site;
    const counted = Math.max(0, message.content_bytes - UNCOUNTED_BYTES);
    return {
      session: { account, site: key, priority, size: 1 },
      unanswered: { account, site: key, priority, size: site.hasAnswered() ? 0 : 1 },
      bytes: { account, site: key, priority, size: counted },
    };
  }

  return {
    /** Whether the budgets admit the message now. */
    admits: (site: Site, message: MailToLease): boolean => {
      const { account_id: account, priority } = message;
      // Most refusals are due to the budget for sessions: it is checked first.
      if (!sessions.admits({ account, site: site.key, priority, size: 1 })) return false;
      const shares = sharesOf(site, message);
      return unanswered.admits(shares.unanswered) && bytes.admits(shares.bytes);
    },
    /** The budget that does not admit the message now; null: all of them do. */
    exhausted: (site: Site, message: MailToLease): 'sessions' | 'unanswered' | 'bytes' | null => {
      const shares = sharesOf(site, message);
      if (!unanswered.admits(shares.unanswered)) return 'unanswered';
      if (!sessions.admits(shares.session)) return 'sessions';
      return bytes.admits(shares.bytes) ? null : 'bytes';
    },
    /** Takes the shares of a message that is admitted; pass them to `release` once. */
    take: (site: Site, message: ReadyMessage): HeldShares => {
      const shares = sharesOf(site, message);
      sessions.take(shares.session);
      unanswered.take(shares.unanswered);
      bytes.take(shares.bytes);
      return shares;
    },
    release: (shares: HeldShares): FreedShares => {
      sessions.release(shares.session);
      unanswered.release(shares.unanswered);
      bytes.release(shares.bytes);
      return { unanswered: shares.unanswered.size > 0 };
    },
    /** Messages that hold shares. */
    sessions: (): number => sessions.used(),
    /** Bytes of their contents that count toward the limit. */
    bytes: (): number => bytes.used(),
  };
}

/**
 * A limit that accounts and sites share. There are no fixed parts: an account or a site may use a multiple of what is free
 * (dynamic thresholds). One alone gets most of the budget, several get equal parts, and there is always some left for the
 * next one. Accounts and sites without a share take no memory.
 *
 * `total`: the limit in sessions or bytes. `take` does not check it: call `admits` first, and pass the same share to
 * `release`.
 */
export function createBudget(total: number) {
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
    /**
     * Whether the share fits now. An account or a site without a share gets one if the budget has space for it; a share
     * of size 0 always fits.
     */
    admits: ({ account, site, priority, size }: BudgetShare): boolean => {
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
    take: (share: BudgetShare): void => change(share, share.size),
    release: (share: BudgetShare): void => change(share, -share.size),
    used: (): number => used,
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
