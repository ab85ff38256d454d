import { type Clock, MINUTE } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { KnownContact } from '../store/contacts.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { type Eraser, erasingOf } from './erasers.ts';
import { findPerson, identifiersOf } from './people.ts';
import type { Person } from './scrub.ts';
import { clearTraces, rewriteIfWanted, type TraceHouse } from './traces.ts';

/**
 * Erases a person: their profile, memberships and history at once, then, portion by portion, every trace in
 * messages, events and stored answers, so that nobody waits long for the database. What is still to be done is
 * a row of its own until it is done, so a crash in the middle loses nothing. Suppressions, opt-outs and events
 * stay, by the identifier alone.
 */
export interface Erasure {
  /** Resolves when all is cleared, or all but what is being sent at this moment (`complete: false`). */
  erase(accountId: string, identifier: string): Promise<{ complete: boolean } | Refusal>;
  /** Goes on with what was left, now and every minute. */
  start(): void;
  stop(): Promise<void>;
}

export interface ErasureHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  log: Log;
  erasers: readonly Eraser[];
  claimFile?: NonNullable<TraceHouse['claimFile']>;
  pauseReads?: NonNullable<TraceHouse['pauseReads']>;
}

export function createErasure(house: ErasureHouse): Erasure {
  const { tables, writer, clock, log, erasers } = house;
  let timer: NodeJS.Timeout | null = null;
  let sweeping: Promise<void> = Promise.resolve();
  /** Erasures at work: the sweep leaves them alone. */
  const busy = new Set<number>();

  /** False when something is in a worker's hands. */
  async function finish(seq: number): Promise<boolean> {
    busy.add(seq);
    try {
      const row = tables.erasures.get(seq);
      if (row === null) return true;
      const erasing = erasingOf(row, clock.now());
      for (const eraser of erasers) {
        for (let step = 'more'; step !== 'done'; ) {
          step = await writer.run((all) => eraser.step(all, erasing));
          if (step === 'waiting') return false;
        }
      }
      await writer.run((all) => all.erasures.remove(seq));
      log.info({ accountId: row.account_id }, 'a person was erased');
      await clearTraces(house, erasing.person).catch((error: unknown) => {
        // The person is gone from every table; what may be left is out of anybody's reach but a file reader's.
        log.warn({ err: error }, 'free space could not be looked through after an erasure');
      });
      return true;
    } finally {
      busy.delete(seq);
    }
  }

  async function sweep(): Promise<void> {
    for (const seq of tables.erasures.pending()) if (!busy.has(seq)) await finish(seq);
    await rewriteIfWanted(house);
  }

  const sweepLogged = () => {
    sweeping = sweeping
      .then(sweep)
      .catch((error: unknown) => log.error({ err: error }, 'an erasure could not go on; it is tried again'));
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
      return { complete: await finish(seq) };
    },
    start: () => {
      sweepLogged();
      timer = setInterval(sweepLogged, MINUTE);
      timer.unref();
    },
    stop: async () => {
      if (timer !== null) clearInterval(timer);
      await sweeping;
    },
  };
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
