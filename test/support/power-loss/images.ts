import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/*
 * The files that a power failure leaves, for any moment of a recorded run (see recorder.c): everything that was flushed,
 * and of each later write the sectors that the disk happened to have written. The recorder and the test append to one
 * record, so that it also states what the test knew at that moment.
 */

/** Starts a program with its database recorded: variables of its environment. */
export function recordingEnvironment(options: {
  /** Where the library is built. */
  dir: string;
  record: string;
  database: string;
}): Record<string, string> {
  const library = `${options.dir}/recorder.so`;
  const source = fileURLToPath(new URL('recorder.c', import.meta.url));
  execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-Wall', '-Werror', '-o', library, source, '-ldl']);
  writeFileSync(options.record, '');
  return {
    LD_PRELOAD: library,
    WRITE_RECORD_FILE: options.record,
    WRITE_RECORD_DATABASE: options.database,
  };
}

const KINDS = ['', 'write', 'truncate', 'flush begins', 'flush ends', 'fact'] as const;
const FACT = 5;
const HEADER_BYTES = 24;

/** Appends a fact to the record: what a client may rely on from now on. */
export function recordFact(record: string, fact: object): void {
  const data = Buffer.from(JSON.stringify(fact));
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(FACT, 0);
  header.writeBigUInt64LE(BigInt(data.length), 16);
  appendFileSync(record, Buffer.concat([header, data]));
}

/** An operation, or a fact. */
export interface Entry {
  kind: (typeof KINDS)[number];
  file: 'database' | 'log';
  /** Of a write: its offset. Of a truncation: the new size. Of a flush: its number. */
  value: number | bigint;
  data: Buffer;
}

/** Without a last entry that was interrupted by the end of the process. */
export function readRecord(file: string): Entry[] {
  const bytes = readFileSync(file);
  const entries: Entry[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const kind = KINDS[bytes.readUInt32LE(at)];
    if (kind === undefined || kind === '') throw new Error(`the record has no entry at ${at}`);
    const value = bytes.readBigUInt64LE(at + 8);
    const end = at + HEADER_BYTES + Number(bytes.readBigUInt64LE(at + 16));
    if (end > bytes.length) break;
    entries.push({
      kind,
      file: bytes.readUInt32LE(at + 4) === 0 ? 'database' : 'log',
      value: kind === 'write' || kind === 'truncate' ? Number(value) : value,
      data: bytes.subarray(at + HEADER_BYTES, end),
    });
    at = end;
  }
  return entries;
}

/** The state after a power failure. */
export interface Image {
  /** Number of entries of the record before it. */
  cut: number;
  /** The facts before it, as they were recorded. */
  facts: unknown[];
  /** Writes that were not flushed. */
  unflushed: number;
  /** Creates the files: the database in place of that at `database`. */
  write(database: string): void;
}

/** Disks write whole sectors. */
const SECTOR_BYTES = 512;

/**
 * The images at the cuts, in their order. `survives`: called for each sector that was written and not flushed, and for
 * each truncation: whether the disk has done it.
 */
export function* imagesOf(
  entries: readonly Entry[],
  cuts: readonly number[],
  survives: () => boolean,
): Generator<Image> {
  const flushed = { database: new FileContent(), log: new FileContent() };
  /** Writes and truncations that no flush covers yet, with their positions in the record. */
  let pending: { position: number; entry: Entry }[] = [];
  const begun = new Map<bigint, number>();
  const facts: unknown[] = [];
  let position = 0;
  for (const cut of cuts.toSorted((a, b) => a - b)) {
    for (; position < cut; position++) {
      const entry = entries[position];
      if (entry === undefined) throw new Error(`the record has no entry ${position}`);
      if (entry.kind === 'fact') facts.push(JSON.parse(entry.data.toString()));
      else if (typeof entry.value === 'number') pending.push({ position, entry });
      else if (entry.kind === 'flush begins') begun.set(entry.value, position);
      else {
        const start = begun.get(entry.value);
        if (start === undefined) throw new Error(`flush ${entry.value} ended without a beginning`);
        begun.delete(entry.value);
        const isCovered = (each: { position: number; entry: Entry }) =>
          each.entry.file === entry.file && each.position < start;
        for (const each of pending) if (isCovered(each)) flushed[entry.file].apply(each.entry);
        pending = pending.filter((each) => !isCovered(each));
      }
    }
    const files = { database: flushed.database.clone(), log: flushed.log.clone() };
    for (const { entry } of pending) files[entry.file].applyPartly(entry, survives);
    yield {
      cut,
      facts: [...facts],
      unflushed: pending.length,
      write: (database) => {
        writeFileSync(database, files.database.bytes());
        writeFileSync(`${database}-wal`, files.log.bytes());
        rmSync(`${database}-shm`, { force: true });
      },
    };
  }
}

/** A file as it grows. What was never written is zero, as in a file with holes. */
class FileContent {
  #bytes: Buffer;
  #size = 0;

  constructor(bytes = Buffer.alloc(1 << 20), size = 0) {
    this.#bytes = bytes;
    this.#size = size;
  }

  clone(): FileContent {
    return new FileContent(Buffer.from(this.#bytes), this.#size);
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  apply(entry: Entry): void {
    if (entry.kind === 'truncate') this.#truncate(Number(entry.value));
    else this.#write(Number(entry.value), entry.data);
  }

  applyPartly(entry: Entry, survives: () => boolean): void {
    if (entry.kind === 'truncate') {
      if (survives()) this.apply(entry);
      return;
    }
    const start = Number(entry.value);
    const end = start + entry.data.length;
    for (let at = start; at < end; ) {
      const next = Math.min(end, at - (at % SECTOR_BYTES) + SECTOR_BYTES);
      if (survives()) this.#write(at, entry.data.subarray(at - start, next - start));
      at = next;
    }
  }

  #write(at: number, data: Buffer): void {
    const end = at + data.length;
    if (end > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * this.#bytes.length));
      this.#bytes.copy(larger);
      this.#bytes = larger;
    }
    data.copy(this.#bytes, at);
    this.#size = Math.max(this.#size, end);
  }

  #truncate(size: number): void {
    if (size < this.#size) this.#bytes.fill(0, size, this.#size);
    this.#size = size;
  }
}
