import { createRelayProbe } from '../../delivery/relay-probe.ts';
import { createDomains, type Domains } from '../../domains/service.ts';
import { createRecorder, dropQueued } from '../../events/record.ts';
import type { CliContext } from '../context.ts';

/** The domains module of the command's database: with the configured resolvers, without background work. */
export async function openDomains(context: CliContext): Promise<Domains> {
  const deps = await context.open();
  const recorder = createRecorder(deps);
  const seal = await deps.openSeal();
  const resolver = deps.createResolver();
  return createDomains(
    { ...deps, seal },
    {
      resolver,
      generateKey: deps.generateKey,
      probeSecondary: createRelayProbe(deps, resolver),
      recordDomainEvent: (tables, { domain, kind, fields }) => recorder.domain(tables, domain, kind, fields),
      mayAdd: deps.limits.mayAdd.domains,
      dropQueued: (tables, domainId) => void dropQueued(recorder, tables, domainId),
    },
  );
}
