import type { AccountLimits } from '../accounts/limits.ts';
import { createRelayProbe } from '../delivery/relay-probe.ts';
import type { Resolver } from '../dns/resolver.ts';
import { registerKeySteps } from '../domains/key-rotation/managed-keys.ts';
import { createPlatformNameServer } from '../domains/platform/name-server.ts';
import { createDomains, type Domains } from '../domains/service.ts';
import { dropQueued, type Recorder } from '../events/record.ts';
import { logListener } from './context.ts';
import type { DaemonBase } from './storage.ts';

/** Creates the domains and starts the name server of the platform's zone. Verification starts with `jobs.start`. */
export async function startDomains(
  base: DaemonBase,
  { resolver, recorder, limits }: { resolver: Resolver; recorder: Recorder; limits: AccountLimits },
): Promise<Domains> {
  const { config, env, log, registry, onStop } = base;
  const domains = createDomains(base, {
    resolver,
    recordDomainEvent: (tx, { domain, kind, fields }) => recorder.domain(tx, domain, kind, fields),
    mayAdd: limits.mayAdd.domains,
    dropQueued: (tx, domainId) => void dropQueued(recorder, tx, domainId),
    generateKey: env.generateKey,
    onKeyStep: registerKeySteps(registry),
    probeSecondary: createRelayProbe(base, resolver),
  });
  await domains.prepareLinkHosts();
  if (config.dns.server.listen !== 'off') {
    const nameServer = createPlatformNameServer(base, resolver);
    onStop(() => nameServer.close());
    await nameServer.listen();
    for (const address of nameServer.addresses()) logListener(log, 'dns', address);
  }
  return domains;
}
