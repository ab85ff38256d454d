import type { Config } from '../../config/schema.ts';
import type { DeliveryRoute } from '../../config/setting-types.ts';
import { derived } from '../../core/derived.ts';
import { createLru } from '../../core/lru.ts';
import type { Lane, Stream } from '../../store/domains/domains.ts';
import type { QueuedMessage } from '../../store/messages/queue.ts';
import { MAX_REROUTES, type Reroute } from '../../store/messages/queue-controls.ts';
import type { Tables } from '../../store/tables.ts';
import type { TlsMode } from '../worker/protocol.ts';

/**
 * The path of a message: its lane, its egress pool, and the next hop that replaces the hosts of its destination. Normally
 * the region of the domain determines the pool. A message that has failed over uses the secondary lane; one that the
 * operator rerouted uses what the reroute names.
 */
export interface DeliveryPath {
  lane: Lane;
  pool: string;
  /** Null: the configured routes and the MX hosts of the destination. */
  via: DeliveryRoute | null;
}

export interface DeliveryPaths {
  /** Reads the domain, and the reroute of a rerouted message. */
  of(message: PathMessage): DeliveryPath;
  /** The next hop of the secondary lane; null: it has none, as it is another egress pool. */
  relay(): DeliveryRoute | null;
}

export type PathMessage = Pick<QueuedMessage, 'domain_id' | 'use_case' | 'secondary' | 'reroute'>;

export interface DeliveryPathsDeps {
  config: Pick<Config, 'secondary'>;
  tables: Pick<Tables, 'domains' | 'queueReroutes'>;
  egress: { poolOf(region: string, useCase: Stream): string };
}

/**
 * Equal next hops are the same object, because a route's password belongs to its object; those of reroutes are cached,
 * at most `MAX_REROUTES`. After a reload that changes `secondary`, the relay is a new object.
 */
export function createDeliveryPaths({ config, tables, egress }: DeliveryPathsDeps): DeliveryPaths {
  // A route is one object as long as its settings are the same: its password belongs to the object.
  const relay = derived(() => config.secondary, relayRoute);
  const hops = createLru<DeliveryRoute>(MAX_REROUTES);

  function hopOf(row: Reroute): DeliveryRoute | null {
    const { host, port, tls } = row;
    if (host === null) return null;
    const name = `${host} ${port} ${tls}`;
    const known = hops.get(name);
    if (known !== undefined) return known;
    const hop = { match: '*', host, port: port ?? 25, tls: tlsModeOf(tls), allowUnverifiedAuth: false };
    hops.set(name, hop);
    return hop;
  }

  return {
    relay,
    of: ({ domain_id, use_case, secondary, reroute }) => {
      const own = () => egress.poolOf(tables.domains.byId(domain_id)?.region ?? '', use_case);
      const row = reroute === null ? null : tables.queueReroutes.get(reroute);
      const lane = secondary === 1 ? 'secondary' : 'primary';
      if (row !== null) return { lane, pool: row.pool ?? own(), via: hopOf(row) };
      if (lane === 'primary') return { lane, pool: own(), via: null };
      const { secondary: setting } = config;
      return setting.type === 'builtin'
        ? { lane, pool: setting.pool, via: null }
        : { lane, pool: own(), via: relay() };
    },
  };
}

function relayRoute(secondary: Config['secondary']): DeliveryRoute | null {
  if (secondary.type !== 'relay') return null;
  const { host, port, tls, user, passwordFile, allowUnverifiedAuth } = secondary;
  return { match: '*', host, port, tls, user, passwordFile, allowUnverifiedAuth };
}

function tlsModeOf(text: string | null): TlsMode {
  return text === 'none' || text === 'required' || text === 'verified' ? text : 'opportunistic';
}
