import { Gauge, type Registry } from 'prom-client';
import type { SiteLimits } from './site-limits.ts';

/** A site with its limits in force. */
export type LimitedSite = SiteLimits & { site: string };

/** Sites with series of their own. */
const MAX_SITES = 50;
/** How long the gauges of a scrape share the sites that they show. */
const SHARED_MS = 500;
/** Characters of a site in a label; the names of many MX hosts are longer. */
const MAX_SITE_LENGTH = 120;

/** The site as a label. */
export function siteLabel(site: string): string {
  return site.length <= MAX_SITE_LENGTH ? site : `${site.slice(0, MAX_SITE_LENGTH - 1)}…`;
}

/** Registers the gauges of the limits in force. `sites`: all sites in memory. */
export function registerSiteMetrics(registry: Registry, sites: () => LimitedSite[]): void {
  let shown: { sites: LimitedSite[]; at: number } | null = null;
  const shownSites = () => {
    const now = performance.now();
    if (shown === null || now - shown.at > SHARED_MS) shown = { sites: topSites(sites()), at: now };
    return shown.sites;
  };
  const scope = `the ${MAX_SITES} sites that are slowed most, then those with the most messages in progress`;
  const gauge = (name: string, help: string, value: (site: LimitedSite) => number | null) => {
    const metric = new Gauge({
      name,
      help: `${help}: ${scope}.`,
      labelNames: ['site'],
      registers: [],
      collect() {
        this.reset();
        for (const site of shownSites()) {
          const current = value(site);
          if (current !== null) this.set({ site: siteLabel(site.site) }, current);
        }
      },
    });
    registry.registerMetric(metric);
  };
  gauge(
    'postrider_site_connections_limit',
    'Connections that a site may have now',
    ({ connections }) => connections,
  );
  gauge(
    'postrider_site_messages_per_second_limit',
    'Messages per second that may be sent to a site now, where that is limited',
    ({ perSecond }) => perSecond,
  );
  gauge(
    'postrider_site_backoff_steps',
    'Steps by which a site is slower than configured because it asked to send less; each halves connections and rate',
    ({ level }) => level,
  );
  gauge(
    'postrider_site_limited_seconds',
    'Time until mail is sent again to a site that asked to send less',
    ({ limitedMs }) => limitedMs / 1000,
  );
  gauge(
    'postrider_site_limited_accounts',
    'Accounts that are slowed at a site because it asked to send less of their mail',
    ({ accounts }) => accounts,
  );
}

/** The sites that are slowed most, then the busiest. */
function topSites(sites: readonly LimitedSite[]): LimitedSite[] {
  return sites
    .filter(({ level, inFlight, accounts }) => level > 0 || inFlight > 0 || accounts > 0)
    .toSorted((a, b) => b.level - a.level || b.accounts - a.accounts || b.inFlight - a.inFlight)
    .slice(0, MAX_SITES);
}
