import { csvFields, type ImportRecord } from '../audience/import/records.ts';
import { foldedColumn, suppressionExport } from '../audience/import/rows.ts';
import { bytesOfFile, openCsv } from '../audience/import/source.ts';
import { memberOf } from '../core/untrusted-json.ts';
import type { SuppressionEntry } from '../suppression/import.ts';
import {
  CONTACT_COLUMNS,
  type ExportForm,
  type ExportItem,
  type ExportKind,
  type PersonItem,
  PROVIDER_NAMES,
  PROVIDERS,
  type ProviderName,
} from './exports.ts';
import { ExportFault, type JsonEntry, jsonEntries } from './json-entries.ts';

/*
 * Recognizes the files of a provider by their content, and reads them. A file is read to its end before anything is imported,
 * so that one that is not complete, or has something else in it, leaves no trace. Lists of suppressions and contacts are
 * read again for the import, and have any length.
 */

/** A file that was recognized. */
export interface ExportFile {
  file: string;
  format: 'csv' | 'json';
  /** `nothing`: its lists are empty. */
  kind: ExportKind | 'nothing';
  entries: number;
  /** Those of all kinds but suppressions and contacts. */
  items: readonly { line: number; item: ExportItem }[];
  /** Lists that its people are in; at most MAX_LISTS. */
  lists: ReadonlySet<string>;
}

interface ReadOptions {
  /** Bytes that were read since the last call. */
  onBytes(count: number): void;
  signal: AbortSignal;
}

/** A person of a file, or why the entry is rejected. */
export interface PersonEntry {
  line: number;
  person: PersonItem | string;
}

/** Lists of people that become groups. */
export const MAX_LISTS = 1000;
const MAX_ITEMS = 20_000;
const MAX_ITEM_CHARACTERS = 256 * 1024 * 1024;
const HEAD_BYTES = 4096;
const ALL_LISTS: ReadonlySet<string> = new Set(
  Object.values(PROVIDERS).flatMap(({ forms }) =>
    forms.flatMap(({ lists }) => lists.filter((list) => list !== null)),
  ),
);

async function* bytesOf(file: string, { onBytes, signal }: ReadOptions): AsyncGenerator<Buffer> {
  for await (const chunk of bytesOfFile(file)) {
    signal.throwIfAborted();
    onBytes(chunk.length);
    yield chunk;
  }
}

/** Reads a file to its end. Rejects with ExportFault for one that is not an export of the provider. */
export async function readExport(
  file: string,
  provider: ProviderName,
  options: ReadOptions,
): Promise<ExportFile> {
  const format = await formatOf(file);
  return format === 'csv' ? readCsv(file, provider, options) : readJson(file, provider, options);
}

/** JSON begins with a bracket; CSV is any other text. */
async function formatOf(file: string): Promise<ExportFile['format']> {
  let head = Buffer.alloc(0);
  for await (const chunk of bytesOfFile(file)) {
    head = Buffer.concat([head, chunk]);
    if (head.length >= HEAD_BYTES) break;
  }
  const isUtf16 = (head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff);
  const text = head.toString(isUtf16 && head[0] === 0xff ? 'utf16le' : 'utf8', 0, HEAD_BYTES);
  if (!isUtf16 && text.includes('\0')) throw new ExportFault(0, 'is not text, but binary data');
  const start = text.replace(/^\ufeff/, '').trimStart();
  if (start === '') throw new ExportFault(0, 'is empty');
  return /^[[{]/.test(start) || (isUtf16 && /[[{]/.test(start.slice(0, 4))) ? 'json' : 'csv';
}

async function readJson(file: string, provider: ProviderName, options: ReadOptions): Promise<ExportFile> {
  const { title, forms } = PROVIDERS[provider];
  const items: { line: number; item: ExportItem }[] = [];
  const lists = new Set<string>();
  let kind: ExportKind | null = null;
  let entries = 0;
  let characters = 0;
  for await (const some of jsonEntries(bytesOf(file, options), ALL_LISTS))
    for (const entry of some) {
      if (entry.text === null) continue;
      const { line, text } = entry;
      const value = parse(entry);
      const form = formOf(forms, entry.list, value);
      if (form === null) throw new ExportFault(line, unknown(provider, entry.list, value));
      if (form.instead !== undefined)
        throw new ExportFault(line, `has only the names of templates: ${form.instead}`);
      kind ??= form.kind;
      if (kind !== form.kind)
        throw new ExportFault(
          line,
          `has ${form.kind} among ${kind} of ${title}: export them to files of their own`,
        );
      entries++;
      const person = form.person?.(value);
      for (const { list } of typeof person === 'object' ? person.groups : [])
        if (lists.size < MAX_LISTS) lists.add(list);
      if (form.read === undefined) continue;
      characters += text?.length ?? 0;
      if (entries > MAX_ITEMS || characters > MAX_ITEM_CHARACTERS)
        throw new ExportFault(
          line,
          `has more than ${MAX_ITEMS.toLocaleString('en')} ${kind}, or too long ones`,
        );
      const read = form.read(value);
      if (typeof read === 'string') throw new ExportFault(line, `${kind} of ${title}: ${read}`);
      items.push(...read.map((item) => ({ line, item })));
    }
  return { file, format: 'json', kind: kind ?? 'nothing', entries, items, lists };
}

function parse({ line, text }: JsonEntry): unknown {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return value;
  } catch {
    // The message of the parser would quote the file.
    throw new ExportFault(line, 'is not JSON');
  }
}

function formOf(forms: readonly ExportForm[], list: string | null, value: unknown): ExportForm | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const entry = { ...value };
  return (
    forms.find(
      ({ lists, keys, when }) =>
        lists.includes(list) && keys.every((key) => Object.hasOwn(entry, key)) && (when?.(entry) ?? true),
    ) ?? null
  );
}

const MAX_NAMED = 8;

/** What an entry is instead of one of the provider. */
function unknown(provider: ProviderName, list: string | null, value: unknown): string {
  const { title, forms } = PROVIDERS[provider];
  for (const other of PROVIDER_NAMES) {
    const form = formOf(PROVIDERS[other].forms, list, value);
    if (form !== null) return `looks like ${form.kind} of ${PROVIDERS[other].title}, not of ${title}`;
  }
  const message = memberOf(value, 'Message') ?? memberOf(value, 'message') ?? memberOf(value, 'errors');
  const kinds = [...new Set(forms.filter(({ instead }) => instead === undefined).map(({ kind }) => kind))];
  const what = `is not an export of ${title} that can be moved (${kinds.join(', ')})`;
  if (typeof message === 'string') return `${what}: it is the answer "${shortened(message)}"`;
  const names = typeof value === 'object' && value !== null ? Object.keys(value).map(shortened) : [];
  return names.length === 0 ? what : `${what}: it has ${names.slice(0, MAX_NAMED).join(', ')}`;
}

function shortened(text: string): string {
  return text.slice(0, 80).replaceAll(/\p{Cc}/gu, ' ');
}

async function readCsv(file: string, provider: ProviderName, options: ReadOptions): Promise<ExportFile> {
  const { title } = PROVIDERS[provider];
  const { header, delimiter, recordsAt, close } = await openCsv(bytesOf(file, options));
  try {
    if (header === undefined) throw new ExportFault(0, 'is empty');
    if (header.fault !== null) throw new ExportFault(header.line, header.fault);
    const names = csvFields(header.text, delimiter).map(foldedColumn);
    const kind = kindOfCsv(provider, names);
    if (kind === null) {
      const other = suppressionExport(names);
      const named = Object.entries(PROVIDERS).find(
        ([, { service }]) => service !== null && service === other,
      );
      const what =
        named === undefined
          ? `is not an export of ${title}: it has the columns ${names.slice(0, MAX_NAMED).map(shortened).join(', ')}`
          : `looks like suppressions of ${named[1].title}, not of ${title}`;
      throw new ExportFault(header.line, what);
    }
    let entries = 0;
    for await (const records of recordsAt(header.end)) entries += records.length;
    return { file, format: 'csv', kind, entries, items: [], lists: new Set() };
  } finally {
    await close();
  }
}

function kindOfCsv(provider: ProviderName, names: readonly string[]): 'suppressions' | 'contacts' | null {
  const { service } = PROVIDERS[provider];
  const columns = Object.keys(CONTACT_COLUMNS[provider] ?? {});
  if (columns.length > 0 && columns.every((name) => names.includes(name))) return 'contacts';
  return service !== null && suppressionExport(names) === service ? 'suppressions' : null;
}

/** The suppressions of a file. */
export async function* suppressionsOf(
  { file, format }: ExportFile,
  provider: ProviderName,
  options: ReadOptions,
): AsyncGenerator<SuppressionEntry[]> {
  if (format === 'csv') {
    for await (const some of csvEntries(file, options))
      yield some.map(({ line, fields }) => ({
        line,
        fields: typeof fields === 'string' ? fields : new Map(fields),
      }));
    return;
  }
  const { forms } = PROVIDERS[provider];
  for await (const some of jsonEntries(bytesOf(file, options), ALL_LISTS))
    yield some.flatMap((entry): SuppressionEntry[] => {
      if (entry.text === null) return [];
      const value = parse(entry);
      const names = formOf(forms, entry.list, value)?.names ?? {};
      const fields = Object.entries({ ...(value as object) }).map(
        ([name, inner]) => [foldedColumn(names[name] ?? name), textOf(inner)] as const,
      );
      return [{ line: entry.line, fields: new Map(fields) }];
    });
}

/** A value as a CSV has it. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value.trim();
  return value === null || value === undefined ? '' : JSON.stringify(value);
}

/** The people of a file. */
export async function* peopleOf(
  { file, format }: ExportFile,
  provider: ProviderName,
  options: ReadOptions,
): AsyncGenerator<PersonEntry[]> {
  const { forms } = PROVIDERS[provider];
  const person = forms.find(({ kind }) => kind === 'contacts')?.person;
  if (person === undefined) return;
  if (format === 'json') {
    for await (const some of jsonEntries(bytesOf(file, options), ALL_LISTS))
      yield some.flatMap((entry): PersonEntry[] =>
        entry.text === null ? [] : [{ line: entry.line, person: person(parse(entry)) }],
      );
    return;
  }
  const columns = CONTACT_COLUMNS[provider] ?? {};
  for await (const some of csvEntries(file, options))
    yield some.map(({ line, fields }): PersonEntry => {
      if (typeof fields === 'string') return { line, person: fields };
      const entry = Object.fromEntries(
        [...fields].flatMap(([column, value]) => {
          const name = columns[column];
          return name === undefined || value === '' ? [] : [[name, value] as const];
        }),
      );
      if (!('attribs' in entry)) return { line, person: person(entry) };
      try {
        return { line, person: person({ ...entry, attribs: JSON.parse(entry['attribs'] ?? '') }) };
      } catch {
        return { line, person: 'attributes: is not JSON' };
      }
    });
}

interface CsvEntry {
  line: number;
  /** By folded columns; a string: why the row cannot be read. */
  fields: ReadonlyMap<string, string> | string;
}

async function* csvEntries(file: string, options: ReadOptions): AsyncGenerator<CsvEntry[]> {
  const { header, delimiter, recordsAt, close } = await openCsv(bytesOf(file, options));
  try {
    if (header === undefined) return;
    const names = csvFields(header.text, delimiter).map(foldedColumn);
    const read = ({ line, text, fault }: ImportRecord): CsvEntry => {
      if (fault !== null) return { line, fields: fault };
      const values = csvFields(text, delimiter).map((value) => value.trim());
      if (values.length !== names.length)
        return { line, fields: `has ${values.length} columns, the header has ${names.length}` };
      return { line, fields: new Map(names.map((name, index) => [name, values[index] ?? ''])) };
    };
    for await (const records of recordsAt(header.end)) yield records.map(read);
  } finally {
    await close();
  }
}
