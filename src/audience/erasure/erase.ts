import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { isErased } from '../../events/erased.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { Context } from '../../store/context.ts';
import type { DaemonLock } from '../../store/database/database.ts';
import { createPortions } from '../../store/maintenance/portions.ts';
import { isClearable } from '../../store/maintenance/slack.ts';
import { runSlackPass } from '../../store/maintenance/slack-pass.ts';
import type { Tables } from '../../store/tables.ts';
import { findPerson, identifiersOf } from '../people.ts';
import { createErasureRun, type Eraser } from './erasers.ts';
import type { Person } from './scrub.ts';

/** How long a stop waits for erasures in progress; the next start continues those that take longer. */
const STOP_GRACE_MS = 3 * SECOND;

export interface ErasureOptions extends TracesOptions {
  /** Maximum time that a caller waits for the erasure, ms; default: until it is complete. */
  waitMs?: number | undefined;
}

/**
 * Erases a person: the profile, memberships and history immediately, then, in portions, all data in the tables that
 * declare it (store/data-policies). A row of `erasures` exists until the erasure is complete, so that it continues after
 * a crash. Suppressions, opt-outs and events remain, with the identifier only. Starts nothing: `erase` works without
 * `start`, whose loop continues erasures that an earlier process left. `stop` waits 3 s for those in progress, then ends
 * them after their current portion. `erasers` run in the order of the list.
 */
export function createErasure(
  context: Pick<Context, 'tables' | 'writer' | 'clock' | 'log'>,
  erasers: readonly Eraser[],
  { waitMs, ...options }: ErasureOptions,
) {
  const { tables, writer, clock, log } = context;
  /** Erasures in progress by number, which the loop skips. */
  const inProgress = new Map<number, Promise<boolean>>();
  const portions = createPortions({ writer, share: 'erasure' });
  const traces = createTraces(context, options);

  function finish(seq: number): Promise<boolean> {
    const running = inProgress.get(seq);
    if (running !== undefined) return running;
    const finishing = clear(seq).finally(() => inProgress.delete(seq));
    inProgress.set(seq, finishing);
    return finishing;
  }

  /** Resolves with false when a worker is sending one of the messages, or after `stop`. */
  async function clear(seq: number): Promise<boolean> {
    const row = tables.erasures.get(seq);
    if (row === null) return true;
    const run = createErasureRun(row, portions, clock.now());
    for (const erase of erasers) if (!(await erase(run))) return false;
    await writer.run((tx) => {
      tx.erasures.remove(seq);
      traces.request(tx);
    });
    log.info({ accountId: row.account_id }, 'contact erased');
    const cleared = clearTraces();
    // In a large file a pass takes minutes, and most erasures wait for the pass of the next hour. Only commands wait for
    // it, as their process ends afterwards.
    if (waitMs === undefined || (await traces.isShort())) await cleared;
    return true;
  }

  /** The person is removed from every table already: a failed pass leaves data in unused space of the file only. */
  async function clearTraces(): Promise<void> {
    await traces.clear().catch((error: unknown) => {
      log.warn({ err: error }, 'erased data not cleared from unused space of the database; trying again');
    });
  }

  async function sweep(): Promise<void> {
    const errors: unknown[] = [];
    for (const seq of tables.erasures.pending()) {
      // An erasure that fails must not delay the others.
      if (!inProgress.has(seq)) await finish(seq).catch((error: unknown) => errors.push(error));
    }
    await clearTraces();
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} erasures failed`);
  }

  const loop = createLoop({ name: 'erasures', run: sweep, intervalMs: MINUTE, log });
  const logFailure = (error: unknown) => log.error({ err: error }, 'erasure failed; trying again');

  /** Erases the person that `find` returns in the unit of work that begins the erasure. */
  async function eraseFound(
    accountId: string,
    find: (all: Tables) => Person | Refusal,
  ): Promise<{ complete: boolean } | Refusal> {
    const seq = await writer.run((tx): number | Refusal => {
      const person = find(tx);
      if (isRefusal(person)) return person;
      return tx.erasures.begin({
        account_id: accountId,
        person: JSON.stringify(person),
        created_at: clock.now(),
      });
    }, accountId);
    if (isRefusal(seq)) return seq;
    const finished = finish(seq);
    if (waitMs === undefined) return { complete: await finished };
    const complete = await Promise.race([finished, sleep(waitMs, null, { ref: false })]);
    if (complete === null) finished.catch(logFailure);
    return { complete: complete ?? false };
  }

  return {
    /**
     * Resolves when every table is cleared, or with `complete: false` when the rest follows in the background: a
     * message is being sent, or it takes longer than `waitMs`.
     */
    erase: (accountId: string, identifier: string): Promise<{ complete: boolean } | Refusal> =>
      eraseFound(accountId, (tx) => {
        const contact = findPerson(tx, accountId, identifier);
        return isRefusal(contact) ? contact : removeProfile(tx, contact);
      }),
    /**
     * Like `erase`, also for a person who is no contact: a recipient of transactional mail, or one who was erased
     * before. `address`: of the person, null if only the identifier is known. Refused when nothing is stored about the
     * person.
     */
    erasePerson: (
      accountId: string,
      identifier: string,
      address: string | null,
    ): Promise<{ complete: boolean } | Refusal> =>
      eraseFound(accountId, (tx) => {
        const contact = tx.contacts.byIdentifier(accountId, identifier);
        return contact === null
          ? findRecipient(tx, accountId, identifier, address)
          : removeProfile(tx, contact);
      }),
    /** Whether erased data is being cleared from the file: pages must not be moved then. */
    isClearingFile: traces.isClearing,
    /** Continues incomplete erasures, now and every minute. */
    start: loop.start,
    stop: async (): Promise<void> => {
      const stopped = loop.stop();
      const completed = () => Promise.allSettled([stopped, ...inProgress.values()]);
      await Promise.race([completed(), sleep(STOP_GRACE_MS, null, { ref: false })]);
      portions.stop();
      await traces.stop();
      await completed();
    },
  };
}

export type Erasure = ReturnType<typeof createErasure>;

/** Removes the contact with its memberships and history. Returns the person to erase. */
function removeProfile(tables: Tables, contact: KnownContact): Person {
  tables.consents.removeAll(contact.seq);
  tables.subscriptions.removeOfContact(contact.seq);
  tables.sequencePeople.removeOfContact(contact.seq);
  tables.contacts.remove(contact.seq);
  return personOf(contact);
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

/** The person of an identifier that no contact has. Only the address is known; a name is not. */
function findRecipient(
  { erasures, suppressions, suppressionRemovals }: Tables,
  accountId: string,
  identifier: string,
  address: string | null,
): Person | Refusal {
  const all = { after: 0, before: Number.MAX_SAFE_INTEGER, limit: 1 };
  const newest = erasures.newestMessage(accountId, identifier, all.before);
  const suppressed = suppressions.of(accountId, identifier);
  const isStored =
    newest !== null ||
    suppressed.length > 0 ||
    suppressionRemovals.of(accountId, identifier).length > 0 ||
    erasures.eventsAbout(accountId, identifier, all).length > 0;
  if (!isStored)
    return refuse(
      'CONTACT_NOT_FOUND',
      `There is no contact ${identifier}, and no message, event or suppression of this recipient`,
    );
  const stored = newest === null || isErased(newest) ? null : newest.recipient;
  const addresses = [address, stored, ...suppressed.map(({ email }) => email)];
  return {
    identifiers: [identifier],
    addresses: addresses.filter((known) => known !== null),
    phone: null,
    fullName: null,
  };
}

const SMALL_FILE_BYTES = 64 * 1024 * 1024;
const PASS_INTERVAL_MS = HOUR;
/** Settings: numbers of erasures, so that one that ends during a pass makes another pass due. */
const REQUESTED = 'traces-wanted';
const CLEARED = 'traces-cleared';
const CLEARED_AT = 'traces-cleared-at';

const ALREADY_HELD: DaemonLock = { release: () => {} };

interface TracesOptions {
  /**
   * Acquires the lock for clearing the file; null while a daemon in another process is running, which then clears it
   * within a minute. Default: no lock, for the daemon, which holds it already.
   */
  claimFile?: () => DaemonLock | null;
  /** Program of the thread that clears the file; default: the calling thread. */
  slackScript?: URL | undefined;
  /** Maximum size at which a pass follows each erasure, which waits for it. */
  smallFileBytes?: number;
}

/**
 * The last step of an erasure: removes deleted data from the file itself. Deleted rows are overwritten with zeros, but
 * copies of them can be in the unused space of pages and in the write-ahead log. A pass through the file clears both
 * (`store/maintenance/slack`) while the database is in use. In a small file it follows each erasure; in a large one it
 * runs at most every hour, for all erasures since the last pass. Starts nothing: passes run in `clear` only. Whether
 * one is due is stored in `settings`, so that it survives a restart; after `stop` none begins. `clear` rejects with the
 * error of its pass, which stays due.
 */
function createTraces(
  { tables, writer, clock, log }: Pick<Context, 'tables' | 'writer' | 'clock' | 'log'>,
  { claimFile, slackScript, smallFileBytes = SMALL_FILE_BYTES }: TracesOptions,
) {
  const stopping = new AbortController();
  let last: Promise<void> = Promise.resolve();
  let isClearing = false;

  const isSmall = async () => (await stat(tables.erasures.path())).size <= smallFileBytes;
  const settingOf = (name: string) => Number(tables.settings.get(name) ?? 0);

  async function clearIfDue(): Promise<void> {
    const requested = settingOf(REQUESTED);
    if (stopping.signal.aborted || requested === settingOf(CLEARED)) return;
    const file = tables.erasures.path();
    if (!(await isSmall()) && Math.abs(clock.now() - settingOf(CLEARED_AT)) < PASS_INTERVAL_MS) return;
    const claim = claimFile === undefined ? ALREADY_HELD : claimFile();
    if (claim === null) return;
    try {
      await clearFile(file, requested);
    } finally {
      claim.release();
    }
  }

  async function clearFile(file: string, requested: number): Promise<void> {
    if (!isClearable(file)) {
      log.warn(
        'the database is too large to clear erased data from unused space while the daemon runs: stop it and run "postrider contacts compact"',
      );
      await writeCleared(requested);
      return;
    }
    isClearing = true;
    const began = performance.now();
    try {
      const { outcome, pages } = await runSlackPass(file, { script: slackScript, signal: stopping.signal });
      const durationMs = Math.round(performance.now() - began);
      if (outcome === 'cleared') {
        await writeCleared(requested);
        log.info({ pages, durationMs }, 'erased data cleared from unused space of the database');
      } else if (outcome === 'busy') {
        log.warn(
          { durationMs },
          'erased data not cleared from the database because another process is reading it; trying again',
        );
      }
    } finally {
      isClearing = false;
    }
  }

  async function writeCleared(requested: number): Promise<void> {
    await writer.run((tx) => {
      tx.settings.put(CLEARED, String(requested));
      tx.settings.put(CLEARED_AT, String(clock.now()));
    });
  }

  return {
    /** Records that a pass is due; called in the unit of work that ends an erasure. */
    request: (tx: Tables): void => tx.settings.put(REQUESTED, String(settingOf(REQUESTED) + 1)),
    /** Runs the pass if one is due. One at a time: a concurrent call waits for the next one. */
    clear: (): Promise<void> => {
      // The caller that requested the previous pass handles its error.
      last = last.catch(() => {}).then(clearIfDue);
      return last;
    },
    /** Whether the file is small, so that a pass is short and callers may wait for it. */
    isShort: isSmall,
    /** Whether a pass is running: pages must not be moved then. */
    isClearing: (): boolean => isClearing,
    /** Aborts the pass in progress; it runs again after the next start. */
    stop: async (): Promise<void> => {
      stopping.abort();
      await last.catch(() => {});
    },
  };
}
