import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MINUTE, SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import { errorCode } from '../../core/errors.ts';
import { createLru } from '../../core/lru.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { type BackgroundImportRow, IMPORT_FOLDER } from '../../store/contacts/background-imports.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';
import type { Actor } from '../contacts.ts';
import type { AddressChecks, AddressRun } from '../hygiene/checks.ts';
import {
  type HygieneMode,
  type ImportBatch,
  type ImportCounts,
  type Importer,
  type ImportHygiene,
  MAX_REJECTED,
  NO_COUNTS,
  type RejectedRow,
  TURN_OVER,
} from './import.ts';
import { MAX_IGNORED, type RowOptions } from './rows.ts';
import { bytesOfFile, type ImportFormat, type ImportSource, openSource } from './source.ts';

/*
 * Imports that continue without the caller. An upload is stored as a file, and accepted when file and row are on disk. One
 * import runs at a time, in turns of a few seconds if other accounts wait. The position is committed with the rows, so
 * that an import continues after a restart, even after SIGKILL, and every row is imported once.
 */

export interface UploadedImport {
  accountId: string;
  groupId: string | null;
  actor: Actor;
  format: ImportFormat;
  /** Fields by the names of columns; see `RowOptions`. */
  columns: ReadonlyMap<string, string | null> | undefined;
  /** Name that the caller gives the file. */
  fileName: string | null;
  hygiene: HygieneMode;
  bytes: AsyncIterable<Buffer>;
}

/** Counts, rejected rows and columns of an import. */
export interface ImportState {
  counts: ImportCounts;
  /** The first MAX_REJECTED. */
  rejected: RejectedRow[];
  /** Columns without a field. */
  ignored: string[];
  /** What the addresses have; null: nothing was examined. */
  hygiene: ImportHygiene | null;
}

/** Larger files are imported with the command line, which needs no copy of them. */
export const MAX_FILE_BYTES = 512 * 1024 * 1024;
/** Imports of an account that wait or run, uploads in progress included. */
export const MAX_UNFINISHED = 5;
/** An import that runs gives way to those of other accounts after this time. */
const FAIR_TURN_MS = 5 * SECOND;
/** How long all batches of an import together wait for look-ups of domains. */
const LOOKUP_WAIT_MS = 5 * MINUTE;
/** Imports whose mailboxes are remembered between their turns. */
const MAX_ADDRESS_RUNS = 4;
/** How often imports of accounts that were enabled again are found; each upload wakes the loop. */
const INTERVAL_MS = MINUTE;

/** Ends a unit of work without its rows. */
const ENDED = refuse('INVALID_STATE', 'the import has ended, or its account is disabled');

/**
 * Starts nothing: `add` stores uploads before `start`, too. The loop removes files without an unfinished import once,
 * then runs the imports of active accounts in turns, after each upload and every minute.
 */
export function createBackgroundImports(
  { tables, writer, clock, ids, log }: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids' | 'log'>,
  {
    importer,
    checks,
    dataDir,
    storageRefusal,
    turnMs,
  }: {
    importer: Importer;
    checks: AddressChecks;
    /** The data directory. */
    dataDir: string;
    /** Why nothing more is stored for an account; null: it is. `UNAVAILABLE`: for no account at present. */
    storageRefusal(accountId: string): Refusal | null;
    /** Default: FAIR_TURN_MS. */
    turnMs?: number;
  },
) {
  const directory = join(dataDir, IMPORT_FOLDER);
  const fileOf = (importId: string) => join(directory, importId);
  /** Uploads in progress: the accounts by the ids of the imports. */
  const uploads = new Map<string, string>();
  let lastAccount = '';
  /** What is remembered between the turns of imports: the mailboxes that were found. */
  const addressRuns = createLru<AddressRun>(MAX_ADDRESS_RUNS);
  const stopping = new AbortController();
  let areOrphansRemoved = false;
  let running: { importId: string; abort: AbortController } | null = null;

  /**
   * Stores an upload and runs it later. Refuses a file without a valid header (`VALIDATION_ERROR`), one of more than
   * MAX_FILE_BYTES (`PAYLOAD_TOO_LARGE`), more than MAX_UNFINISHED imports of an account (`LIMIT_REACHED`), and all for
   * which there is no storage. Rejects when the upload ends early; nothing is stored then.
   */
  async function add(upload: UploadedImport): Promise<BackgroundImportRow | Refusal> {
    const { accountId } = upload;
    const others = [...uploads.values()].filter((owner) => owner === accountId).length;
    if (tables.backgroundImports.countUnfinished(accountId) + others >= MAX_UNFINISHED)
      return refuse(
        'LIMIT_REACHED',
        `${MAX_UNFINISHED} imports of this account have not ended: wait for one of them, or cancel it`,
      );
    const importId = ids.make('import');
    uploads.set(importId, accountId);
    let isStored = false;
    try {
      const bytes = await storeFile(upload, importId);
      if (isRefusal(bytes)) return bytes;
      const ignored = await checkedHeader(fileOf(importId), upload);
      if (isRefusal(ignored)) return ignored;
      await writer.run(
        (tx) =>
          tx.backgroundImports.add({
            import_id: importId,
            account_id: accountId,
            group_id: upload.groupId,
            file_name: upload.fileName,
            format: upload.format,
            columns: upload.columns === undefined ? null : JSON.stringify([...upload.columns]),
            actor: JSON.stringify(upload.actor),
            bytes,
            counts: JSON.stringify(NO_COUNTS),
            ignored: JSON.stringify(ignored),
            hygiene_mode: upload.hygiene,
            created_at: clock.now(),
          }),
        accountId,
      );
      isStored = true;
      loop.wake();
      return existing(accountId, importId);
    } finally {
      if (!isStored) await rm(fileOf(importId), { force: true });
      uploads.delete(importId);
    }
  }

  /** Writes an upload to its file; returns its length when it is on disk. */
  async function storeFile(
    { accountId, bytes }: UploadedImport,
    importId: string,
  ): Promise<number | Refusal> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = await open(fileOf(importId), 'wx', 0o600);
    let length = 0;
    try {
      for await (const chunk of bytes) {
        length += chunk.length;
        if (length > MAX_FILE_BYTES)
          return refuse(
            'PAYLOAD_TOO_LARGE',
            `The file has more than ${MAX_FILE_BYTES / 2 ** 20} MiB: split it, or import it with postrider contacts import`,
          );
        const refusal = storageRefusal(accountId);
        if (refusal !== null) return refusal;
        await file.writeFile(chunk);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    const folder = await open(directory);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    return length;
  }

  function existing(accountId: string, importId: string): BackgroundImportRow | Refusal {
    return (
      tables.backgroundImports.get(accountId, importId) ??
      refuse('NOT_FOUND', `There is no import ${importId}: only the newest imports are stored`)
    );
  }

  /** Runs imports until none is left. */
  async function run(): Promise<void> {
    if (!areOrphansRemoved) await removeOrphans();
    areOrphansRemoved = true;
    for (let job = next(); job !== null && !stopping.signal.aborted; job = next()) {
      // All imports wait for storage; the loop tries again.
      if (storageRefusal(job.account_id)?.code === 'UNAVAILABLE') return;
      lastAccount = job.account_id;
      await runTurn(job);
    }
  }

  function next(): BackgroundImportRow | null {
    return tables.backgroundImports.nextAfter(lastAccount) ?? tables.backgroundImports.nextAfter('');
  }

  /** Removes files whose upload or deletion was interrupted. */
  async function removeOrphans(): Promise<void> {
    for (const name of await readdir(directory).catch(noneIfAbsent))
      if (!uploads.has(name) && !tables.backgroundImports.isUnfinished(name))
        await rm(fileOf(name), { force: true });
  }

  /** Runs an import to its end, or to the end of its turn. */
  async function runTurn(job: BackgroundImportRow): Promise<void> {
    const { import_id: importId, account_id: accountId } = job;
    const abort = new AbortController();
    running = { importId, abort };
    try {
      if (!(await writer.run((tx) => tx.backgroundImports.begin(importId, clock.now()), accountId))) return;
      const source = await openFile(job);
      if (isRefusal(source)) return await finish(importId, 'failed', source.message);
      try {
        const turnEnd = performance.now() + (turnMs ?? FAIR_TURN_MS);
        const result = await importer.run({
          accountId,
          groupId: job.group_id,
          // Sound: `add` stored it.
          actor: JSON.parse(job.actor) as Actor,
          reader: source.reader,
          records: source.records,
          counts: stateOf(job).counts,
          ...(job.hygiene_mode === 'off'
            ? {}
            : {
                hygiene: {
                  run: addressRunOf(job),
                  rejects: job.hygiene_mode === 'reject',
                  found: stateOf(job).hygiene ?? undefined,
                },
              }),
          storageRefusal: () => storageRefusal(accountId),
          onBatch: (tx, batch) => record(tx, job, source, batch),
          afterBatch: () => {
            const isOver = performance.now() >= turnEnd && next()?.account_id !== accountId;
            if (isOver) abort.abort(TURN_OVER);
          },
          signal: abort.signal,
        });
        if (result === ENDED) return;
        if (isRefusal(result) && result.code === 'UNAVAILABLE') return;
        if (isRefusal(result)) await finish(importId, 'failed', result.message);
        else if (result.complete) await finish(importId, 'completed', null);
      } finally {
        await source.close();
      }
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      log.error({ err: error, importId }, 'import file cannot be read');
      await finish(importId, 'failed', 'The uploaded file cannot be read: upload it again');
    } finally {
      running = null;
      await writer.run((tx) => tx.backgroundImports.wait(importId), accountId);
    }
  }

  function addressRunOf({ import_id: importId, account_id: accountId }: BackgroundImportRow): AddressRun {
    const known = addressRuns.get(importId);
    if (known !== undefined) return known;
    const run = checks.begin(accountId, { waitMs: LOOKUP_WAIT_MS });
    addressRuns.set(importId, run);
    return run;
  }

  /** Stores the position of an import with its rows. */
  function record(
    tx: Tables,
    job: BackgroundImportRow,
    { reader }: ImportSource,
    { position, counts, rejected, hygiene }: ImportBatch,
  ): Refusal | null {
    if (tx.accounts.get(job.account_id)?.status !== 'active') return ENDED;
    // The row of this turn may be old: batches of this turn have added to it.
    const current = tx.backgroundImports.get(job.account_id, job.import_id);
    if (current === null) return ENDED;
    const before = stateOf(current);
    const advanced = tx.backgroundImports.advance({
      import_id: job.import_id,
      at_byte: position.byte,
      at_line: position.line,
      counts: JSON.stringify(counts),
      rejected_rows: JSON.stringify([...before.rejected, ...rejected].slice(0, MAX_REJECTED)),
      ignored: JSON.stringify([...new Set([...before.ignored, ...reader.ignored])].slice(0, MAX_IGNORED)),
      hygiene: hygiene === null ? null : JSON.stringify(hygiene),
    });
    return advanced ? null : ENDED;
  }

  async function finish(importId: string, status: 'completed' | 'failed', reason: string | null) {
    await writer.run((tx) => tx.backgroundImports.finish(importId, status, reason, clock.now()));
    await release(importId);
    log.info({ importId, status, reason }, 'contact import ended');
  }

  /** Deletes what an import needed that has ended. */
  async function release(importId: string): Promise<void> {
    addressRuns.delete(importId);
    await rm(fileOf(importId), { force: true });
  }

  /** Reads the header again, which defines the columns, and continues at the position of the import. */
  async function openFile(job: BackgroundImportRow): Promise<ImportSource | Refusal> {
    const at = job.at_byte === 0 ? undefined : { byte: job.at_byte, line: job.at_line };
    const source = await openSource(bytesOfFile(fileOf(job.import_id)), job.format, columnsOf(job), at);
    return typeof source === 'string' ? invalid('body', source) : source;
  }

  const loop = createLoop({ name: 'contact-imports', run, intervalMs: INTERVAL_MS, log });

  return {
    add,
    /** Newest first; the newest MAX_KEPT_IMPORTS. */
    list: (accountId: string): BackgroundImportRow[] => tables.backgroundImports.list(accountId),
    get: existing,
    /** Ends an import; rows that were imported before remain. Refuses one that has ended (`INVALID_STATE`). */
    cancel: async (accountId: string, importId: string): Promise<BackgroundImportRow | Refusal> => {
      const cancelled = await writer.run((tx): Refusal | null => {
        const row = tx.backgroundImports.get(accountId, importId);
        if (row === null) return refuse('NOT_FOUND', `There is no import ${importId}`);
        return tx.backgroundImports.finish(importId, 'cancelled', null, clock.now())
          ? null
          : refuse('INVALID_STATE', `The import has ended: ${row.status}`);
      }, accountId);
      if (cancelled !== null) return cancelled;
      if (running?.importId === importId) running.abort.abort();
      await release(importId);
      return existing(accountId, importId);
    },
    start: (): void => loop.start(),
    stop: async (): Promise<void> => {
      stopping.abort();
      running?.abort.abort();
      await loop.stop();
    },
  };
}

export type BackgroundImports = ReturnType<typeof createBackgroundImports>;

/** The stored state of an import. */
export function stateOf(
  row: Pick<BackgroundImportRow, 'counts' | 'rejected_rows' | 'ignored' | 'hygiene'>,
): ImportState {
  // Sound: only this module writes these columns.
  return {
    counts: JSON.parse(row.counts) as ImportCounts,
    rejected: JSON.parse(row.rejected_rows) as RejectedRow[],
    ignored: JSON.parse(row.ignored) as string[],
    hygiene: row.hygiene === null ? null : (JSON.parse(row.hygiene) as ImportHygiene),
  };
}

function columnsOf({ columns }: BackgroundImportRow): Pick<RowOptions, 'columns'> {
  // Sound: only this module writes the column.
  return columns === null ? {} : { columns: new Map(JSON.parse(columns) as [string, string | null][]) };
}

/** The columns of a stored file that have no field, or why it cannot be imported. */
async function checkedHeader(
  file: string,
  { format, columns }: Pick<UploadedImport, 'format' | 'columns'>,
): Promise<string[] | Refusal> {
  const source = await openSource(bytesOfFile(file), format, columns === undefined ? {} : { columns });
  if (typeof source === 'string') return invalid('body', source);
  if (isRefusal(source)) return source;
  await source.close();
  return [...source.reader.ignored];
}

function noneIfAbsent(error: unknown): string[] {
  if (errorCode(error) === 'ENOENT') return [];
  throw error;
}

/** Whether an error is one of reading a file; SQLite's have other codes. */
function isUnreadable(error: unknown): boolean {
  return (
    error instanceof Error && 'syscall' in error && ['open', 'read', 'stat'].includes(String(error.syscall))
  );
}
