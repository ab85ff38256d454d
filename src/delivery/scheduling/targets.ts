import type { LocalFailure } from '../../mail/classify/classify.ts';
import { providerOfHosts } from '../../mail/providers.ts';
import type { Context } from '../../store/context.ts';
import type { Lane } from '../../store/domains/domains.ts';
import type { QueuedMessage, QueueKey, ReadyMessage } from '../../store/messages/queue.ts';
import type { QueueControlRow } from '../../store/messages/queue-controls.ts';
import type { ControlIndex } from '../control.ts';
import type { EgressPools } from '../egress-pools.ts';
import type { DeliveryPath, DeliveryPaths, PathMessage } from '../lanes.ts';
import type { Sender } from '../ramp.ts';
import type { RouteCache } from '../route-cache.ts';
import type { RouteResult } from '../routes.ts';
import type { Egress, EgressMail, EgressObstacle } from '../source-address.ts';
import type { TargetHost } from '../worker/protocol.ts';
import type { Assignment, Site } from './site.ts';
import type { Sites } from './sites.ts';

/** What decides the target of a message. */
export type TargetMail = QueueKey & PathMessage & Pick<QueuedMessage, 'simulated'>;

export type Targets = ReturnType<typeof createTargets>;

/** Why a message needs no connection. */
export type LocalTarget =
  | { kind: 'simulator' }
  /** The operator rejects the mail to its destination. */
  | { kind: 'rejected'; control: QueueControlRow }
  /** The destination has no usable route. */
  | { kind: 'failure'; failure: LocalFailure };

export type Target =
  | SiteTarget
  | LocalTarget
  /** No source address of the pool may send it now. */
  | { kind: 'blocked'; obstacle: EgressObstacle }
  /**
   * Its route is being looked up (`lookup`, see `RouteCache.get`), its account has too many sites, or its egress pool is paused
   * and it has no site to wait at.
   */
  | { kind: 'waiting'; lookup?: Promise<boolean> | null };

/** Also while the site is halted or paused: the message waits there. */
export interface SiteTarget {
  kind: 'site';
  site: Site;
  lane: Lane;
  result: RouteHosts;
  mail: EgressMail;
}

type RouteHosts = Extract<RouteResult, { kind: 'hosts' }>;

export interface TargetParts {
  sites: Sites;
  routes: RouteCache;
  pools: Pick<EgressPools, 'ipv6Of'>;
  egress: Pick<Egress, 'obstacle'>;
  paths: Pick<DeliveryPaths, 'of'>;
  controls: ControlIndex;
}

/** Where a message goes, as far as it is known. */
export interface Location {
  path: DeliveryPath;
  route: RouteResult | null;
  site: Site | null;
}

/**
 * Where queued messages go, and what stops them on the way.
 *
 * Reads the database for paths only: `find` once in a batch for each domain, use case and lane, and for each rerouted
 * message; `pauseOf`, `locate` and `egressObstacle` at each call.
 */
export function createTargets({ monotonic }: Pick<Context, 'monotonic'>, parts: TargetParts) {
  const { sites, routes, pools, egress, controls } = parts;
  /** Paths of the domains in this batch, by lane, use case and domain. */
  const paths = new Map<string, DeliveryPath>();
  const providers = new WeakMap<readonly TargetHost[], string>();

  /** Called for every message of a batch; reads each domain once. */
  function pathOf(message: TargetMail): DeliveryPath {
    // A rerouted message is rare, and no other message shares its path.
    if (message.reroute !== null) return parts.paths.of(message);
    const name = `${message.secondary} ${message.use_case} ${message.domain_id}`;
    const known = paths.get(name);
    if (known !== undefined) return known;
    const path = parts.paths.of(message);
    paths.set(name, path);
    return path;
  }

  /**
   * The target of a message that is due. `mayLookUp`: whether a route that is not known is looked up. Throws when data that
   * decides about the target cannot be read.
   */
  function find(message: TargetMail, mayLookUp: boolean): Target {
    if (message.simulated === 1) return { kind: 'simulator' };
    const control = controls.ofKey(message);
    if (control?.action === 'bounce') return { kind: 'rejected', control };
    const { pool, lane, via } = pathOf(message);
    const ipv6 = pools.ipv6Of(pool);
    const { account_id: accountId, destination } = message;
    const result = routes[mayLookUp ? 'get' : 'peek'](destination, ipv6, { accountId, via });
    if (result === null || result instanceof Promise) return { kind: 'waiting', lookup: result };
    if (result.kind === 'failure')
      return controls.ofSite({ key: '', pool }) === null ? result : { kind: 'waiting' };
    const { hosts, route } = result;
    const mail = mailOf(message, result);
    // The scan of the queue finds the message again.
    if (!sites.mayCreate(accountId) && sites.find(destination, hosts, route, pool) === null)
      return { kind: 'waiting' };
    const site = sites.of(destination, hosts, route, pool, accountId);
    const obstacle = site.isPaused() ? null : egress.obstacle(pool, mail);
    if (obstacle !== null) return { kind: 'blocked', obstacle };
    return { kind: 'site', site, lane, result, mail };
  }

  function mailOf(sender: QueueKey & Sender, { hosts, route }: RouteHosts): EgressMail {
    const { priority, destination } = sender;
    if (route !== null) return { provider: null, priority, hosts, sender };
    // The hosts belong to one destination (route-cache).
    let provider = providers.get(hosts);
    if (provider === undefined) {
      provider = providerOfHosts(destination, hosts);
      providers.set(hosts, provider);
    }
    const receiver = sites.receiverOf(destination, hosts) ?? provider;
    return { provider, receiver, priority, hosts, sender };
  }

  /** The path, the route (null: it is not known) and the site (null: it is not in memory) of a message. */
  function locate(message: QueuedMessage): Location {
    const path = parts.paths.of(message);
    const { account_id: accountId, destination } = message;
    const wanted = { accountId, via: path.via };
    // A simulated message has no route: nothing is looked up for it.
    const found = message.simulated === 1 ? null : routes.get(destination, pools.ipv6Of(path.pool), wanted);
    const route = found instanceof Promise ? null : found;
    const site =
      route?.kind === 'hosts' ? sites.find(destination, route.hosts, route.route, path.pool) : null;
    return { path, route, site };
  }

  return {
    /** Clears the paths that were read for the last batch. Call before each batch of `find`. */
    startBatch: (): void => {
      paths.clear();
    },
    find,
    /** The message with its route, for the backlog of its site. */
    assign: (message: ReadyMessage, { lane, result, mail }: SiteTarget): Assignment => {
      const { hosts, route, tls } = result;
      const { provider, receiver } = mail;
      return {
        message,
        hosts,
        route,
        lane,
        provider,
        receiver,
        readAt: monotonic.now(),
        ...(tls === undefined ? {} : { tls }),
      };
    },
    /**
     * The operator's pause of a message: of its account, destination, egress pool or site. Null: there is none. A site
     * whose route is not known is not considered. Throws like `find`.
     */
    pauseOf: (message: QueuedMessage): QueueControlRow | null => {
      const control = controls.ofKey(message);
      if (control?.action === 'pause') return control;
      if (message.simulated === 1) return null;
      const { path, site } = locate(message);
      return controls.ofSite(site ?? { key: '', pool: path.pool });
    },
    locate,
    /** The source address, its limit and the time that a due message waits for; null: it waits for none. */
    egressObstacle: (message: QueuedMessage): EgressObstacle | null => {
      if (message.simulated === 1) return null;
      const { path, route } = locate(message);
      return route?.kind === 'hosts' ? egress.obstacle(path.pool, mailOf(message, route)) : null;
    },
  };
}
