import { createLog } from '../../core/log.ts';
import { providerOf } from '../../mail/providers.ts';
import type { QueuedMessage } from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import { createDeliveryPaths, type PathMessage } from '../lanes/paths.ts';
import { createEgressPools } from '../routing/egress.ts';
import { routeFor } from '../routing/routes.ts';
import { createEgress, type EgressDeps } from './egress.ts';
import type { EgressObstacle } from './ticket.ts';

/**
 * The source address that a ready message waits for, according to the database: for commands, which run in another
 * process than the daemon. The provider is that of the recipient's domain: without its MX hosts that of a hosted domain is
 * not known. Null: it waits for none that is known.
 */
export function storedObstacle(
  { config, tables, writer, clock }: Pick<EgressDeps, 'config' | 'writer' | 'clock'> & { tables: Tables },
  message: PathMessage & Pick<QueuedMessage, 'destination' | 'priority'>,
): EgressObstacle | null {
  const pools = createEgressPools(config);
  const egress = createEgress({
    config,
    tables,
    writer,
    clock,
    monotonic: clock,
    pools,
    log: createLog({ level: 'silent', hashAddresses: true }),
    proxies: { isResolved: () => true },
  });
  const { destination, priority } = message;
  const { pool, via } = createDeliveryPaths({ config, tables, egress: pools }).of(message);
  const route = via ?? routeFor(config.delivery.routes, destination);
  const provider = route === null ? providerOf(destination) : null;
  return egress.obstacle(pool, { provider, priority, hosts: [] });
}
