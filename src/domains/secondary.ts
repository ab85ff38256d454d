import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Seal } from '../core/seal.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import type { KeyQueue } from './key-queue.ts';
import { sealKey } from './keys.ts';
import { secondarySelector } from './records.ts';

/**
 * Setting up the secondary lane of a domain: its key is made after the domain's own answer went out, and from
 * then on record 6 names its target. Whether the lane works is no part of it. A domain that was left without
 * (a crash, a registration from the command line) is taken up again by whoever asks for the unprovisioned.
 */
export interface ProvisionHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  log: Log;
  seal: Seal;
  keyQueue: KeyQueue;
}

export type Provision = (domainId: string) => Promise<void>;

/** Does nothing for a domain that is gone or has its lane already. */
export function createProvision(house: ProvisionHouse): Provision {
  const { tables, writer, clock, log, seal, keyQueue } = house;
  return async (domainId) => {
    const domain = tables.domains.byId(domainId);
    if (domain === null || domain.alt_provisioned === 1) return;
    const attributes = { selector: secondarySelector(domain), lane: 'secondary', state: 'active' } as const;
    const key = sealKey(seal, await keyQueue.generateInBackground(), domainId, attributes, clock.now());
    const done = await writer.run(({ domains, dkimKeys }) => {
      const row = domains.byId(domainId);
      if (row === null || row.alt_provisioned === 1) return null;
      dkimKeys.insert(key);
      domains.update({ ...row, alt_provisioned: 1, updated_at: clock.now() });
      return { domainId, domain: row.name, altDomainId: row.alt_domain_id };
    });
    if (done !== null) log.info(done, 'secondary lane set up');
  };
}
