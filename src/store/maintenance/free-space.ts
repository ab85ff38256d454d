import type { Database } from '../database/database.ts';

/**
 * Free pages of the file. SQLite reuses them; with `auto_vacuum = INCREMENTAL` they can also be returned to the file
 * system, a few at a time: the last pages of the file are moved to free places and the file is truncated. A file without
 * it never becomes smaller. The mode is set when the file is created, see docs/reference/large-databases.md.
 */
export interface FilePages {
  /** Bytes of a page. */
  pageSize: number;
  total: number;
  free: number;
}

/**
 * Reads and changes pages of the main database of the connection. In a file without incremental vacuum `release`
 * returns 0.
 */
export function freeSpaceTable(db: Database) {
  const read = (pragma: string) => db.prepare<[], number>(`PRAGMA ${pragma}`).pluck();
  const pageSize = read('page_size');
  const pageCount = read('page_count');
  const freelistCount = read('freelist_count');
  const autoVacuum = read('auto_vacuum');
  const INCREMENTAL = 2;
  return {
    pages: (): FilePages => ({
      pageSize: pageSize.get() ?? 0,
      total: pageCount.get() ?? 0,
      free: freelistCount.get() ?? 0,
    }),
    /** Whether free pages can be returned to the file system. */
    isReturnable: (): boolean => autoVacuum.get() === INCREMENTAL,
    /** Removes at most `pages` free pages from the file; returns how many. Only in a unit of work. */
    release: (pages: number): number => {
      const before = pageCount.get() ?? 0;
      db.exec(`PRAGMA incremental_vacuum(${Math.max(1, Math.trunc(pages))})`);
      return before - (pageCount.get() ?? 0);
    },
  };
}
