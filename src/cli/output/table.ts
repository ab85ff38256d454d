import { styleText } from 'node:util';
import Table from 'cli-table3';

/*
 * Formats rows for people: as wide as the terminal, local times with zone, numbers with separators, colored states.
 * Programs use `--json` instead.
 */

/** How a table is printed. */
export interface TableOptions {
  /** Columns of the terminal. */
  width: number;
  color: boolean;
  /** Whether a table that is too wide gets shortened cells; otherwise it becomes a list of values. Default: true. */
  shorten?: boolean;
  /** IANA name of the time zone. Default: that of the system. */
  timeZone?: string;
}

/** Used without a terminal, such as for a pipe or a log: nothing is shortened. */
export const DEFAULT_WIDTH = Number.POSITIVE_INFINITY;
/** Minimum characters of a shortened column. */
const MIN_COLUMN = 8;
/** Width of the names that `fieldLines` writes. */
const FIELD_WIDTH = 20;
/** Border and padding of one column. */
const COLUMN_OVERHEAD = 3;

/** The names of its properties are those of the columns. */
type Row = object;

/**
 * The columns are the keys of the first row. Where shortening cannot make the table fit `width`, each row becomes lines
 * of name and value, as in `formatRecord`.
 */
export function formatTable(rows: readonly Row[], options: TableOptions): string {
  const names = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) => {
    const values = new Map<string, unknown>(Object.entries(row));
    return names.map((name) => formatValue(values.get(name), options));
  });
  const widths = fitted(names, cells, options);
  if (widths === null) return cells.map((row) => record(names, row, options)).join('\n\n');
  const table = new Table({
    head: names,
    colWidths: widths.map((width) => width + COLUMN_OVERHEAD - 1),
    style: { head: options.color ? ['bold'] : [], border: [], compact: true },
  });
  for (const row of cells) table.push(row.map((text) => colored(text, options)));
  return table.toString();
}

/** Rows of cells without borders, the first column aligned left and the others, which are numbers, right. */
export function alignedTable(rows: readonly (readonly string[])[]): string {
  const safe = rows.map((row) => row.map(escapeControls));
  const widths = (safe[0] ?? []).map((_, n) => Math.max(...safe.map((row) => row[n]?.length ?? 0)));
  return safe
    .map((row) =>
      row
        .map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0)))
        .join('  '),
    )
    .join('\n');
}

/** One object as lines of name and value. */
export function formatRecord(row: Row, options: TableOptions): string {
  const values = Object.values(row).map((value) => formatValue(value, options));
  return record(Object.keys(row), values, options);
}

/** One object as lines of name and value; times and numbers as `--json` prints them. */
export function fieldLines(fields: object): string[] {
  return Object.entries(fields).map(([name, value]) => `${name.padEnd(FIELD_WIDTH)} ${fieldText(value)}`);
}

/** A value as text on one line: entries of lists and objects with commas, nested ones in parentheses. */
export function fieldText(value: unknown): string {
  return isObject(value) ? entriesText(value) || '-' : scalarText(value);
}

function entriesText(value: object): string {
  const text = (entry: unknown) => (isObject(entry) ? `(${entriesText(entry)})` : scalarText(entry));
  return Array.isArray(value)
    ? value.map(text).join(', ')
    : Object.entries(value)
        .map(([name, entry]) => `${escapeControls(name)} ${text(entry)}`)
        .join(', ');
}

function scalarText(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return escapeControls(typeof value === 'string' ? value : JSON.stringify(value));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function record(names: readonly string[], values: readonly string[], options: TableOptions): string {
  const longest = Math.max(...names.map((name) => name.length));
  return names.map((name, n) => `${name.padEnd(longest)}  ${colored(values[n] ?? '', options)}`).join('\n');
}

/**
 * Widths of the columns, the widest ones shortened until the table fits; null if that is not possible. Ids and names of
 * backups are never shortened, because they are copied into the next command.
 */
function fitted(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  { width, shorten = true }: TableOptions,
): number[] | null {
  const columns = names.map((name, n) => {
    const values = cells.map((row) => row[n] ?? '');
    const natural = Math.max(name.length, ...values.map(({ length }) => length));
    return { width: natural, min: !shorten || values.some(isId) ? natural : Math.min(natural, MIN_COLUMN) };
  });
  const available = width - names.length * COLUMN_OVERHEAD - 1;
  let excess = columns.reduce((sum, column) => sum + column.width, 0) - available;
  while (excess > 0) {
    const widest = columns.filter((column) => column.width > column.min);
    const [first] = widest.toSorted((a, b) => b.width - a.width);
    if (first === undefined) return null;
    first.width--;
    excess--;
  }
  return columns.map((column) => column.width);
}

function isId(text: string): boolean {
  return /^(?:[a-z]+_\d{13}_[0-9a-z]{12}|acct_[0-9a-z]+|(?:email|phone)_[0-9a-f]{32}|key_\S+|postrider-\d{8}T\d{6}Z(?:-\d+)?)$/.test(
    text,
  );
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** Writes control characters, which a terminal would interpret, as `\x1b`. */
export function escapeControls(text: string): string {
  return escaped(text, /\p{Cc}/gu);
}

/** As `escapeControls`, except for line breaks and tabs. */
export function escapeControlsInText(text: string): string {
  return escaped(text, /[^\P{Cc}\n\t]/gu);
}

function escaped(text: string, characters: RegExp): string {
  return text.replaceAll(characters, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** `1 message`, `1,200 messages`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;
}

/** With an upper-case first letter. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A value as text, with control characters escaped. */
export function formatValue(value: unknown, { timeZone }: Pick<TableOptions, 'timeZone'> = {}): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return value.toLocaleString('en');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'string') return isObject(value) ? entriesText(value) : scalarText(value);
  if (ISO_TIME.test(value)) return localTime(new Date(value), timeZone);
  return escapeControls(value);
}

/** `2026-11-22 07:01:32 GMT+1` */
function localTime(time: Date, timeZone: string | undefined): string {
  const parts = new Intl.DateTimeFormat('en-US', {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
    ...(timeZone === undefined ? {} : { timeZone }),
  }).formatToParts(time);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? '';
  return `${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}:${part('second')} ${part('timeZoneName')}`;
}

const STATE_COLORS: Readonly<Record<string, 'green' | 'yellow' | 'red'>> = {
  success: 'green',
  active: 'green',
  delivered: 'green',
  sent: 'green',
  yes: 'green',
  pending: 'yellow',
  queued: 'yellow',
  sending: 'yellow',
  scheduled: 'yellow',
  deferred: 'yellow',
  held: 'yellow',
  paused: 'yellow',
  temporary_failure: 'red',
  failed: 'red',
  bounced: 'red',
  complained: 'red',
  disabled: 'red',
};

function colored(text: string, { color }: TableOptions): string {
  const name = color ? STATE_COLORS[text.toLowerCase()] : undefined;
  return name === undefined ? text : styleText(name, text, { validateStream: false });
}
