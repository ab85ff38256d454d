import { OperatorFault } from '../../core/operator-fault.ts';

/*
 * Classification of database and file errors: which come from the machine (a full disk, a lock held by another process)
 * and not from the program, how they are described to callers, and what the operator can do.
 */

/** An OperatorFault of the data directory, the database or the key file. */
export class StoreFault extends OperatorFault {}

/** Another daemon has taken over the work of this one, which must send nothing more. */
export class Superseded extends OperatorFault {}

/** The database did not run this unit of work; nothing of it was stored unless `reason` is `lost`. */
export class StoreUnavailable extends Error {
  readonly reason: 'busy' | 'closing' | 'lost';

  constructor(reason: StoreUnavailable['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** An error in work that is done in units, of which the first were committed: what they did remains. */
export class PartlyDone extends Error {
  /** What was done before the error, as a clause: `300 rows were imported`. */
  readonly done: string;

  constructor(done: string, cause: unknown) {
    super(`${done}, then an error occurred: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.done = done;
  }
}

/** Awaits a unit of such work; `done`: what earlier ones did, null for nothing. */
export async function unitAfter<T>(done: string | null, unit: Promise<T>): Promise<T> {
  try {
    return await unit;
  } catch (error) {
    throw done === null ? error : new PartlyDone(done, error);
  }
}

/** `3 messages were changed; …`; null for none. */
export function partlyDone(count: number, noun: string, done: string): string | null {
  if (count === 0) return null;
  return `${count === 1 ? `1 ${noun} was` : `${count} ${noun}s were`} ${done}; it may be repeated`;
}

/**
 * A read was not run to its end. too-broad: it exceeded its time budget. busy: too many reads wait. lost: the thread
 * that ran it ended. closing: the service is shutting down.
 */
export class ReadRejected extends Error {
  readonly reason: 'too-broad' | 'busy' | 'lost' | 'closing';

  constructor(reason: ReadRejected['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface StorageFailure {
  /** Stable name, for grouping log lines. */
  kind: 'busy' | 'full' | 'io' | 'read-only' | 'corrupt' | 'denied' | 'memory' | 'closing' | 'lost';
  /** A clause for API clients: names no file. */
  reason: string;
  /** What the operator should do, as a sentence. */
  remedy: string;
}

const FAILURES: Record<StorageFailure['kind'], Omit<StorageFailure, 'kind'>> = {
  busy: {
    reason: 'another process holds the lock of the database',
    remedy: 'Find the process that holds the lock (fuser or lsof shows it), stop it and try again.',
  },
  full: {
    reason: 'the disk is full',
    remedy: 'Free space (or inodes) on this file system and try again.',
  },
  io: {
    reason: 'the disk reports an I/O error',
    remedy: 'Check the disk and the kernel log (dmesg); if it is failing, restore the data on another one.',
  },
  'read-only': {
    reason: 'the database is read-only',
    remedy: 'Mount the file system read-write and make the file writable for the user that runs postrider.',
  },
  corrupt: {
    reason: 'the database file is damaged',
    remedy:
      'Keep a copy of the damaged file, then restore a backup or salvage what is readable with "sqlite3 FILE .recover".',
  },
  denied: {
    reason: 'the database file cannot be opened',
    remedy: 'Check that the directory exists and that the user that runs postrider may read and write it.',
  },
  memory: {
    reason: 'the database is out of memory',
    remedy: 'Give the process more memory.',
  },
  closing: { reason: 'the service is shutting down', remedy: 'Start postrider again.' },
  lost: {
    reason: 'the disk does not confirm what is written',
    remedy: 'Check the disk and the kernel log (dmesg), then start postrider again.',
  },
};

/** SQLite's result codes by prefix: extended codes such as `SQLITE_IOERR_FSYNC` begin with the primary one. */
const SQLITE_KINDS: readonly (readonly [prefix: string, kind: StorageFailure['kind']])[] = [
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_LOCKED', 'busy'],
  ['SQLITE_PROTOCOL', 'busy'],
  ['SQLITE_FULL', 'full'],
  ['SQLITE_IOERR_NOMEM', 'memory'],
  // The shared memory of the write-ahead log cannot grow.
  ['SQLITE_IOERR_SHMSIZE', 'full'],
  ['SQLITE_IOERR', 'io'],
  ['SQLITE_READONLY', 'read-only'],
  ['SQLITE_CORRUPT', 'corrupt'],
  ['SQLITE_NOTADB', 'corrupt'],
  ['SQLITE_CANTOPEN', 'denied'],
  ['SQLITE_PERM', 'denied'],
  ['SQLITE_NOMEM', 'memory'],
];

const SYSTEM_KINDS: Readonly<Record<string, StorageFailure['kind']>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EIO: 'io',
  EROFS: 'read-only',
};

/** Codes that concern the file only where a file is being opened. */
const OPENING_KINDS: Readonly<Record<string, StorageFailure['kind']>> = {
  EACCES: 'denied',
  EPERM: 'denied',
  ENOENT: 'denied',
  ENOTDIR: 'denied',
};

/** Null when the error does not come from storage. */
export function storageFailure(error: unknown): StorageFailure | null {
  if (error instanceof PartlyDone) return storageFailure(error.cause);
  if (error instanceof StoreUnavailable) return failureOf(error.reason);
  const code = codeOf(error);
  const kind = SQLITE_KINDS.find(([prefix]) => code.startsWith(prefix))?.[1] ?? SYSTEM_KINDS[code];
  return kind === undefined ? null : failureOf(kind);
}

/** Whether the error means that another connection holds a lock: waiting may help. */
export function isBusy(error: unknown): boolean {
  return storageFailure(error)?.kind === 'busy';
}

/**
 * The error of opening `file` as a StoreFault that names the file and the remedy. Errors that do not come from storage,
 * and those that name their remedy already, are returned unchanged.
 */
export function openingFault(file: string, error: unknown): unknown {
  const opening = OPENING_KINDS[codeOf(error)];
  return opening === undefined ? usingFault(file, error) : faultOf(file, error, failureOf(opening));
}

/** The same where errors can have other sources: only codes that always come from storage become a StoreFault. */
export function usingFault(file: string, error: unknown): unknown {
  const failure = error instanceof OperatorFault ? null : storageFailure(error);
  return failure === null ? error : faultOf(file, error, failure);
}

function faultOf(file: string, error: unknown, { remedy }: StorageFailure): StoreFault {
  const [cause, done] =
    error instanceof PartlyDone ? [error.cause, `. Before that, ${error.done}`] : [error, ''];
  return new StoreFault(`${file} cannot be used: ${detailOf(cause)}. ${remedy.replace(/\.$/, '')}${done}.`, {
    cause: error,
  });
}

function failureOf(kind: StorageFailure['kind']): StorageFailure {
  return { kind, ...FAILURES[kind] };
}

/** `SQLITE_FULL: database or disk is full`; the messages of system calls begin with their code already. */
function detailOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  return message.startsWith(code) ? message : `${code}: ${message}`;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
