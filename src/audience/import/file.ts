import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import {
  type ImportBatch,
  type ImportCounts,
  type Importer,
  type ImportResult,
  MAX_REJECTED,
  NO_COUNTS,
  type RejectedRow,
} from './import.ts';
import type { StreamPosition } from './records.ts';
import type { ImportRow, RowOptions } from './rows.ts';
import { bytesOfFile, type ImportFormat, type ImportSource, openSource } from './source.ts';

/**
 * Imports a file; it may be interrupted at any time, even by SIGKILL. The position is committed with the rows, and another
 * import of the same file into the same account and group continues from there. Rejected rows are written to a report,
 * which is truncated to its committed length when an import continues.
 */
export interface FileImport {
  file: string;
  format: ImportFormat;
  accountId: string;
  groupId: string | null;
  /** Options of the row reader. An import is resumed only with the same options. */
  rows: RowOptions;
  dryRun: boolean;
  /** Report of rejected rows; created with the first one, never by a dry run. */
  reportFile: string;
  signal: AbortSignal;
  /** Called before the first row of this run. */
  onStart(from: { position: StreamPosition; size: number; counts: ImportCounts }): void;
  /** Called after each commit. */
  onProgress(batch: ImportBatch): void;
}

export interface FileImportResult extends ImportResult {
  /** Whether it continued an earlier run. */
  resumed: boolean;
  /** Unknown columns, at most 50. */
  ignored: string[];
  ignoredTruncated: boolean;
}

/** Length of the beginning of the file that identifies it. */
const HEAD_BYTES = 64 * 1024;
/** Rows of a batch. Writes of a running daemon wait for its commit. */
const BATCH_ROWS = 500;

/** Rejects when the file cannot be read or the report cannot be written. */
export async function importFile(
  deps: { tables: Tables; writer: Writer; importer: Importer; now: () => number },
  options: FileImport,
): Promise<FileImportResult | Refusal> {
  const { tables, writer, importer, now } = deps;
  const { key, size } = await identify(options);
  const openAt = async (at?: StreamPosition) => {
    const opened = await openSource(bytesOfFile(options.file), options.format, options.rows, at);
    return typeof opened === 'string' ? refuse('VALIDATION_ERROR', opened) : opened;
  };
  const beginning = await openAt();
  if (isRefusal(beginning)) return beginning;
  const { reader } = beginning;
  const first = await firstRow(beginning);
  await beginning.close();
  // An unknown column of a CSV was refused with the header.
  if (options.rows.rejectUnknown === true && first !== null && reader.ignored.size > 0)
    return refuse('VALIDATION_ERROR', `line ${first.line} ${'reason' in first ? first.reason : ''}`);

  const before = options.dryRun ? null : tables.contactImports.get(key);
  const source = await openAt(before === null ? undefined : { byte: before.at_byte, line: before.at_line });
  if (isRefusal(source)) return source;
  const counts: ImportCounts = before === null ? NO_COUNTS : JSON.parse(before.counts);
  const earlier = before === null ? [] : readReport(options.reportFile, before.report_bytes);
  const report = createReport(options.reportFile, before?.report_bytes ?? 0);
  const startedAt = before?.started_at ?? now();
  options.onStart({ position: source.rowsAt, size, counts });
  try {
    const result = await importer.run({
      accountId: options.accountId,
      groupId: options.groupId,
      actor: { by: 'import', ipAddress: null, userAgent: null },
      reader,
      records: source.records,
      counts,
      dryRun: options.dryRun,
      onBatch: (tx, batch) => {
        tx.contactImports.put({
          import_key: key,
          account_id: options.accountId,
          at_byte: batch.position.byte,
          at_line: batch.position.line,
          counts: JSON.stringify(batch.counts),
          report_bytes: report.write(batch.rejected),
          started_at: startedAt,
          updated_at: now(),
        });
        return null;
      },
      afterBatch: options.onProgress,
      signal: options.signal,
      batchRows: BATCH_ROWS,
    });
    if (isRefusal(result)) return result;
    if (result.complete && !options.dryRun) await writer.run((tx) => tx.contactImports.remove(key));
    const rejected = [...earlier, ...result.rejected].slice(0, MAX_REJECTED);
    return {
      ...result,
      rejected,
      resumed: before !== null,
      ignored: [...reader.ignored],
      ignoredTruncated: reader.ignoredTruncated(),
    };
  } finally {
    await source.close();
    report.close();
  }
}

/** The key of an import: this version of the file, the account, the group and the options. */
async function identify(options: FileImport): Promise<{ key: string; size: number }> {
  const handle = await open(options.file);
  try {
    const { size, mtimeMs } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const key = createHash('sha256')
      .update(
        JSON.stringify([
          size,
          mtimeMs,
          options.format,
          options.accountId,
          options.groupId,
          ...rowOptions(options),
        ]),
      )
      .update(buffer.subarray(0, bytesRead))
      .digest('hex');
    return { key, size };
  } finally {
    await handle.close();
  }
}

/** Options that distinguish imports of the same file. */
function rowOptions({ rows }: FileImport): unknown[] {
  return [[...(rows.columns ?? [])], rows.requireEmail === true, rows.rejectUnknown === true];
}

async function firstRow({ records, reader }: ImportSource): Promise<ImportRow | null> {
  for await (const [record] of records) if (record !== undefined) return reader.read(record);
  return null;
}

const REPORT_HEAD_BYTES = 64 * 1024;

/** The first rejected rows of earlier runs, from their report. */
function readReport(file: string, committed: number): RejectedRow[] {
  if (committed === 0 || !existsSync(file)) return [];
  const descriptor = openSync(file, constants.O_RDONLY);
  try {
    const head = Buffer.alloc(Math.min(committed, REPORT_HEAD_BYTES));
    const text = head.toString('utf8', 0, readSync(descriptor, head, 0, head.length, 0));
    const rows = text.matchAll(/^(\d+),"((?:[^"\n]|"")*)"$/gm);
    return [...rows].slice(0, MAX_REJECTED).map(([, line, reason = '']) => ({
      line: Number(line),
      reason: reason.replaceAll('""', '"'),
    }));
  } finally {
    closeSync(descriptor);
  }
}

/** A CSV of lines and reasons. Rows after `committed` bytes were not committed to the database. */
function createReport(file: string, committed: number) {
  let length = committed;
  let descriptor: number | null = null;
  const begin = (): number => {
    const opened = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    // The file may have been removed or truncated since.
    length = Math.min(length, fstatSync(opened).size);
    ftruncateSync(opened, length);
    return opened;
  };
  return {
    /** Returns its length with these rows, which is committed with the batch. */
    write: (rows: RejectedRow[]): number => {
      if (rows.length === 0) return length;
      descriptor ??= begin();
      const lines = rows.map(({ line, reason }) => `${line},"${reason.replaceAll('"', '""')}"\n`);
      const text = Buffer.from((length === 0 ? 'line,reason\n' : '') + lines.join(''));
      writeSync(descriptor, text, 0, text.length, length);
      length += text.length;
      return length;
    },
    close: (): void => {
      if (descriptor !== null) closeSync(descriptor);
    },
  };
}
