import { stat } from 'node:fs/promises';
import { HOUR } from '../../core/clock.ts';
import type { Context } from '../../store/context.ts';
import type { DaemonLock } from '../../store/database/database.ts';
import { isClearable } from '../../store/maintenance/slack.ts';
import { runSlackPass } from '../../store/maintenance/slack-pass.ts';
import type { Tables } from '../../store/tables.ts';

const SMALL_FILE_BYTES = 64 * 1024 * 1024;
const PASS_INTERVAL_MS = HOUR;
/** Settings: numbers of erasures, so that one that ends during a pass makes another pass due. */
const REQUESTED = 'traces-wanted';
const CLEARED = 'traces-cleared';
const CLEARED_AT = 'traces-cleared-at';

const ALREADY_HELD: DaemonLock = { release: () => {} };

export interface TracesOptions {
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
export function createTraces(
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
    await writer.run((all) => {
      all.settings.put(CLEARED, String(requested));
      all.settings.put(CLEARED_AT, String(clock.now()));
    });
  }

  return {
    /** Records that a pass is due; called in the unit of work that ends an erasure. */
    request: (all: Tables): void => all.settings.put(REQUESTED, String(settingOf(REQUESTED) + 1)),
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

export type Traces = ReturnType<typeof createTraces>;
