import type { Clock } from '../../core/clock.ts';
import type { ConnectionNeeds } from './connection.ts';
import { createDeadlines } from './deadlines.ts';
import { createEncryption } from './encryption.ts';
import type { Limits } from './limits.ts';
import { createSlots, type Slots } from './slots.ts';
import type { Dial } from './wire.ts';

/** What all sessions of one worker share. */
export interface Client extends ConnectionNeeds {
  /** Epoch ms, for the record. */
  clock: Clock;
  slots: Slots;
  /** True once `abort` was called: nothing new is begun. */
  aborted(): boolean;
  /** Cuts every connection; waits under way end with trouble. */
  abort(): void;
  /** Says goodbye on the connections at rest and ends when all sockets are closed, soon in any case. */
  close(): Promise<void>;
}

export interface ClientWorld {
  clock: Clock;
  /** Never steps; its zero is of no matter. */
  monotonic: Clock;
  dial: Dial;
  limits: Limits;
  /** Idle connections that are kept open at most; default: no limit. */
  restingConnections?: number;
  /** PEM certificates trusted beside the built-in ones. */
  authorities?: readonly string[];
}

/** How long servers may take to answer QUIT when the worker ends. */
const GOODBYE_MS = 1000;

export function createClient(world: ClientWorld): Client {
  const { clock, dial, limits } = world;
  const deadlines = createDeadlines(world.monotonic, limits.tick);
  const slots = createSlots(world.restingConnections);
  const open: Client['open'] = new Set();
  const cutAll = (words: string) => {
    for (const wire of open) wire.cut(words);
  };
  let aborted = false;
  return {
    clock,
    dial,
    limits,
    deadlines,
    slots,
    open,
    encryption: createEncryption(world.authorities),
    aborted: () => aborted,
    abort: () => {
      aborted = true;
      cutAll('the delivery worker was stopped');
    },
    close: async () => {
      slots.closeAll();
      const goodbyes = setTimeout(() => cutAll('the delivery worker has finished'), GOODBYE_MS);
      await Promise.all([...open].map((wire) => wire.closed));
      clearTimeout(goodbyes);
      deadlines.close();
    },
  };
}
