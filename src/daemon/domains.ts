import type { AccountLimits } from '../accounts/limits.ts';
import { createRelayProbe } from '../delivery/relay-probe.ts';
import type { Resolver } from '../dns/resolver.ts';
import { registerKeySteps } from '../domains/key-rotation/managed-keys.ts';
import { createPlatformNameServer } from '../domains/name-server/service.ts';
import { createDomains, type Domains } from '../domains/service.ts';
import { dropQueued, type Recorder } from '../events/record.ts';
import { logListener } from './context.ts';
import type { DaemonBase } from './storage.ts';

interface DomainsParts {
  resolver: Resolver;
  recorder: Recorder;
  limits: AccountLimits;
}

/** Creates the domains and starts the name server of the platform's zone. Verification starts with `jobs.start`. */
export async function startDomains(
  base: DaemonBase,
  { resolver, recorder, limits }: DomainsParts,
): Promise<Domains> {
  const { config, env, clock, monotonic, random, log, ids, registry, tables, writer, seal, onStop } = base;
  const domains = createDomains({
    config,
    tables,
    writer,
    clock,
    monotonic,
    ids,
    log,
    seal,
    resolver,
    recordDomainEvent: (all, { domain, kind, fields }) => recorder.domain(all, domain, kind, fields),
    mayAdd: limits.mayAdd.domains,
    dropQueued: (all, domainId) => void dropQueued(recorder, all, domainId),
    generateKey: env.generateKey,
    onKeyStep: registerKeySteps(registry),
    probeSecondary: createRelayProbe({ config, clock, monotonic }, resolver),
  });
  await domains.prepareLinkHosts();
  if (config.dns.server.listen !== 'off') {
    const nameServer = createPlatformNameServer({
      config,
      tables,
      writer,
      resolver,
      clock,
      random,
      log,
      registry,
    });
    onStop(() => nameServer.close());
    await nameServer.listen();
    for (const address of nameServer.addresses()) logListener(log, 'dns', address);
  }
  return domains;
}
