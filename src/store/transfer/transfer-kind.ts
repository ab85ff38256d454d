/** A type of records of an exported account: the columns of a table, and the rows of other tables that belong to a row. */
export interface TransferKind {
  table: string;
  /** Columns in the record, with the names of the table. */
  columns: readonly string[];
  /** Columns that are stored in another form: the expression that reads them (of row `t`). */
  read?: Readonly<Record<string, string>>;
  /** Columns that are not in the record: the expression that an import writes. */
  fixed?: Readonly<Record<string, string>>;
  /** Condition for the rows of an account, with the parameters `@accountId` and `@now`. */
  where: string;
  /** An order in which an index returns the rows. */
  order: string;
  /** Fields with the rows of other tables. */
  children?: Readonly<Record<string, TransferChild>>;
}

export interface TransferChild {
  table: string;
  columns: readonly string[];
  read?: Readonly<Record<string, string>>;
  fixed?: Readonly<Record<string, string>>;
  /** The column with the key of the parent, and that key. */
  link: { column: string; parent: string };
  /** A further condition. */
  where?: string;
  order: string;
}
