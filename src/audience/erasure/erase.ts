import { setTimeout as sleep } from 'node:timers/promises';
import { MINUTE, SECOND } from '../../core/clock.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import { createPortions } from '../../store/maintenance/portions.ts';
import { findPerson, identifiersOf } from '../people.ts';
import { type Eraser, erasingOf, type Step } from './erasers.ts';
import type { Person } from './scrub.ts';
import { createTraces, type TraceHouse } from './traces.ts';

/**
 * Erases a person: their profile, memberships and history immediately, then, in portions, every trace in messages,
 * events and stored answers, so that nobody waits long for the database. What is still to be done is a row of its own
 * until it is done: after a crash the next start continues. Suppressions, opt-outs and events stay, by the identifier
 * alone.
 */
export interface Erasure {
  /**
   * Resolves when every table is cleared, or when the rest follows without the caller (`complete: false`): something is
   * being sent at this moment, or it takes longer than `waitMs`.
   */
  erase(accountId: string, identifier: string): Promise<{ complete: boolean } | Refusal>;
  /** Continues what was left, now and every minute. */
  start(): void;
  stop(): Promise<void>;
  /** Whether the file is being cleared of what was erased: pages must not be moved then. */
  isClearingFile(): boolean;
}

/** How long a stop waits for erasures under way; the next start continues those that take longer. */
const STOP_GRACE_MS = 3 * SECOND;

export interface ErasureHouse extends TraceHouse {
  erasers: readonly Eraser[];
  /** How long a caller waits for traces to be cleared, ms; default: until they are. */
  waitMs?: number | undefined;
  claimFile?: NonNullable<TraceHouse['claimFile']>;
}

export function createErasure(house: ErasureHouse): Erasure {
  const { tables, writer, clock, log, erasers, waitMs } = house;
  let timer: NodeJS.Timeout | null = null;
  let sweeping: Promise<void> = Promise.resolve();
  /** Erasures at work, by number: the sweep leaves them alone. */
  const busy = new Map<number, Promise<boolean>>();
  const portions = createPortions({ writer, share: 'erasure' });
  const traces = createTraces(house);

  function finish(seq: number): Promise<boolean> {
    const finishing = clear(seq).finally(() => busy.delete(seq));
    busy.set(seq, finishing);
    return finishing;
  }

  /** False when something is in a worker's hands, or when it was stopped. */
  async function clear(seq: number): Promise<boolean> {
    const row = tables.erasures.get(seq);
    if (row === null) return true;
    const erasing = erasingOf(row, clock.now());
    for (const eraser of erasers) {
      let step: Step = 'more';
      const stepped = await portions.run(
        (all, rows, isOver) => {
          const next = eraser.step(all, erasing, { rows, isOver });
          return { rows, isDone: next !== 'more', next };
        },
        ({ next }) => {
          step = next;
        },
      );
      if (!stepped || isWaiting(step)) return false;
    }
    await writer.run((all) => {
      all.erasures.remove(seq);
      traces.want(all);
    });
    log.info({ accountId: row.account_id }, 'contact erased');
    const cleared = clearTraces();
    // In a large file a pass takes minutes, and most erasures wait for the next hour's. No caller waits for it, except a
    // command, which ends the process afterwards.
    if (waitMs === undefined || (await traces.isShort())) await cleared;
    return true;
  }

  /** The person is gone from every table: what a failed pass leaves only a reader of the file's bytes finds. */
  async function clearTraces(): Promise<void> {
    await traces.clear().catch((error: unknown) => {
      log.warn(
        { err: error },
        'erased data could not be cleared from unused space of the database; trying again',
      );
    });
  }

  async function sweep(): Promise<void> {
    for (const seq of tables.erasures.pending()) if (!busy.has(seq)) await finish(seq);
    await clearTraces();
  }

  const logFailure = (error: unknown) => log.error({ err: error }, 'erasure failed; trying again');

  const sweepLogged = () => {
    sweeping = sweeping.then(sweep).catch(logFailure);
  };

  return {
    erase: async (accountId, identifier) => {
      const seq = await writer.run((all): number | Refusal => {
        const contact = findPerson(all, accountId, identifier);
        if (isRefusal(contact)) return contact;
        const row = {
          account_id: accountId,
          person: JSON.stringify(personOf(contact)),
          created_at: clock.now(),
        };
        const begun = all.erasures.begin(row);
        all.subscriptions.removeOfContact(contact.seq);
        all.consents.removeAll(contact.seq);
        all.contacts.remove(contact.seq);
        return begun;
      });
      if (isRefusal(seq)) return seq;
      const finished = finish(seq);
      if (waitMs === undefined) return { complete: await finished };
      const complete = await Promise.race([finished, sleep(waitMs, null, { ref: false })]);
      if (complete === null) finished.catch(logFailure);
      return { complete: complete ?? false };
    },
    isClearingFile: traces.isClearing,
    start: () => {
      sweepLogged();
      timer = setInterval(sweepLogged, MINUTE);
      timer.unref();
    },
    stop: async () => {
      if (timer !== null) clearInterval(timer);
      const underWay = () => Promise.allSettled([sweeping, ...busy.values()]);
      await Promise.race([underWay(), sleep(STOP_GRACE_MS, null, { ref: false })]);
      portions.stop();
      await traces.stop();
      await underWay();
    },
  };
}

function isWaiting(step: Step): boolean {
  return step === 'waiting';
}

function personOf(contact: KnownContact): Person {
  const { first_name: first, last_name: last } = contact;
  return {
    identifiers: identifiersOf(contact),
    addresses: contact.email === null ? [] : [contact.email],
    phone: contact.phone,
    fullName: first === null || last === null ? null : `${first} ${last}`,
  };
}
