import type { Clock } from './clock.ts';
import type { Ids } from './ids.ts';
import type { Log } from './log.ts';
import type { Random } from './random.ts';

/**
 * What a part of the daemon that needs no database receives first. A part takes what it uses of it:
 * `createX(runtime: Pick<Runtime, 'clock' | 'log'>, …)`; its collaborators follow.
 */
export interface Runtime {
  clock: Clock;
  /** For durations: setting the system clock does not change it. */
  monotonic: Clock;
  random: Random;
  ids: Ids;
  log: Log;
}
