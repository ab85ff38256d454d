/** The beginning of a CSV in the browser: what its columns are, to assign them to fields. */
export interface CsvHead {
  columns: string[];
  /** The first rows, to recognize the columns by their content. */
  rows: string[][];
}

/** Bytes that are read; a header is shorter in practice. */
export const HEAD_BYTES = 64 * 1024;
const ROWS = 3;

/** `sep=;`, which Excel writes as the first line. */
const SEPARATOR = /^"?sep=([^"\s\w]|\t)"?[,;\t|]*\n/i;

/**
 * Reads the header and the first rows, in the encodings and with the line ends that the server reads; null when there is
 * no header. `bytes`: the beginning of the file.
 */
export function readCsvHead(bytes: ArrayBuffer): CsvHead | null {
  const text = decoded(new Uint8Array(bytes)).replaceAll(/\r\n?/g, '\n');
  const separator = SEPARATOR.exec(text);
  const body = text.slice(separator?.[0].length ?? 0).replace(/^(?:[^\S\n]*\n)+/, '');
  const delimiter = separator?.[1] ?? delimiterOf(body.split('\n', 1)[0] ?? '');
  const [columns, ...rows] = records(body, delimiter);
  if (columns === undefined || columns.every((name) => name.trim() === '')) return null;
  return { columns: columns.map((name) => name.trim()), rows };
}

/** Without a byte order mark, the text is UTF-8. */
function decoded(bytes: Uint8Array): string {
  const [first, second] = bytes;
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  const encoding = isUtf16 ? (first === 0xff ? 'utf-16le' : 'utf-16be') : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}

/** Returns the one of comma, semicolon and tab that the header has most of. */
function delimiterOf(header: string): string {
  const bare = header.replaceAll(/"[^"]*"/g, '');
  const count = (delimiter: string) => bare.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, other) => (count(other) > count(best) ? other : best));
}

/** The header and the first rows as fields (RFC 4180). */
function records(text: string, delimiter: string): string[][] {
  const found: string[][] = [];
  let fields: string[] = [];
  let at = 0;
  while (at < text.length && found.length <= ROWS) {
    const { value, end } = readField(text, at, delimiter);
    fields.push(value);
    at = end + 1;
    if (text[end] === delimiter) continue;
    if (fields.some((field) => field !== '')) found.push(fields);
    fields = [];
  }
  return found;
}

/** The field at `from`, and the position of the delimiter or line end after it. */
function readField(text: string, from: number, delimiter: string): { value: string; end: number } {
  const quoted = text[from] === '"' ? /^"((?:[^"]|"")*)"/.exec(text.slice(from)) : null;
  let end = from + (quoted?.[0].length ?? 0);
  while (end < text.length && text[end] !== delimiter && text[end] !== '\n') end++;
  const value = quoted?.[1]?.replaceAll('""', '"') ?? text.slice(from, end);
  return { value, end };
}

/** Fields by other names that files of other programs use, without spaces and signs. */
const NAMES: Readonly<Record<string, string>> = {
  email: 'email',
  emailaddress: 'email',
  mail: 'email',
  phone: 'phone',
  phonenumber: 'phone',
  mobile: 'phone',
  firstname: 'firstName',
  givenname: 'firstName',
  vorname: 'firstName',
  prénom: 'firstName',
  lastname: 'lastName',
  familyname: 'lastName',
  surname: 'lastName',
  nachname: 'lastName',
  nom: 'lastName',
  language: 'language',
  consentmethod: 'consentMethod',
  consentdetails: 'consentDetails',
  consentipaddress: 'consentIpAddress',
  consentuseragent: 'consentUserAgent',
  consenttimestamp: 'consentTimestamp',
  globalstatus: 'globalStatus',
  isactive: 'isActive',
};

/** The field that a column probably has: one of NAMES, or a custom field with the name of the column; '' without a name. */
export function probableField(column: string): string {
  if (/^customFields\../i.test(column)) return `customFields.${column.slice('customFields.'.length)}`;
  const known = NAMES[column.toLowerCase().replaceAll(/[\s_.-]/g, '')];
  return known ?? (column === '' ? '' : `customFields.${column}`);
}
