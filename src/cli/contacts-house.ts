import { type Audience, createAudience } from '../audience/service.ts';
import { createStatusFollower } from '../audience/standing.ts';
import { HOUR } from '../core/clock.ts';
import { createLog } from '../core/log.ts';
import { createRecorder } from '../events/record.ts';
import { tryLockDaemon } from '../store/database.ts';
import type { CliContext, House } from './context.ts';

/** The audience room as a command uses it, without the daemon's background. */
export async function withAudience(
  context: CliContext,
  account: string,
  work: (audience: Audience, house: House) => Promise<void> | void,
): Promise<void> {
  const house = await context.open();
  const { clock, ids, tables, config } = house;
  if (tables.accounts.get(account) === null) return context.fail(`there is no account ${account}`);
  const audience = createAudience({
    ...house,
    log: createLog({ level: 'silent', hashAddresses: true }),
    recorder: createRecorder({ clock, ids, onSuppressionChange: createStatusFollower(clock) }),
    mayAdd: house.limits.mayAdd.contacts,
    answersKeptMs: config.limits.idempotencyHours * HOUR,
    claimFile: () => tryLockDaemon(config.data.dir),
  });
  await work(audience, house);
}
