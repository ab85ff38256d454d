import { type Clock, HOUR } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';

/** Addresses of servers at which BDAT failed. */
export interface BdatFaults {
  has(address: string): boolean;
  add(address: string): void;
}

const FAULT_MS = HOUR;
const MAX_FAULTS = 1000;

/** In memory only. `clock`: monotonic. */
export function createBdatFaults(clock: Clock): BdatFaults {
  const faults = createLru<{ until: number }>(MAX_FAULTS);
  return {
    has: (address) => (faults.get(address)?.until ?? 0) > clock.now(),
    add: (address) => void faults.set(address, { until: clock.now() + FAULT_MS }),
  };
}
