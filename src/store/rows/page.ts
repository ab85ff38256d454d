/** Lists that are read page by page, newest first, by the number of the last row seen. */
export interface PageFilter {
  accountId: string;
  /** Only rows before this one; null: from the newest on. */
  beforeSeq: number | null;
  limit: number;
}

export interface Page<Row> {
  rows: Row[];
  /** More follow. */
  more: boolean;
}

/** A page of rows that were asked for one beyond the limit. */
export function pageOf<Row>(rows: Row[], limit: number): Page<Row> {
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}
