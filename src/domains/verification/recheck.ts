import PQueue from 'p-queue';
import { type Clock, HOUR, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import type { Provision } from '../secondary.ts';
import type { Verifier } from './verify.ts';

/**
 * The work on domains that nobody asks for: looking at them again when they are due, and setting up secondary
 * lanes. What is due stands in the database, so a restart loses nothing, and what another process registers
 * is seen with the next tick.
 */
export interface Recheck {
  /** Takes up what is due, as far as there is room; resolves when all that runs is done. */
  tick(): Promise<void>;
  /** Ticks by itself from now on. */
  start(): void;
  /** Gives up what runs; resolves when nothing does any more. */
  stop(): Promise<void>;
}

export interface RecheckHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  log: Log;
  verify: Verifier;
  provision: Provision;
}

/** Domains at once: each asks some twenty questions. */
const CONCURRENCY = 8;
const INTERVAL = SECOND;
/** A domain whose check throws (our fault, not its) must not be tried every second. */
const AFTER_FAULT = HOUR;

export function createRecheck(house: RecheckHouse): Recheck {
  const { tables, writer, clock, log, verify, provision } = house;
  const checks = new PQueue({ concurrency: CONCURRENCY });
  /** One at a time, apart from the checks: each waits for its turn in the key queue. */
  const provisions = new PQueue({ concurrency: 1 });
  const stopping = new AbortController();
  /** What is under way, by domain and kind of work. */
  const busy = new Set<string>();
  /** Lanes that could not be set up, and when they may be tried again. */
  const faulty = new Map<string, number>();
  let timer: NodeJS.Timeout | null = null;

  function take(queue: PQueue, id: string, work: () => Promise<unknown>, onFault: () => unknown): void {
    if (busy.has(id)) return;
    busy.add(id);
    const run = async () => {
      try {
        await work();
      } catch (error) {
        if (stopping.signal.aborted) return;
        log.error({ err: error, work: id }, 'work on a domain failed; it is tried again later');
        await onFault();
      } finally {
        busy.delete(id);
      }
    };
    queue
      .add(run)
      .catch((error: unknown) => log.error({ err: error, work: id }, 'work on a domain failed twice'));
  }

  function takeDue(): void {
    const now = clock.now();
    for (const { domain_id } of tables.domains.unprovisioned()) {
      if ((faulty.get(domain_id) ?? 0) > now) continue;
      take(
        provisions,
        `provision ${domain_id}`,
        () => provision(domain_id),
        () => faulty.set(domain_id, now + AFTER_FAULT),
      );
    }
    // Those under way are due still, and come first.
    for (const { domain_id } of tables.domains.dueForCheck(now, CONCURRENCY + busy.size)) {
      const options = { fresh: false, automatic: true, signal: stopping.signal };
      take(
        checks,
        `check ${domain_id}`,
        () => verify(domain_id, options),
        () => postpone(domain_id),
      );
    }
  }

  function postpone(domainId: string): Promise<void> {
    return writer.run(({ domains }) => {
      const row = domains.byId(domainId);
      if (row !== null) domains.update({ ...row, next_check_at: clock.now() + AFTER_FAULT });
    });
  }

  async function idle(): Promise<void> {
    await Promise.all([checks.onIdle(), provisions.onIdle()]);
  }

  function tick(): Promise<void> {
    if (!stopping.signal.aborted && checks.size === 0) takeDue();
    return idle();
  }

  return {
    tick,
    start: () => {
      timer ??= setInterval(() => void tick(), INTERVAL);
    },
    stop: async () => {
      if (timer !== null) clearInterval(timer);
      stopping.abort();
      checks.clear();
      provisions.clear();
      await idle();
    },
  };
}
