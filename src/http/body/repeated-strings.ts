import { isUtf8 } from 'node:buffer';
import { LRUCache } from 'lru-cache';
import type { FindString, KnownString } from '../../core/json-scan.ts';
import { decodeUtf8 } from '../../core/utf8.ts';

/**
 * Long strings that an account sends repeatedly in its requests, such as the HTML of a template. They are compared as bytes: a
 * string that is known is neither decoded nor parsed nor stored again, which takes most of the time of a large body.
 */
export interface RepeatedStrings {
  /** Finds the strings of an account. */
  finder(accountId: string): FindString;
  /** To be called when a valid body had another long string. Returns whether it is repeated, so that it should be learned. */
  sent(accountId: string, literal: Buffer): boolean;
  /** Makes a string known. It is parsed for this, which takes milliseconds for a megabyte. */
  learn(accountId: string, literal: Buffer): void;
}

interface Entry extends KnownString {
  fingerprint: string;
  /** The key of the list of candidates that has the entry. */
  head: string;
  /** Other literals with the same fingerprint that were sent since the entry was last used. */
  misses: number;
}

/** Bytes of all known strings and their literals. */
const MAX_KNOWN_BYTES = 16 * 1024 * 1024;
/** A larger string would take the memory of several others. */
const MAX_LITERAL_BYTES = MAX_KNOWN_BYTES / 8;
/** A character occupies one or two bytes in memory, and at least one in the literal. */
const BYTES_PER_LITERAL_BYTE = 3;
/** Strings that were sent once. */
const MAX_SEEN = 1000;
/** Bytes at the beginning of a literal that select the candidates; templates often have the same. */
const HEAD_BYTES = 32;
const MAX_CANDIDATES = 32;

/** Begins empty; the strings that were used least recently are dropped. */
export function createRepeatedStrings(): RepeatedStrings {
  /** Fingerprints of strings that were sent once. */
  const seen = new LRUCache<string, true>({ max: MAX_SEEN });
  /** Known strings with the same head, the one that was learned last first. */
  const candidates = new Map<string, Entry[]>();
  /** By fingerprint. */
  const known = new LRUCache<string, Entry>({
    maxSize: MAX_KNOWN_BYTES,
    sizeCalculation: ({ literal }) => literal.length * BYTES_PER_LITERAL_BYTE,
    dispose: removeCandidate,
  });

  function removeCandidate(entry: Entry): void {
    const others = candidates.get(entry.head)?.filter((one) => one !== entry) ?? [];
    if (others.length === 0) candidates.delete(entry.head);
    else candidates.set(entry.head, others);
  }

  return {
    finder: (accountId) => (chunk, start) => {
      if (candidates.size === 0) return null;
      const head = headOf(accountId, chunk, start);
      return candidates.get(head)?.find(({ literal }) => equalsStart(chunk, start, literal)) ?? null;
    },
    sent: (accountId, literal) => {
      if (literal.length > MAX_LITERAL_BYTES) return false;
      const fingerprint = fingerprintOf(accountId, literal);
      const entry = known.peek(fingerprint);
      // Mail whose texts differ in a few characters has equal fingerprints, and each text is sent once.
      if (entry !== undefined) return isPowerOfTwo(++entry.misses);
      if (seen.delete(fingerprint)) return true;
      seen.set(fingerprint, true);
      return false;
    },
    learn: (accountId, literal) => {
      const value = parsed(literal);
      if (value === null) return;
      const head = headOf(accountId, literal, 0);
      const fingerprint = fingerprintOf(accountId, literal);
      const entry: Entry = {
        // A copy: `literal` is a part of the whole body.
        literal: Buffer.from(literal),
        value,
        fingerprint,
        head,
        misses: known.peek(fingerprint)?.misses ?? 0,
        used: () => {
          entry.misses = 0;
          known.get(fingerprint);
        },
      };
      known.set(fingerprint, entry);
      const oldest = candidates.get(head)?.[MAX_CANDIDATES - 1];
      if (oldest !== undefined) known.delete(oldest.fingerprint);
      candidates.set(head, [entry, ...(candidates.get(head) ?? [])]);
    },
  };
}

/** Whether the chunk has the bytes of the literal at `start`, as far as it reaches. */
function equalsStart(chunk: Buffer, start: number, literal: Buffer): boolean {
  const length = Math.min(literal.length, chunk.length - start);
  return literal.compare(chunk, start, start + length, 0, length) === 0;
}

function headOf(accountId: string, bytes: Buffer, start: number): string {
  return `${accountId} ${bytes.toString('latin1', start, start + HEAD_BYTES)}`;
}

/** Equal for equal literals of an account, and almost always different for different ones of several kilobytes. */
function fingerprintOf(accountId: string, literal: Buffer): string {
  const sample = (at: number) => literal.toString('latin1', at, at + HEAD_BYTES);
  const samples = sample(0) + sample(literal.length >>> 1) + sample(literal.length - HEAD_BYTES);
  return `${accountId} ${literal.length} ${samples}`;
}

function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

/** Parses a literal without its quotes; null: it is not valid. */
function parsed(literal: Buffer): string | null {
  if (!isUtf8(literal)) return null;
  try {
    const value: unknown = JSON.parse(`"${decodeUtf8(literal)}"`);
    return typeof value === 'string' ? value : null;
  } catch {
    // Parsing the body reports the position.
    return null;
  }
}
