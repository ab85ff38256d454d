import { expect, it } from 'vitest';
import type { DeliveryRoute } from '../../src/config/setting-types.ts';
import { presentRoute } from '../../src/delivery/explain.ts';
import { failure } from '../../src/delivery/routes.ts';
import type { MessageFacts } from '../../src/delivery/waits.ts';

const HOP: DeliveryRoute = {
  match: '*',
  host: 'hop.example',
  port: 25,
  tls: 'opportunistic',
  allowUnverifiedAuth: false,
};
const HOSTS = [{ name: 'hop.example', addresses: ['192.0.2.1'] }];

/** `via`: the next hop of the path; `route`: the one with which the lookup ended. */
function factsOf(via: DeliveryRoute | null, route: DeliveryRoute | null, isFound: boolean): MessageFacts {
  return {
    path: { lane: 'primary', pool: 'default', via },
    route: isFound ? { kind: 'hosts', hosts: HOSTS, route, ttl: 60 } : failure('dns-trouble', 60, route),
    site: null,
    accountLimitedMs: 0,
    slowedTo: null,
    obstacle: null,
    parked: null,
    isWithoutSite: false,
    isAccountBusy: false,
    unreadable: null,
    isUnrecorded: false,
    exhausted: null,
    stopped: null,
    sessions: { used: 0, limit: 2 },
  };
}

it.each<[string, DeliveryRoute | null, DeliveryRoute | null, number | null]>([
  ['mx', null, null, null],
  ['configured', null, HOP, null],
  ['relay', HOP, HOP, null],
  // Also of a message that has changed to the secondary lane.
  ['rerouted', HOP, HOP, 1],
  // The reroute names a pool alone.
  ['mx', null, null, 1],
])('presents a route by %s, whether or not it has hosts', (via, pathVia, route, reroute) => {
  const queued = { destination: 'example.net', reroute };
  expect(presentRoute(factsOf(pathVia, route, true), queued)).toMatchObject({ via, failure: null });
  expect(presentRoute(factsOf(pathVia, route, false), queued)).toMatchObject({ via, hosts: [] });
});

it('names the next hop that has no address', () => {
  const explained = (route: DeliveryRoute | null) =>
    presentRoute(factsOf(null, route, false), { destination: 'example.net', reroute: null })?.failure;
  expect(explained(HOP)).toBe('There is no route to example.net through hop.example: dns trouble.');
  expect(explained(null)).toBe('There is no route to example.net: dns trouble.');
});
