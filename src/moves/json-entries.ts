import { plainText } from '../audience/import/source.ts';

/*
 * Reads JSON files of any length: yields the entries of their lists one by one, and documents without a list as a whole. A
 * file may have several documents, as when pages of a list are written one after another. Memory is bounded by the length of
 * an entry.
 */

export interface JsonEntry {
  /** The line on which it begins, from 1. */
  line: number;
  /** The path of its list, such as `data.results`; '' for a list that is the document; null: it is a document. */
  list: string | null;
  /** Null: its list begins here, before its entries. */
  text: string | null;
}

/** Why a file cannot be read; `line` 0: all of it. */
export class ExportFault extends Error {
  readonly line: number;
  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/** Bytes of an entry. */
const MAX_ENTRY_BYTES = 8 * 1024 * 1024;
const MAX_DEPTH = 64;
/** Levels at which a list of entries may be, besides the document. */
const LIST_DEPTH = 2;
const MAX_KEY_BYTES = 256;

const LF = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === LF || byte === 0x09 || byte === 0x0d;
}

/** `lists`: the paths whose arrays have entries. Rejects with ExportFault. */
export async function* jsonEntries(
  bytes: AsyncIterable<Buffer>,
  lists: ReadonlySet<string>,
): AsyncGenerator<JsonEntry[]> {
  const reader = createEntryReader(lists);
  let isFirst = true;
  for await (const chunk of plainText(bytes)) {
    const hasBom = isFirst && chunk.subarray(0, BOM.length).equals(BOM);
    isFirst = isFirst && chunk.length === 0;
    const entries = reader.push(hasBom ? chunk.subarray(BOM.length) : chunk);
    if (entries.length > 0) yield entries;
  }
  reader.end();
}

function createEntryReader(lists: ReadonlySet<string>) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  /** The opening bytes of what is open. */
  const open: number[] = [];
  /** The key at each level of the outermost objects. */
  const keys: string[] = [];
  let line = 1;
  let inString = false;
  let escaped = false;
  let expectsKey = false;
  /** The bytes of a key; null: the string is not one, or it is longer than that of a list. */
  let key: number[] | null = null;
  /** The level of the list whose entries are read; null: no list. */
  let listDepth: number | null = null;
  let list: string | null = null;
  let entryLine = 0;
  let parts: Buffer[] | null = null;
  let length = 0;

  const fault = (message: string): never => {
    throw new ExportFault(line, message);
  };

  function add(part: Buffer): void {
    length += part.length;
    if (length > MAX_ENTRY_BYTES)
      throw new ExportFault(entryLine, `an entry is longer than ${MAX_ENTRY_BYTES / 1024 / 1024} MiB`);
    parts?.push(part);
  }

  function textOfEntry(): string {
    try {
      return decoder.decode(Buffer.concat(parts ?? []));
    } catch {
      throw new ExportFault(entryLine, 'is not valid UTF-8');
    }
  }

  return {
    push: (chunk: Buffer): JsonEntry[] => {
      const entries: JsonEntry[] = [];
      /** Where the part of the entry in this chunk begins. */
      let from = 0;
      const begin = (at: number) => {
        parts = [];
        length = 0;
        entryLine = line;
        from = at;
      };
      const finish = (end: number) => {
        add(chunk.subarray(from, end));
        entries.push({ line: entryLine, list, text: textOfEntry() });
        parts = null;
      };
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at] ?? 0;
        if (byte === LF) line++;
        if (byte < 0x20 && !isBlank(byte)) fault('has control characters: it is not text');
        if (inString) {
          if (escaped) escaped = false;
          else if (byte === BACKSLASH) escaped = true;
          else if (byte === QUOTE) {
            inString = false;
            if (key !== null) keys[open.length - 1] = Buffer.from(key).toString();
            key = null;
            continue;
          }
          if (key !== null && key.push(byte) > MAX_KEY_BYTES) key = null;
          continue;
        }
        if (isBlank(byte)) continue;
        if (open.length === 0 && byte !== OPEN_LIST && byte !== OPEN_OBJECT) fault('is not JSON');
        const isOpening = byte === OPEN_LIST || byte === OPEN_OBJECT;
        const isInList = listDepth === open.length;
        if (isInList && parts === null && byte !== COMMA && byte !== CLOSE_LIST) begin(at);
        if (byte === QUOTE) {
          inString = true;
          const isKey = expectsKey && open.length <= LIST_DEPTH;
          key = isKey ? [] : null;
          // A key that is not read must not leave the one before it.
          if (isKey) keys[open.length - 1] = '';
          expectsKey = false;
        } else if (isOpening) {
          if (open.length === 0) {
            list = null;
            begin(at);
          }
          open.push(byte);
          if (open.length > MAX_DEPTH) fault(`is nested deeper than ${MAX_DEPTH} levels`);
          expectsKey = byte === OPEN_OBJECT;
          const path = pathOf(open, keys);
          if (listDepth === null && path !== null && lists.has(path)) {
            list = path;
            listDepth = open.length;
            parts = null;
            entries.push({ line, list, text: null });
          }
        } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
          const opened = open.pop();
          if ((opened === OPEN_LIST) !== (byte === CLOSE_LIST)) fault('is not JSON: brackets do not match');
          if (listDepth === open.length + 1) {
            if (parts !== null) finish(at);
            listDepth = null;
          } else if (listDepth === open.length || (open.length === 0 && list === null)) finish(at + 1);
        } else if (byte === COMMA) {
          if (isInList && parts !== null) finish(at);
          expectsKey = open.at(-1) === OPEN_OBJECT;
        } else if (byte === COLON) expectsKey = false;
      }
      if (parts !== null) add(chunk.subarray(from));
      return entries;
    },
    end: (): void => {
      if (open.length > 0) fault('ends in the middle of an entry: the file is not complete');
    },
  };
}

/** The path of an array that has just been opened; null: it is not one of an outer level. */
function pathOf(open: readonly number[], keys: readonly string[]): string | null {
  const outer = open.slice(0, -1);
  if (open.at(-1) !== OPEN_LIST || outer.length > LIST_DEPTH || outer.includes(OPEN_LIST)) return null;
  return keys.slice(0, outer.length).join('.');
}
