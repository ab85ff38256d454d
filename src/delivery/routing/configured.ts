import type { Config } from '../../config/schema.ts';
import type { Random } from '../../core/random.ts';
import { normalizeAddress } from '../../dns/address-kinds.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { TlsPolicies } from '../tls/host-policies.ts';
import { createGuard } from './guard.ts';
import { createOwnAddresses } from './own-addresses.ts';
import { createRouteFinder, type RouteFinder } from './routes.ts';

export interface ConfiguredRouteFinderDeps {
  config: Config;
  resolver: Resolver;
  random: Random;
  /** Default: TLS policies do not apply. */
  tlsPolicies?: TlsPolicies | undefined;
}

/** The route finder with the settings of the configuration, which it reads at each lookup: a reload changes them. */
export function configuredRouteFinder(deps: ConfiguredRouteFinderDeps): RouteFinder {
  const { config, resolver, random, tlsPolicies } = deps;
  const { delivery } = config;
  const ownListeners = [config.mx.listen, config.submission.listen].filter((listen) => listen !== 'off');
  return createRouteFinder({
    resolver,
    random,
    guard: createGuard({
      get allowPrivateNetworks() {
        return delivery.allowPrivateNetworks;
      },
      ownListeners,
    }),
    ownAddresses: createOwnAddresses({
      resolver,
      get hostname() {
        return config.hostname;
      },
      get publicAddresses() {
        if (config.mx.listen === 'off') return [];
        return delivery.egress.flatMap(({ publicAddress }) =>
          publicAddress === undefined ? [] : [normalizeAddress(publicAddress)],
        );
      },
    }),
    ...(tlsPolicies === undefined ? {} : { tlsPolicies }),
    get routes() {
      return delivery.routes;
    },
    get port() {
      return delivery.port;
    },
    get ownNames() {
      return [config.hostname, ...delivery.egress.flatMap(({ hostname }) => hostname ?? [])];
    },
  });
}
