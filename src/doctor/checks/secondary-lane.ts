import { secondaryObstacle } from '../../delivery/lanes.ts';
import { probeRelay } from '../../delivery/relay-probe.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, type Result, warning } from '../finding.ts';

/**
 * Whether the secondary lane can take mail that the primary lane cannot deliver. A relay that cannot be used is a failure,
 * one without `spfInclude` a warning. A pool of a region for which the lane is no alternative is a warning; a lane that is
 * not set up is `ok`.
 */
export async function examineSecondaryLane(context: DoctorContext): Promise<Result[]> {
  const { config, resolver } = context;
  const { secondary, delivery, regions } = config;
  if (secondary.type === 'relay') {
    const subject = `${secondary.host}:${secondary.port}`;
    const relayProblem = await probeRelay(context, resolver);
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
  const pools = new Set(regions.flatMap(({ pools: { tx, mk } }) => [tx, mk]));
  // Whether an entry of delivery.egress is for the lane alone.
  const isConfigured = delivery.egress.some(
    (entry) => entry.pools.includes(secondary.pool) && !entry.pools.some((pool) => pools.has(pool)),
  );
  if (!isConfigured) return [ok(subject, 'No secondary lane is set up: all mail stays in the primary lane.')];
  const useless = [...pools].flatMap((pool) => secondaryObstacle(config, pool) ?? []);
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
