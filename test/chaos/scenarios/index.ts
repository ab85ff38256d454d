import type { Scenario } from '../scenario.ts';
import { ABUSE } from './abuse.ts';
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

/** All scenarios in the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  ...KILL,
  ...WORKERS,
  ...CORRUPTION,
  ...DISK,
  ...LOCKS,
  ...RESOURCES,
  ...OPERATION,
  ...CLOCK,
  ...DNS,
  ...DESTINATIONS,
  ...ABUSE,
];
