import type { AccountLimits } from '../accounts/limits.ts';
import { type Audience, createAudience } from '../audience/service.ts';
import { builtProgram } from '../core/built-program.ts';
import { HOUR, SECOND } from '../core/clock.ts';
import type { Recorder } from '../events/record.ts';
import type { DaemonBase } from './storage.ts';

/** Creates contacts and subscription groups, and starts the erasures that wait. */
export function startAudience(
  base: DaemonBase,
  { recorder, limits }: { recorder: Recorder; limits: AccountLimits },
): Audience {
  const { config, onStop } = base;
  const audience = createAudience(base, {
    recorder,
    mayAdd: limits.mayAdd,
    responsesKeptMs: config.limits.idempotencyHours * HOUR,
    waitMs: 5 * SECOND,
    slackScript: builtProgram('store/maintenance/slack-thread'),
  });
  audience.background.start();
  onStop(() => audience.background.stop());
  return audience;
}
