import { fdatasyncSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { openConnection } from '../database/connection.ts';
import { isBusy } from '../database/failure.ts';

/*
 * Clears the unused space inside pages of the database file.
 *
 * With `secure_delete` SQLite overwrites deleted rows and freed pages with zeros. But when it distributes the rows of a
 * page over neighboring pages, copies of them stay in the page's unused space until other rows need it; the copy of a row
 * remains when the row is deleted later. VACUUM would rewrite the file and exclude all writers meanwhile. Here the unused
 * space of each page (https://sqlite.org/fileformat2.html §1.6) is overwritten with zeros in place, some pages at a
 * time, while the daemon works.
 *
 * Writing to the file without SQLite is safe under these conditions, which `clear` establishes for each batch:
 * - The write lock is held and the write-ahead log is empty: no process can commit, no checkpoint has anything to write,
 *   and the file alone contains the pages.
 * - Only bytes change that no page refers to: at any moment, and after a crash, each reader finds the same content.
 * - The batch ends with a commit that changes a row: at its next transaction every connection finds the database
 *   changed and drops the pages in its cache, so that none writes an old version back. An UPDATE to the same value would
 *   write nothing and leave the caches of other connections as they are.
 */

/** Pages of a batch: 4 MiB. */
const BATCH_PAGES = 1024;
const LOCK_BYTE = 0x40000000;
/** In a file with more pages the first byte of an overflow page could be that of a b-tree page. */
const MAX_PAGES = 0x02000000;
const INTERIOR_PAGES = [2, 5];
const LEAF_PAGES = [10, 13];
const FILE_HEADER_BYTES = 100;
const BATCHES = 'slack-batches';

export type SlackBatch =
  /** `next`: the page to continue with; null: this batch was the last. */
  | { kind: 'cleared'; pages: number; next: number | null }
  /** Another connection holds a lock or reads an old state: the caller tries again. */
  | { kind: 'busy' };

/** Whether the unused space of a file of this size can be cleared; a larger file must be rewritten with VACUUM. */
export function isClearable(file: string): boolean {
  const fd = openedFile(file);
  return pageCountOf(fd) < MAX_PAGES;
}

/**
 * Opens two connections until `close`; the descriptor stays open (`openedFile`). `fd`: the descriptor that the process
 * has already, in a thread. Throws when the file does not exist; `clear` throws for MAX_PAGES or more.
 */
export function openSlackCleaner(file: string, fd = openedFile(file)) {
  const writing = openConnection(file, { timeout: 0, fileMustExist: true });
  const copying = openConnection(file, { timeout: 20, fileMustExist: true });
  writing.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON');
  const checkpoint = copying.prepare<[], Checkpoint>('PRAGMA wal_checkpoint(PASSIVE)');
  const truncate = copying.prepare<[], Checkpoint>('PRAGMA wal_checkpoint(TRUNCATE)');
  const countBatch = writing.prepare<[string]>(
    "INSERT INTO settings (name, value) VALUES (?, '1') ON CONFLICT (name) DO UPDATE SET value = value + 1",
  );

  const isCopied = () => {
    const done = checkpoint.get();
    return done !== undefined && done.busy === 0 && done.log === done.checkpointed;
  };

  const emptyLog = () => {
    // Most of the log is copied before other connections must wait.
    checkpoint.get();
    return truncate.get()?.busy === 0;
  };
  // SQLite reports it, not the file system: with a symbolic link the log has another name than `${file}-wal`. The
  // checkpoint has nothing to copy when the log is empty; -1 frames mean that there is no log.
  const isLogEmpty = () => checkpoint.get()?.log === 0;

  /** Reads a batch and clears it in memory; `dirty` are the numbers of the pages that changed. */
  function read(fromPage: number): { pageSize: number; pages: Buffer; dirty: number[]; last: number } {
    const header = readHeader(fd);
    const last = Math.min(pageCountOf(fd), fromPage + BATCH_PAGES - 1);
    const pages = Buffer.alloc(Math.max(0, last - fromPage + 1) * header.pageSize);
    const bytesRead = readSync(fd, pages, 0, pages.length, (fromPage - 1) * header.pageSize);
    const dirty: number[] = [];
    for (let at = 0; at + header.pageSize <= bytesRead; at += header.pageSize) {
      const number = fromPage + at / header.pageSize;
      if (isReserved(number, header)) continue;
      const page = pages.subarray(at, at + header.pageSize);
      if (clearSlack(page, number === 1 ? FILE_HEADER_BYTES : 0, header.usableSize)) dirty.push(number);
    }
    return { pageSize: header.pageSize, pages, dirty, last };
  }

  function clearLocked(fromPage: number): SlackBatch {
    if (!isLogEmpty()) return { kind: 'busy' };
    // Pages that were read before the lock was taken may have changed since.
    const { pageSize, pages, dirty, last } = read(fromPage);
    for (const number of dirty) {
      const at = (number - fromPage) * pageSize;
      writeSync(fd, pages, at, pageSize, (number - 1) * pageSize);
    }
    countBatch.run(BATCHES);
    return { kind: 'cleared', pages: dirty.length, next: nextPage(last) };
  }

  const nextPage = (last: number) => (last < pageCountOf(fd) ? last + 1 : null);

  return {
    /** Copies the write-ahead log into the file, so that a pass finds everything committed before; returns false when busy. */
    begin: isCopied,
    /** Clears the pages of one batch. Pages are numbered from 1. */
    clear: (fromPage: number): SlackBatch => {
      if (pageCountOf(fd) >= MAX_PAGES)
        throw new Error('the database is too large for clearing its unused space');
      const { dirty, last } = read(fromPage);
      if (dirty.length === 0) return { kind: 'cleared', pages: 0, next: nextPage(last) };
      if (!emptyLog()) return { kind: 'busy' };
      writing.exec('PRAGMA shrink_memory');
      try {
        writing.exec('BEGIN IMMEDIATE');
      } catch (error) {
        if (isBusy(error)) return { kind: 'busy' };
        throw error;
      }
      try {
        const batch = clearLocked(fromPage);
        writing.exec('COMMIT');
        return batch;
      } finally {
        if (writing.inTransaction) writing.exec('ROLLBACK');
      }
    },
    /** Empties the write-ahead log, which contains older versions of pages; returns false when busy. */
    end: (): boolean => {
      fdatasyncSync(fd);
      return emptyLog();
    },
    close: (): void => {
      writing.close();
      copying.close();
    },
  };
}

interface Checkpoint {
  busy: 0 | 1;
  log: number;
  checkpointed: number;
}

interface FileHeader {
  pageSize: number;
  usableSize: number;
  /** The file has pages that map others: https://sqlite.org/fileformat2.html §1.8. */
  hasPointerMap: boolean;
}

/** https://sqlite.org/fileformat2.html §1.3 */
function readHeader(fd: number): FileHeader {
  const header = Buffer.alloc(FILE_HEADER_BYTES);
  readSync(fd, header, 0, FILE_HEADER_BYTES, 0);
  const size = header.readUInt16BE(16);
  const pageSize = size === 1 ? 65_536 : size;
  return {
    pageSize,
    usableSize: pageSize - header.readUInt8(20),
    hasPointerMap: header.readUInt32BE(52) !== 0,
  };
}

function pageCountOf(fd: number): number {
  return Math.floor(fstatSync(fd).size / readHeader(fd).pageSize);
}

/** Whether a page is not a b-tree page, whatever its first byte is. */
function isReserved(number: number, { pageSize, usableSize, hasPointerMap }: FileHeader): boolean {
  const lockPage = LOCK_BYTE / pageSize + 1;
  if (number === lockPage) return true;
  if (!hasPointerMap || number < 2) return false;
  const mapped = Math.floor(usableSize / 5) + 1;
  const map = Math.floor((number - 2) / mapped) * mapped + 2;
  return number === (map === lockPage ? map + 1 : map);
}

/** Overwrites the unused space of a b-tree page with zeros. Returns false when nothing changed or it is no b-tree page. */
export function clearSlack(page: Buffer, headerAt: number, usableSize: number): boolean {
  const type = page.readUInt8(headerAt);
  const isInterior = INTERIOR_PAGES.includes(type);
  if (!isInterior && !LEAF_PAGES.includes(type)) return false;
  const cells = page.readUInt16BE(headerAt + 3);
  const content = page.readUInt16BE(headerAt + 5) || 65_536;
  const pointers = headerAt + (isInterior ? 12 : 8);
  const gap = pointers + 2 * cells;
  if (gap > content || content > usableSize) return false;
  for (let at = pointers; at < gap; at += 2) {
    const cell = page.readUInt16BE(at);
    if (cell < content || cell >= usableSize) return false;
  }
  const unused: [from: number, to: number][] = [[gap, content]];
  for (let at = page.readUInt16BE(headerAt + 1); at !== 0; ) {
    if (at < content || at + 4 > usableSize) return false;
    const next = page.readUInt16BE(at);
    const end = at + page.readUInt16BE(at + 2);
    if (end < at + 4 || end > usableSize || (next !== 0 && next < end)) return false;
    unused.push([at + 4, end]);
    at = next;
  }
  let isChanged = false;
  for (const [from, to] of unused) {
    if (isZero(page, from, to)) continue;
    page.fill(0, from, to);
    isChanged = true;
  }
  return isChanged;
}

const ZEROS = Buffer.alloc(65_536);

function isZero(page: Buffer, from: number, to: number): boolean {
  return page.compare(ZEROS, 0, to - from, from, to) === 0;
}

const OPENED = new Map<string, number>();

/**
 * A descriptor of the file, opened once and never closed: the system drops all locks of a process on a file when it closes any
 * descriptor of it, SQLite's locks included (https://sqlite.org/howtocorrupt.html §2.2).
 */
export function openedFile(file: string): number {
  const fd = OPENED.get(file) ?? openSync(file, 'r+');
  OPENED.set(file, fd);
  return fd;
}
