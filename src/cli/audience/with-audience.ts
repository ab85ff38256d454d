import { type Audience, createAudience } from '../../audience/service.ts';
import { createStatusFollower } from '../../audience/standing.ts';
import { HOUR } from '../../core/clock.ts';
import { createLog } from '../../core/log.ts';
import { createRecorder } from '../../events/record.ts';
import { tryLockDaemon } from '../../store/database/database.ts';
import type { CliContext, CliDeps } from '../context.ts';

/** Runs `work` with the audience module of the command's database, without background work. */
export async function withAudience(
  context: CliContext,
  account: string,
  work: (audience: Audience, deps: CliDeps) => Promise<void> | void,
): Promise<void> {
  const deps = await context.open();
  const { clock, ids, tables, config } = deps;
  if (tables.accounts.get(account) === null) return context.fail(`There is no account ${account}`);
  const audience = createAudience({
    ...deps,
    log: createLog({ level: 'silent', hashAddresses: true }),
    recorder: createRecorder({ clock, ids, onSuppressionChange: createStatusFollower(clock) }),
    mayAdd: deps.limits.mayAdd.contacts,
    mayAddGroup: deps.limits.mayAdd.subscriptionGroups,
    responsesKeptMs: config.limits.idempotencyHours * HOUR,
    claimFile: () => tryLockDaemon(config.data.dir),
  });
  await work(audience, deps);
}
