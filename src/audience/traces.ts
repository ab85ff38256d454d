import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, HOUR, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { DaemonLock } from '../store/database.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import type { Person } from './scrub.ts';

/**
 * The last step of an erasure: what was deleted is to be gone from the file itself. Deleted rows are zeroed
 * where they stood, but the write-ahead log still has the pages as they were, and when a page was split
 * earlier, copies of its rows may have stayed in a neighbour's free space. So the log is emptied, the file is
 * read through, and if something is found, it is rewritten as a whole. Everybody waits for that, so it is done
 * to small files only, and seldom; a large one the operator rewrites, with `contacts compact`.
 */
export interface TraceHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  log: Log;
  /**
   * Takes the right to rewrite the file; null while a daemon in another process is running, which then does it
   * itself within a minute. Default: for the daemon, who has the right.
   */
  claimFile?: () => DaemonLock | null;
}

const REWRITE_BYTES = 64 * 1024 * 1024;
/** Addresses may be in the file rightly, of another account say: that is no reason to rewrite it all the time. */
const REWRITE_EVERY = HOUR;
const LAST_REWRITE = 'rewritten-at';
const REWRITE_WANTED = 'rewrite-wanted';

const TOO_LARGE =
  'free space of the database may hold copies of what was erased: "postrider contacts compact" clears it while the daemon is stopped';

const CHUNK = 1024 * 1024;
const TRIES = 20;

export async function clearTraces(house: TraceHouse, person: Person): Promise<void> {
  const { tables, writer, log } = house;
  await emptyLog(house);
  const needles = [...person.addresses, ...(person.phone === null ? [] : [person.phone])].map((text) =>
    Buffer.from(text),
  );
  const path = tables.erasures.path();
  const { size } = await stat(path);
  if (size > REWRITE_BYTES) {
    log.info({ bytes: size }, TOO_LARGE);
    return;
  }
  if (!(await holdsAny(path, needles))) return;
  await writer.run((all) => all.settings.put(REWRITE_WANTED, 'yes'));
  await rewriteIfWanted(house);
}

/** Rewrites the file when traces were found in it, not too often. */
export async function rewriteIfWanted(house: TraceHouse): Promise<void> {
  const { tables, writer, clock, log } = house;
  const last = Number(tables.settings.get(LAST_REWRITE) ?? 0);
  if (tables.settings.get(REWRITE_WANTED) !== 'yes' || clock.now() - last < REWRITE_EVERY) return;
  const claim = house.claimFile === undefined ? HELD_ALREADY : house.claimFile();
  if (claim === null) return;
  try {
    tables.erasures.rewrite();
  } finally {
    claim.release();
  }
  await writer.run((all) => {
    all.settings.put(REWRITE_WANTED, 'no');
    all.settings.put(LAST_REWRITE, String(clock.now()));
  });
  await emptyLog(house);
  log.info('the database was rewritten, so that nothing of erased people is left in its free space');
}

const HELD_ALREADY: DaemonLock = { release: () => {} };

/** A reader in another process may be in the way for a moment. */
async function emptyLog({ writer, log }: TraceHouse): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    if (await writer.emptyLog()) return;
    await sleep(SECOND / 10);
  }
  log.warn('the write-ahead log could not be emptied after an erasure: another process is reading it');
}

/** Reads the file through, a chunk at a time. */
async function holdsAny(path: string, needles: Buffer[]): Promise<boolean> {
  const handle = await open(path);
  try {
    const { size } = await handle.stat();
    const overlap = Math.max(0, ...needles.map(({ length }) => length - 1));
    const chunk = Buffer.alloc(CHUNK);
    for (let at = 0; at < size; at += CHUNK - overlap) {
      const { bytesRead } = await handle.read(chunk, 0, CHUNK, at);
      const bytes = chunk.subarray(0, bytesRead);
      if (needles.some((needle) => bytes.includes(needle))) return true;
    }
    return false;
  } finally {
    await handle.close();
  }
}
