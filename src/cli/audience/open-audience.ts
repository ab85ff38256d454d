import { type Audience, createAudience } from '../../audience/service.ts';
import { createStatusFollower } from '../../audience/standing.ts';
import { HOUR } from '../../core/clock.ts';
import { createRecorder } from '../../events/record.ts';
import { tryLockDaemon } from '../../store/database/database.ts';
import type { CliContext } from '../context.ts';

/** The audience module of the command's database, without background work. */
export async function openAudience(context: CliContext, account: string): Promise<Audience> {
  const deps = await context.open({ account });
  const { clock, ids, limits, config } = deps;
  return createAudience(deps, {
    recorder: createRecorder({ clock, ids }, { onSuppressionChange: createStatusFollower(clock) }),
    mayAdd: limits.mayAdd,
    responsesKeptMs: config.limits.idempotencyHours * HOUR,
    claimFile: () => tryLockDaemon(config.data.dir),
  });
}
