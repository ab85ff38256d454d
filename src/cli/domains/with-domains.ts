import { monotonicClock } from '../../core/clock.ts';
import { createLog } from '../../core/log.ts';
import { createRelayProbe } from '../../delivery/relay-probe.ts';
import { createResolver, type Resolver } from '../../dns/resolver.ts';
import { createDomains, type Domains } from '../../domains/service.ts';
import { createRecorder, dropQueued } from '../../events/record.ts';
import type { CliContext, CliDeps } from '../context.ts';

/** The domains module of a command: with the configured resolvers, without background work. */
export interface DomainDeps extends CliDeps {
  domains: Domains;
}

/** Runs `work` with the domains module of the command's database; closes the resolver afterwards. */
export async function withDomains(
  context: CliContext,
  work: (deps: DomainDeps) => Promise<void>,
): Promise<void> {
  const deps = await context.open();
  const { clock, ids } = deps;
  const recorder = createRecorder({ clock, ids });
  const seal = await deps.seal();
  await withResolver(deps, async (resolver) => {
    const domains = createDomains({
      ...deps,
      log: createLog({ level: 'silent', hashAddresses: true }),
      seal,
      resolver,
      monotonic: monotonicClock,
      probeSecondary: createRelayProbe({ ...deps, resolver, monotonic: monotonicClock }),
      recordDomainEvent: (tables, { domain, kind, fields }) => recorder.domain(tables, domain, kind, fields),
      mayAdd: deps.limits.mayAdd.domains,
      dropQueued: (tables, domainId) => void dropQueued(recorder, tables, domainId),
    });
    await work({ ...deps, domains });
  });
}

/** Runs `work` with a resolver of `dns.resolvers`, and closes it when `work` has ended, also with an error. */
export async function withResolver(
  deps: CliDeps,
  work: (resolver: Resolver) => Promise<void>,
): Promise<void> {
  const { config, random } = deps;
  const resolver = createResolver({
    resolvers: config.dns.resolvers,
    timeoutMs: config.dns.timeoutMs,
    monotonic: monotonicClock,
    random,
  });
  try {
    await work(resolver);
  } finally {
    resolver.close();
  }
}
