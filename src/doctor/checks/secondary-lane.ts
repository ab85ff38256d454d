import type { Config } from '../../config/schema.ts';
import { SECOND } from '../../core/clock.ts';
import { secondaryObstacle } from '../../delivery/lanes.ts';
import { probeRelay } from '../../delivery/relay-probe.ts';
import { check } from '../context.ts';
import { failure, ok, type Result, warning } from '../finding.ts';

interface LaneFacts {
  secondary: Config['secondary'];
  /** Pools that regions use, with why the secondary lane is no alternative to them; null: it is one. */
  pools: { pool: string; obstacle: string | null }[];
  /** Whether an entry of delivery.egress is for the lane alone, or it has a relay. */
  isConfigured: boolean;
  /** What is wrong with the relay; null: nothing, or there is none. */
  relayProblem: string | null;
}

/** Whether the secondary lane can take mail that the primary lane cannot deliver. */
export const secondaryLaneCheck = check<LaneFacts>({
  id: 'secondary-lane',
  title: 'Secondary lane',
  group: 'Network',
  timeoutMs: 30 * SECOND,
  gather: async ({ config, resolver, clock, monotonic }) => {
    const { secondary, delivery, regions } = config;
    const pools = new Set(regions.flatMap(({ pools: { tx, mk } }) => [tx, mk]));
    return {
      secondary,
      pools: [...pools].map((pool) => ({ pool, obstacle: secondaryObstacle(config, pool) })),
      isConfigured:
        secondary.type === 'relay' ||
        delivery.egress.some(
          (entry) => entry.pools.includes(secondary.pool) && !entry.pools.some((pool) => pools.has(pool)),
        ),
      relayProblem: await probeRelay({ config, clock, monotonic }, resolver),
    };
  },
  judge: judgeLane,
});

/**
 * A relay that cannot be used is a failure, one without `spfInclude` a warning. A pool of a region for which the lane
 * is no alternative is a warning; a lane that is not set up is `ok`.
 */
export function judgeLane({ secondary, pools, isConfigured, relayProblem }: LaneFacts): Result[] {
  if (secondary.type === 'relay') {
    const subject = `${secondary.host}:${secondary.port}`;
    if (relayProblem !== null)
      return [failure(subject, `The relay of the secondary lane cannot be used: ${relayProblem}.`)];
    if (secondary.spfInclude === undefined)
      return [
        warning(
          subject,
          'SPF of the domains does not include the relay: its mail passes DMARC by DKIM alone.',
          '[secondary]\nspfInclude = "spf.<relay>"',
        ),
      ];
    return [ok(subject, 'The relay of the secondary lane accepts the login.')];
  }
  const subject = `pool ${secondary.pool}`;
  if (!isConfigured) return [ok(subject, 'No secondary lane is set up: all mail stays in the primary lane.')];
  const useless = pools.flatMap(({ obstacle }) => obstacle ?? []);
  return useless.length === 0
    ? [ok(subject, 'The secondary lane has its own source addresses.')]
    : useless.map((obstacle) =>
        warning(
          subject,
          `Mail does not change to the secondary lane: ${obstacle}.`,
          `[[delivery.egress]]\nname = "second"\naddress = "192.0.2.2"\npools = ["${secondary.pool}"]`,
        ),
      );
}
