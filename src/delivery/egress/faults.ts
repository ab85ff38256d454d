import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import type { EgressEntry } from '../routing/egress.ts';

/**
 * Source addresses that cannot be used from this machine: a proxy that does not work, an address that no interface has.
 * Such an address is not used for a while, longer each time; then one message probes it. In memory only: the fault is
 * found again within one message.
 */
export interface EgressFaults {
  isUsable(entry: EgressEntry): boolean;
  /** Milliseconds until the entry is probed; 0: now. */
  waitMs(entry: EgressEntry): number;
  /** An attempt began. `ended` or `released` follows. */
  begun(entry: EgressEntry): void;
  /** An attempt ended. `fault`: why the address could not be used; null: it was used. Returns the new wait, ms. */
  ended(entry: EgressEntry, fault: string | null): number;
  /** An attempt ended, and nothing is known about the address. */
  released(entry: EgressEntry): void;
  list(): EgressFault[];
}

export interface EgressFault {
  entry: string;
  error: string;
  waitMs: number;
}

/** Consecutive faults after which the address is not used: a proxy reports some failures of a destination as its own. */
const MAX_FAULTS = 2;
const FIRST_WAIT_MS = 30 * SECOND;
const MAX_WAIT_MS = 10 * MINUTE;
/** How long a message waits while another one probes the address. */
const PROBE_WAIT_MS = 5 * SECOND;

interface Fault {
  failures: number;
  until: number;
  error: string;
  /** Attempts in flight that began after the wait. */
  probes: number;
}

/** `clock`: monotonic. Entries without a name are always usable: they have no alternative. */
export function createEgressFaults(clock: Clock): EgressFaults {
  const faults = new Map<string, Fault>();
  const faultOf = ({ name }: EgressEntry) =>
    faults.size === 0 || name === null ? undefined : faults.get(name);
  const mayProbe = (fault: Fault) => fault.until <= clock.now();

  const waitMs = (entry: EgressEntry): number => {
    const fault = faultOf(entry);
    if (fault === undefined) return 0;
    if (fault.failures < MAX_FAULTS) return 0;
    if (!mayProbe(fault)) return fault.until - clock.now();
    return fault.probes === 0 ? 0 : PROBE_WAIT_MS;
  };
  return {
    isUsable: (entry) => waitMs(entry) === 0,
    waitMs,
    begun: (entry) => {
      const fault = faultOf(entry);
      if (fault !== undefined) fault.probes++;
    },
    ended: (entry, error) => {
      const { name } = entry;
      if (name === null) return 0;
      const known = faults.get(name);
      if (error === null) {
        faults.delete(name);
        return 0;
      }
      // Messages that were in flight together are one fault.
      if (known !== undefined && !mayProbe(known)) return known.until - clock.now();
      const failures = (known?.failures ?? 0) + 1;
      const doublings = Math.min(failures - MAX_FAULTS, 16);
      const wait = doublings < 0 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** doublings, MAX_WAIT_MS);
      faults.set(name, { failures, until: clock.now() + wait, error, probes: 0 });
      return wait;
    },
    released: (entry) => {
      const fault = faultOf(entry);
      if (fault !== undefined && fault.probes > 0) fault.probes--;
    },
    list: () =>
      [...faults].map(([entry, { error, until }]) => ({
        entry,
        error,
        waitMs: Math.max(0, until - clock.now()),
      })),
  };
}
