import { createLog } from '../core/log.ts';
import { createResolver, type Resolver } from '../dns/resolver.ts';
import { createDomains, type Domains } from '../domains/service.ts';
import { dropQueued } from '../events/drop.ts';
import { createRecorder } from '../events/record.ts';
import type { CliContext, House } from './context.ts';

/** The domains room as a command uses it: over the configured resolvers, without the daemon's background. */
export interface DomainHouse extends House {
  domains: Domains;
}

/** Opens the database and hands it to `work`; what was opened for it is closed after. */
export async function withDomains(
  context: CliContext,
  work: (house: DomainHouse) => Promise<void>,
): Promise<void> {
  const house = await context.open();
  const { clock, ids } = house;
  const recorder = createRecorder({ clock, ids });
  const seal = await house.seal();
  await withResolver(house, async (resolver) => {
    const domains = createDomains({
      ...house,
      log: createLog({ level: 'silent', hashAddresses: true }),
      seal,
      resolver,
      recordDomainEvent: (tables, { domain, kind, data }) => recorder.domain(tables, domain, kind, data),
      mayAdd: house.limits.mayAdd.domains,
      dropQueued: (tables, domainId) => void dropQueued(recorder, tables, domainId),
    });
    await work({ ...house, domains });
  });
}

export async function withResolver(house: House, work: (resolver: Resolver) => Promise<void>): Promise<void> {
  const { config, clock, random } = house;
  const resolver = createResolver({
    resolvers: config.dns.resolvers,
    timeoutMs: config.dns.timeoutMs,
    clock,
    random,
  });
  try {
    await work(resolver);
  } finally {
    resolver.close();
  }
}
