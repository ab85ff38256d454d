import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  createReadStream,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import {
  type ImportBatch,
  type ImportCounts,
  type Importer,
  type ImportResult,
  KEPT_REJECTED,
  NO_COUNTS,
  type RejectedRow,
} from './import.ts';
import { type Place, readRecords } from './records.ts';
import type { ImportRow, RowOptions } from './rows.ts';
import { type ImportFormat, type ImportSource, openSource } from './source.ts';

/**
 * Imports a file so that it may be interrupted at any moment, even by a kill: how far it has come is committed
 * with the rows, and the same file for the same account and group goes on from there. Every rejected row is
 * written to a report, which is cut back to what was committed when an import goes on.
 */
export interface FileImport {
  file: string;
  format: ImportFormat;
  accountId: string;
  groupId: string | null;
  /** How rows are read. An import is resumed only with the same options. */
  rows: RowOptions;
  dryRun: boolean;
  /** Where the rejected rows are written; created with the first, never by a dry run. */
  reportFile: string;
  signal: AbortSignal;
  /** Before the first row of this run. */
  onStart(from: { place: Place; size: number; counts: ImportCounts }): void;
  /** After each commit. */
  onProgress(batch: ImportBatch): void;
}

export interface FileImportResult extends ImportResult {
  /** It went on where an earlier run had stopped. */
  resumed: boolean;
  /** Unknown columns, at most 50. */
  ignored: string[];
  ignoredTruncated: boolean;
}

/** Of the file, what is looked at to know it again. */
const HEAD_BYTES = 64 * 1024;
/** Beside a running daemon an import leaves it the database often enough. */
const BATCH_ROWS = 500;
const PAUSE_SHARE = 0.3;

/** Rejects when the file cannot be read or the report cannot be written. */
export async function importFile(
  deps: { tables: Tables; writer: Writer; importer: Importer; now: () => number },
  input: FileImport,
): Promise<FileImportResult | Refusal> {
  const { tables, writer, importer, now } = deps;
  const { key, size } = await identify(input);
  const source = await openSource(createReadStream(input.file), input.format, input.rows);
  if (typeof source === 'string') return refuse('VALIDATION_ERROR', source);
  const first = await firstRow(source);
  await source.close();
  // A CSV was refused for its header.
  if (input.rows.rejectUnknown === true && first !== null && source.reader.ignored.size > 0)
    return refuse('VALIDATION_ERROR', `line ${first.line} ${'reason' in first ? first.reason : ''}`);

  const before = input.dryRun ? null : tables.contactImports.get(key);
  const place = before === null ? source.rowsAt : { byte: before.at_byte, line: before.at_line };
  const counts: ImportCounts = before === null ? NO_COUNTS : JSON.parse(before.counts);
  const earlier = before === null ? [] : readReport(input.reportFile, before.report_bytes);
  const report = createReport(input.reportFile, before?.report_bytes ?? 0);
  const startedAt = before?.started_at ?? now();
  input.onStart({ place, size, counts });
  try {
    const result = await importer.run({
      accountId: input.accountId,
      groupId: input.groupId,
      actor: { by: 'import', ipAddress: null, userAgent: null },
      reader: source.reader,
      records: readRecords(createReadStream(input.file, { start: place.byte }), source.cut, place),
      counts,
      dryRun: input.dryRun,
      onBatch: (all, batch) =>
        all.contactImports.put({
          import_key: key,
          account_id: input.accountId,
          at_byte: batch.place.byte,
          at_line: batch.place.line,
          counts: JSON.stringify(batch.counts),
          report_bytes: report.write(batch.rejected),
          started_at: startedAt,
          updated_at: now(),
        }),
      afterBatch: input.onProgress,
      signal: input.signal,
      batchRows: BATCH_ROWS,
      pauseShare: PAUSE_SHARE,
    });
    if (isRefusal(result)) return result;
    if (result.complete && !input.dryRun) await writer.run((all) => all.contactImports.remove(key));
    const rejected = [...earlier, ...result.rejected].slice(0, KEPT_REJECTED);
    return {
      ...result,
      rejected,
      resumed: before !== null,
      ignored: [...source.reader.ignored],
      ignoredTruncated: source.reader.ignoredTruncated(),
    };
  } finally {
    report.close();
  }
}

/** A name for this file as it is now, into this account and group. */
async function identify(input: FileImport): Promise<{ key: string; size: number }> {
  const handle = await open(input.file);
  try {
    const { size, mtimeMs } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const key = createHash('sha256')
      .update(
        JSON.stringify([size, mtimeMs, input.format, input.accountId, input.groupId, ...rowOptions(input)]),
      )
      .update(buffer.subarray(0, bytesRead))
      .digest('hex');
    return { key, size };
  } finally {
    await handle.close();
  }
}

/** What makes the same file another import. */
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
    return [...rows].slice(0, KEPT_REJECTED).map(([, line, reason = '']) => ({
      line: Number(line),
      reason: reason.replaceAll('""', '"'),
    }));
  } finally {
    closeSync(descriptor);
  }
}

/** A CSV of lines and reasons. Nothing behind `committed` bytes was ever heard of by the database. */
function createReport(file: string, committed: number) {
  let length = committed;
  let descriptor: number | null = null;
  const begin = (): number => {
    const opened = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    // Somebody may have taken the earlier part away meanwhile.
    length = Math.min(length, fstatSync(opened).size);
    ftruncateSync(opened, length);
    return opened;
  };
  return {
    /** Returns its length with these rows: to be committed with the batch. */
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
