/**
 * A limit of the whole engine (sessions, octets of content in flight) that accounts and sites share. Nobody gets
 * a fixed part: an account or a site may use a multiple of what is free at the moment (dynamic thresholds), so
 * one alone gets most of it, several get equal parts, and something is always left for the next one.
 */
export interface Budget {
  /**
   * Whether the claim fits now. Whoever has nothing gets one claim wherever there is room for it at all; a claim of
   * size 0 always fits.
   */
  admits(claim: Claim): boolean;
  take(claim: Claim): void;
  release(claim: Claim): void;
  used(): number;
}

export interface Claim {
  account: string;
  site: string;
  lane: 0 | 1;
  size: number;
}

/** How many times what is free an account may use: transactional, marketing. Alone that is 4/5 and 2/3. */
const ACCOUNT_FACTOR = [4, 2] as const;
/** The same for a site: alone 2/3 and 1/2. */
const SITE_FACTOR = [2, 1] as const;
/** Of the whole, what all marketing together may use. */
const MARKETING_SHARE = 0.9;

export function createBudget(total: number): Budget {
  const accounts = new Map<string, number>();
  const sites = new Map<string, number>();
  let used = 0;

  const add = (to: Map<string, number>, key: string, size: number) => {
    const sum = (to.get(key) ?? 0) + size;
    if (sum > 0) to.set(key, sum);
    else to.delete(key);
  };
  const change = ({ account, site }: Claim, size: number) => {
    used += size;
    add(accounts, account, size);
    add(sites, site, size);
  };

  return {
    admits: ({ account, site, lane, size }) => {
      if (size === 0) return true;
      // A claim larger than the whole goes alone, not never.
      if (used === 0) return true;
      const free = (lane === 0 ? total : total * MARKETING_SHARE) - used;
      if (size > free) return false;
      const ofAccount = accounts.get(account) ?? 0;
      if (ofAccount > 0 && ofAccount + size > free * ACCOUNT_FACTOR[lane]) return false;
      const ofSite = sites.get(site) ?? 0;
      return ofSite === 0 || ofSite + size <= free * SITE_FACTOR[lane];
    },
    take: (claim) => change(claim, claim.size),
    release: (claim) => change(claim, -claim.size),
    used: () => used,
  };
}
