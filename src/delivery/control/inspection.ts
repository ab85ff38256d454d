import {
  MARKETING_PRIORITY,
  type QueuedMessage,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import type { QueueControlRow } from '../../store/messages/queue-controls.ts';
import type { EgressPools } from '../egress-pools.ts';
import type { DeliveryPath, DeliveryPaths } from '../lanes.ts';
import type { RouteCache } from '../route-cache.ts';
import type { RouteResult } from '../routes.ts';
import type { Claims } from '../scheduling/claims.ts';
import type { Parking } from '../scheduling/parking.ts';
import type { Site } from '../scheduling/site.ts';
import type { Sites } from '../scheduling/sites.ts';
import type { Targets } from '../scheduling/targets.ts';
import type { EgressObstacle } from '../source-address.ts';
import type { Controls } from './controls.ts';

/** What only the running daemon knows about queued mail. It changes nothing and begins no lookup. */
export interface Inspection {
  /** The path, the route and the site of a message, and what stops it there. */
  message(message: QueuedMessage): MessageFacts;
  /** Sites in memory with mail, those with the most connections first. */
  sites(): SiteFacts[];
  /** What stops all mail, a clause; null: nothing does. */
  stopped(): string | null;
  sessions(): { used: number; limit: number };
}

export interface MessageFacts {
  path: DeliveryPath;
  /** Null: it is not known; it is looked up when the message is read. */
  route: RouteResult | null;
  site: SiteFacts | null;
  /** Ms for which the site takes no mail of the account, because it asked to send less of it; 0: it does. */
  accountLimitedMs: number;
  /** The source address that it waits for; null: it waits for none. */
  obstacle: EgressObstacle | null;
  /** Its domain or account is parked; null: neither is. */
  parked: { kind: 'domain' | 'account'; ms: number } | null;
  /**
   * The share of the sessions that is used up: that of its account or site, or that of sites without an answer; null:
   * neither is.
   */
  exhausted: 'sessions' | 'unanswered' | null;
  /** It is read ahead, and waits in memory for a connection. */
  readAhead: boolean;
}

export interface SiteFacts {
  site: string;
  pool: string;
  /** Ms until it is probed; 0: it is not suspended. */
  suspendedMs: number;
  /** Ms until it gets mail again, because it asked to send less; 0: it gets mail. */
  limitedMs: number;
  pause: QueueControlRow | null;
  /** Ms until its rate (`perSecond`, or what it asked for) allows the next message; 0: now. */
  rateWaitMs: number;
  /** `limit`: of its profile. `allowed`: now; fewer after an outage, and after the site asked to send less. */
  connections: { used: number; allowed: number; limit: number };
  /** Messages in memory that wait for a connection, transactional and marketing. */
  readAhead: { transactional: number; marketing: number };
  /** Pairs of account and destination with mail that wait for their turn. */
  waitingKeys: number;
}

export interface InspectionDeps {
  sites: Sites;
  parking: Pick<Parking, 'domainWait' | 'accountWait'>;
  routes: Pick<RouteCache, 'peek'>;
  paths: DeliveryPaths;
  egress: Pick<EgressPools, 'ipv6Of'>;
  controls: Pick<Controls, 'ofSite'>;
  claims: Pick<Claims, 'has'>;
  egressObstacle: Targets['egressObstacle'];
  sessions(): { used: number; limit: number };
  exhausted(site: Site, message: QueuedMessage): MessageFacts['exhausted'];
  stopped(): string | null;
}

const MAX_SITES = 200;

/**
 * Keeps no state: each call reads the collaborators in memory; only the path of a message reads the database. `sites`
 * returns at most 200.
 */
export function createInspection(deps: InspectionDeps): Inspection {
  const { sites, parking, routes, paths, egress, controls, claims } = deps;

  const factsOf = (site: Site): SiteFacts => ({
    site: site.key,
    pool: site.pool,
    suspendedMs: Math.ceil(site.suspendedMs()),
    limitedMs: Math.ceil(site.limitedMs()),
    pause: controls.ofSite(site),
    rateWaitMs: Math.ceil(site.rateWaitMs()),
    connections: { ...site.connections(), limit: site.profile().connections },
    readAhead: {
      transactional: site.backlogSize(TRANSACTIONAL_PRIORITY),
      marketing: site.backlogSize(MARKETING_PRIORITY),
    },
    waitingKeys: site.waitingCount(),
  });

  return {
    stopped: deps.stopped,
    sessions: deps.sessions,
    message: (message) => {
      const path = paths.of(message);
      const route = routes.peek(message.destination, egress.ipv6Of(path.pool), path.via);
      const site =
        route?.kind === 'hosts' ? sites.find(message.destination, route.hosts, route.route, path.pool) : null;
      const domainMs = parking.domainWait(message.domain_id);
      const accountMs = parking.accountWait(message.account_id);
      return {
        path,
        route,
        site: site === null ? null : factsOf(site),
        accountLimitedMs: site === null ? 0 : Math.ceil(site.accountLimitedMs(message.account_id)),
        obstacle: deps.egressObstacle(message),
        parked:
          domainMs > 0
            ? { kind: 'domain', ms: domainMs }
            : accountMs > 0
              ? { kind: 'account', ms: accountMs }
              : null,
        exhausted: site === null ? null : deps.exhausted(site, message),
        readAhead: claims.has(message.seq),
      };
    },
    sites: () =>
      [...sites.all()]
        .toSorted(
          (a, b) => b.connections().used - a.connections().used || b.waitingCount() - a.waitingCount(),
        )
        .slice(0, MAX_SITES)
        .map(factsOf),
  };
}
