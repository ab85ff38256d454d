import type { Context } from '../store/context.ts';
import type { KeyQueue } from './key-queue.ts';
import { slotSelector } from './key-slots.ts';
import { sealKey } from './keys.ts';

/** Resolves with the reason why the lane cannot be used, a clause, or null. */
export type ProbeSecondary = () => Promise<string | null>;

/**
 * Provisions the secondary lane of a domain: generates its key. Afterwards the required record contains its target.
 * No effect when the domain does not exist or has its lane. Resolves with false, without a key, while the lane cannot be
 * used. The background jobs find domains without a lane: those for which it could not be used, those registered on the
 * command line, and those whose provisioning a crash ended.
 */
export type ProvisionSecondary = (domainId: string) => Promise<boolean>;

/**
 * Calls `probeSecondary` for each domain and caches nothing; the probe of the daemon does. The key and the state of the
 * domain are stored in one unit of work. Rejects when the key cannot be generated or stored.
 */
export function createProvisionSecondary(
  { tables, writer, clock, log, seal }: Pick<Context, 'tables' | 'writer' | 'clock' | 'log' | 'seal'>,
  { keyQueue, probeSecondary }: { keyQueue: KeyQueue; probeSecondary: ProbeSecondary },
): ProvisionSecondary {
  return async (domainId) => {
    const domain = tables.domains.byId(domainId);
    if (domain === null || domain.alt_provisioned === 1) return true;
    const problem = await probeSecondary();
    if (problem !== null) {
      log.warn({ domainId, domain: domain.name, reason: problem }, 'secondary lane not provisioned yet');
      return false;
    }
    const attributes = {
      selector: slotSelector(domain, 's'),
      lane: 'secondary',
      slot: 's',
      state: 'active',
    } as const;
    const key = sealKey(seal, await keyQueue.generateInBackground(), domainId, attributes, clock.now());
    const provisioned = await writer.run(({ domains, dkimKeys }) => {
      const row = domains.byId(domainId);
      if (row === null || row.alt_provisioned === 1) return null;
      dkimKeys.insert(key);
      domains.update({ ...row, alt_provisioned: 1, updated_at: clock.now() });
      return { domainId, domain: row.name, altDomainId: row.alt_domain_id };
    });
    if (provisioned !== null) log.info(provisioned, 'secondary lane provisioned');
    return true;
  };
}
