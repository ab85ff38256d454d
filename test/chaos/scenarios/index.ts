import type { Scenario } from '../scenario.ts';
import { LISTENERS, TENANTS } from './abuse.ts';
import { CLOCK } from './clock.ts';
import { CORRUPTION } from './corruption.ts';
import { DESTINATIONS } from './destinations.ts';
import { DISK } from './disk.ts';
import { DNS } from './dns.ts';
import { KILL } from './kill.ts';
import { LOCKS } from './locks.ts';
import { OPERATION } from './operation.ts';
import { RESOURCES } from './resources.ts';
import { WORKERS } from './workers.ts';

/** The families of scenarios, in the order in which they run. */
export const FAMILIES: ReadonlyMap<string, readonly Scenario[]> = new Map([
  ['kill', KILL],
  ['workers', WORKERS],
  ['corruption', CORRUPTION],
  ['disk', DISK],
  ['locks', LOCKS],
  ['resources', RESOURCES],
  ['operation', OPERATION],
  ['clock', CLOCK],
  ['dns', DNS],
  ['destinations', DESTINATIONS],
  ['listeners', LISTENERS],
  ['tenants', TENANTS],
]);
