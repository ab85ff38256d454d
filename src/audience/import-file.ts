import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  ftruncateSync,
  openSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import {
  type ImportBatch,
  type ImportCounts,
  type Importer,
  type ImportResult,
  NO_COUNTS,
  type RejectedRow,
} from './import.ts';
import { type Place, readRecords } from './import-records.ts';
import { type ImportFormat, openSource } from './import-source.ts';

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
  /** Where the rejected rows go; made when there is the first. */
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
  /** Columns that mean nothing to us. */
  ignored: string[];
}

/** Of the file, what is looked at to know it again. */
const HEAD_BYTES = 64 * 1024;
/** Beside a running daemon an import leaves it the database often enough. */
const BATCH_ROWS = 500;
const PAUSE_SHARE = 0.3;

/** Rejects when the file cannot be read or the report cannot be written. */
export async function importFile(
  house: { tables: Tables; writer: Writer; importer: Importer; now: () => number },
  wish: FileImport,
): Promise<FileImportResult | Refusal> {
  const { tables, writer, importer, now } = house;
  const { key, size } = await identify(wish);
  const source = await openSource(createReadStream(wish.file), wish.format);
  if (typeof source === 'string') return refuse('VALIDATION_ERROR', source);
  await source.close();

  const before = tables.contactImports.get(key);
  const place = before === null ? source.rowsAt : { byte: before.at_byte, line: before.at_line };
  const counts: ImportCounts = before === null ? NO_COUNTS : JSON.parse(before.counts);
  const report = createReport(wish.reportFile, before?.report_bytes ?? 0);
  const startedAt = before?.started_at ?? now();
  wish.onStart({ place, size, counts });
  try {
    const result = await importer.run({
      accountId: wish.accountId,
      groupId: wish.groupId,
      caller: { by: 'import', ipAddress: null, userAgent: null },
      reader: source.reader,
      records: readRecords(createReadStream(wish.file, { start: place.byte }), source.cut, place),
      counts,
      onBatch: (all, batch) =>
        all.contactImports.put({
          import_key: key,
          account_id: wish.accountId,
          at_byte: batch.place.byte,
          at_line: batch.place.line,
          counts: JSON.stringify(batch.counts),
          report_bytes: report.write(batch.rejected),
          started_at: startedAt,
          updated_at: now(),
        }),
      afterBatch: wish.onProgress,
      signal: wish.signal,
      batchRows: BATCH_ROWS,
      pauseShare: PAUSE_SHARE,
    });
    if (isRefusal(result)) return result;
    if (result.complete) await writer.run((all) => all.contactImports.remove(key));
    return { ...result, resumed: before !== null, ignored: [...source.reader.ignored] };
  } finally {
    report.close();
  }
}

/** A name for this file as it is now, into this account and group. */
async function identify(wish: FileImport): Promise<{ key: string; size: number }> {
  const handle = await open(wish.file);
  try {
    const { size, mtimeMs } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const key = createHash('sha256')
      .update(JSON.stringify([size, mtimeMs, wish.format, wish.accountId, wish.groupId]))
      .update(buffer.subarray(0, bytesRead))
      .digest('hex');
    return { key, size };
  } finally {
    await handle.close();
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
