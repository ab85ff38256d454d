import { stat } from 'node:fs/promises';
import { type Clock, HOUR } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { DaemonLock } from '../../store/database.ts';
import { isClearable } from '../../store/maintenance/slack.ts';
import { runSlackPass } from '../../store/maintenance/slack-pass.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';

/**
 * The last step of an erasure: what was deleted is to be gone from the file itself. Deleted rows are zeroed where they
 * stood, but copies of them can be in the unused space of pages and in the write-ahead log. A pass through the file
 * clears both (`store/maintenance/slack`) while everybody goes on. In a small file it follows each erasure; in a large one it runs
 * at most every hour, for all erasures since the last.
 */
export interface Traces {
  /** Notes that a pass is due. To be called in the unit of work that ends an erasure. */
  want(tables: Tables): void;
  /** Runs the pass that is due, if its time has come. One at a time: a call meanwhile waits for the next one. */
  clear(): Promise<void>;
  /** Whether a pass takes a moment only, because the file is small: then callers may wait for it. */
  isShort(): Promise<boolean>;
  /** Whether a pass is under way: pages must not be moved then. */
  isClearing(): boolean;
  /** Ends the pass under way; it is begun anew by the next start. */
  stop(): Promise<void>;
}

export interface TraceHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  log: Log;
  /**
   * Takes the right to clear the file; null while a daemon in another process is running, which then does it itself
   * within a minute. Default: for the daemon, who has the right.
   */
  claimFile?: () => DaemonLock | null;
  /** Program of the thread that clears the file; default: the calling thread does. */
  slackScript?: URL | undefined;
  /** Up to this size a pass follows each erasure, which waits for it. */
  smallFileBytes?: number;
}

const SMALL_FILE_BYTES = 64 * 1024 * 1024;
const PASS_INTERVAL_MS = HOUR;
/** Counts erasures, so that one that ends during a pass makes another one due. */
const WANTED = 'traces-wanted';
const CLEARED = 'traces-cleared';
const CLEARED_AT = 'traces-cleared-at';

const HELD_ALREADY: DaemonLock = { release: () => {} };

export function createTraces(house: TraceHouse): Traces {
  const { tables, writer, clock, log, claimFile, slackScript, smallFileBytes = SMALL_FILE_BYTES } = house;
  const stopping = new AbortController();
  let last: Promise<void> = Promise.resolve();
  let isClearing = false;

  const isSmall = async () => (await stat(tables.erasures.path())).size <= smallFileBytes;
  const numberOf = (name: string) => Number(tables.settings.get(name) ?? 0);

  async function clearIfDue(): Promise<void> {
    const wanted = numberOf(WANTED);
    if (stopping.signal.aborted || wanted === numberOf(CLEARED)) return;
    const file = tables.erasures.path();
    if (!(await isSmall()) && Math.abs(clock.now() - numberOf(CLEARED_AT)) < PASS_INTERVAL_MS) return;
    const claim = claimFile === undefined ? HELD_ALREADY : claimFile();
    if (claim === null) return;
    try {
      await clearFile(file, wanted);
    } finally {
      claim.release();
    }
  }

  async function clearFile(file: string, wanted: number): Promise<void> {
    if (!isClearable(file)) {
      log.warn(
        'the database is too large for clearing erased data from unused space while the daemon runs: run "postrider contacts compact" while it is stopped',
      );
      await writeCleared(wanted);
      return;
    }
    isClearing = true;
    const began = performance.now();
    try {
      const { outcome, pages } = await runSlackPass(file, { script: slackScript, signal: stopping.signal });
      const durationMs = Math.round(performance.now() - began);
      if (outcome === 'cleared') {
        await writeCleared(wanted);
        log.info({ pages, durationMs }, 'erased data was cleared from unused space of the database');
      } else if (outcome === 'busy') {
        log.warn(
          { durationMs },
          'erased data could not be cleared from the database, as another process is reading it; trying again',
        );
      }
    } finally {
      isClearing = false;
    }
  }

  async function writeCleared(wanted: number): Promise<void> {
    await writer.run((all) => {
      all.settings.put(CLEARED, String(wanted));
      all.settings.put(CLEARED_AT, String(clock.now()));
    });
  }

  return {
    want: (all) => all.settings.put(WANTED, String(numberOf(WANTED) + 1)),
    clear: () => {
      last = last.catch(() => {}).then(clearIfDue);
      return last;
    },
    isShort: isSmall,
    isClearing: () => isClearing,
    stop: async () => {
      stopping.abort();
      await last.catch(() => {});
    },
  };
}
