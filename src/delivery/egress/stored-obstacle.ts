import { createLog } from '../../core/log.ts';
import { domainOf } from '../../mail/address.ts';
import { providerOf } from '../../mail/providers.ts';
import type { MessageRow } from '../../store/messages/messages.ts';
import type { QueuePriority } from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import { createEgressPools } from '../routing/egress.ts';
import { createEgress, type EgressDeps } from './egress.ts';
import type { EgressObstacle } from './ticket.ts';

/**
 * The source address that a ready message waits for, from what is stored: for commands, which run in another process than
 * the daemon. The provider is that of the recipient's domain: without its MX hosts that of a hosted domain is not known.
 * Null: it waits for none that is known.
 */
export function storedObstacle(
  { config, tables, writer, clock }: Pick<EgressDeps, 'config' | 'writer' | 'clock'> & { tables: Tables },
  message: Pick<MessageRow, 'domain_id' | 'use_case' | 'recipient'> & { priority: QueuePriority },
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
  const region = tables.domains.byId(message.domain_id)?.region ?? '';
  const provider = providerOf(domainOf(message.recipient));
  return egress.obstacle(pools.poolOf(region, message.use_case), {
    provider,
    priority: message.priority,
    hosts: [],
  });
}
