import type { GlobalStatus, KnownContact } from '../../store/contacts/contacts.ts';
import { CHUNK_SIZE, NO_BITS } from '../../store/contacts/engagement.ts';
import { readQuery } from '../../store/readers/reads.ts';
import type { Page } from '../../store/rows/page.ts';
import type { Tables } from '../../store/tables.ts';
import { decodeColumn, numbersOf } from './columns.ts';
import type { SegmentFilter } from './filter.ts';
import { type CompiledFilter, type Condition, compileFilter, contactValues, matches } from './match.ts';

/*
 * Finds the contacts of an account that match a filter, chunk by chunk, in a reader thread. Copied contacts are tested by
 * their columns; those that changed since, and those that are not copied, by what their tables have now. The result is exact.
 */

/** Contacts with `after` < number <= `last`. */
interface Range {
  after: number;
  last: number;
}

const ALL: Range = { after: 0, last: Number.MAX_SAFE_INTEGER };

/** The contacts of a chunk that match, ascending. Of those outside of `range` none is read from its tables. */
function matchingSeqs(
  tables: Tables,
  accountId: string,
  chunk: number,
  filter: CompiledFilter,
  range: Range = ALL,
): number[] {
  const { segmentColumns } = tables;
  const base = chunk * CHUNK_SIZE;
  const first = Math.max(base, range.after + 1);
  const last = Math.min(base + CHUNK_SIZE - 1, range.last);
  const isMatch = (contact: KnownContact) => matches(filter, contactValues(tables, contact));
  const copy = segmentColumns.copied(chunk, accountId);
  if (copy === null)
    return segmentColumns
      .contacts(accountId, first, last)
      .filter(isMatch)
      .map(({ seq }) => seq);
  const changed = new Set(segmentColumns.changes(first, last).map(([seq]) => seq));
  const copied = numbersOf(copy.copied);
  const found: number[] = [];
  const isWanted = (seq: number) => seq >= first && seq <= last;
  const results = testChunk(tables, { accountId, chunk, copied, first, last, campaigns: new Map() }, filter);
  for (const [index, number] of copied.entries())
    if (results[index] === 1 && isWanted(base + number) && !changed.has(base + number))
      found.push(base + number);
  const others = [...numbersOf(copy.others)].map((number) => base + number).filter(isWanted);
  const direct = new Set([...changed, ...others]);
  if (direct.size === 0) return found;
  for (const seq of direct) {
    const contact = tables.contacts.bySeq(seq);
    if (contact?.account_id === accountId && isMatch(contact)) found.push(seq);
  }
  return found.sort((one, two) => one - two);
}

interface Chunk {
  accountId: string;
  chunk: number;
  /** The copied contacts. */
  copied: Uint16Array;
  /** The results of contacts before and after these are not needed. */
  first: number;
  last: number;
  /** Bits of campaigns that were read, by column: several conditions may name the same campaign. */
  campaigns: Map<string, Uint8Array>;
}

/** 1 for each copied contact that matches. */
function testChunk(tables: Tables, chunk: Chunk, filter: CompiledFilter): Uint8Array {
  if ('test' in filter) return testColumn(tables, chunk, filter);
  if ('not' in filter) {
    const results = testChunk(tables, chunk, filter.not);
    for (let index = 0; index < results.length; index++) results[index] = results[index] === 1 ? 0 : 1;
    return results;
  }
  const isAll = 'all' in filter;
  const [first, ...others] = isAll ? filter.all : filter.any;
  if (first === undefined) return new Uint8Array(chunk.copied.length).fill(isAll ? 1 : 0);
  const results = testChunk(tables, chunk, first);
  for (const inner of others) {
    // Nothing can change any more.
    if (!results.includes(isAll ? 1 : 0)) break;
    const next = testChunk(tables, chunk, inner);
    for (let index = 0; index < results.length; index++)
      results[index] = isAll
        ? (results[index] ?? 0) & (next[index] ?? 0)
        : (results[index] ?? 0) | (next[index] ?? 0);
  }
  return results;
}

const CAMPAIGN = 'campaign:';

function testColumn(
  tables: Tables,
  { accountId, chunk, copied, first, last, campaigns }: Chunk,
  { column, test }: Condition,
): Uint8Array {
  const results = new Uint8Array(copied.length);
  if (column.startsWith(CAMPAIGN)) {
    let bits = campaigns.get(column);
    if (bits === undefined) {
      bits = tables.engagement.ofCampaignInChunk(column.slice(CAMPAIGN.length), first, last);
      campaigns.set(column, bits);
    }
    const byBits = Uint8Array.from({ length: NO_BITS + 1 }, (_, value) =>
      test(value === NO_BITS ? null : value) ? 1 : 0,
    );
    for (let index = 0; index < results.length; index++)
      results[index] = byBits[bits[copied[index] ?? 0] ?? NO_BITS] ?? 0;
    return results;
  }
  const { distinct, codes } = decodeColumn(
    tables.segmentColumns.column(chunk, accountId, column),
    copied.length,
  );
  const byCode = Uint8Array.from(distinct, (value) => (test(value) ? 1 : 0));
  for (let index = 0; index < results.length; index++) results[index] = byCode[codes[index] ?? 0] ?? 0;
  return results;
}

/** Which contacts of an account: those that match all of `filters`, and none of `excluded`. */
export interface Selection {
  accountId: string;
  /** Each as JSON. */
  filters: string[];
  excluded: string[];
  /** Contacts that were sent these campaigns are excluded. */
  excludedCampaigns: string[];
  /** Epoch ms. */
  now: number;
}

export const NOTHING_EXCLUDED = { excluded: [], excludedCampaigns: [] };

function compileSelection({ filters, excluded, excludedCampaigns, now }: Selection): CompiledFilter {
  // Sound: filters are validated before they are stored.
  const compile = (filter: string) => compileFilter(JSON.parse(filter) as SegmentFilter, now);
  return {
    all: [
      ...filters.map(compile),
      ...excluded.map((filter) => ({ not: compile(filter) })),
      ...excludedCampaigns.map((campaignId) => ({
        column: `${CAMPAIGN}${campaignId}`,
        test: (value: unknown) => typeof value !== 'number',
      })),
    ],
  };
}

/** The numbers of the contacts of a selection, chunk by chunk, ascending. */
export function* selectedByChunk(tables: Tables, selection: Selection): Generator<number[]> {
  const filter = compileSelection(selection);
  for (const chunk of chunksFrom(tables, selection.accountId, 0))
    yield matchingSeqs(tables, selection.accountId, chunk, filter);
}

/**
 * Counts the contacts of a selection from a chunk on, for as long as a portion may take. `next`: the chunk with which to
 * continue; null: all are counted.
 */
export const countPortion = readQuery(
  'countPortion',
  (tables: Tables, selection: Selection, from: number): { count: number; next: number | null } => {
    const filter = compileSelection(selection);
    const end = performance.now() + PORTION_MS;
    let count = 0;
    for (const chunk of chunksFrom(tables, selection.accountId, from)) {
      count += matchingSeqs(tables, selection.accountId, chunk, filter).length;
      if (performance.now() >= end) return { count, next: chunk + 1 };
    }
    return { count, next: null };
  },
);

/** Counts the contacts of a selection, and returns the newest ones. */
export const countSelected = readQuery(
  'countSelected',
  (tables: Tables, selection: Selection, newest: number): { count: number; newest: KnownContact[] } => {
    let count = 0;
    let seqs: number[] = [];
    for (const found of selectedByChunk(tables, selection)) {
      count += found.length;
      if (found.length > 0) seqs = [...seqs, ...found.slice(-newest)].slice(-newest);
    }
    return { count, newest: seqs.toReversed().flatMap((seq) => tables.contacts.bySeq(seq) ?? []) };
  },
);

/** Which contacts of a segment. */
export interface SegmentPage {
  segmentId: string;
  status: GlobalStatus | null;
  /** Only contacts with lower numbers; null: all. */
  beforeSeq: number | null;
  limit: number;
}

/** A page of the contacts of a segment, newest first; null: there is no such segment. `now`: epoch ms. */
export const segmentContacts = readQuery(
  'segmentContacts',
  (
    tables: Tables,
    accountId: string,
    { segmentId, status, beforeSeq, limit }: SegmentPage,
    now: number,
  ): Page<KnownContact> | null => {
    const segment = tables.segments.get(accountId, segmentId);
    if (segment === null) return null;
    const ofSegment = compileSelection({ ...NOTHING_EXCLUDED, accountId, filters: [segment.filter], now });
    const filter =
      status === null
        ? ofSegment
        : { all: [compileFilter({ field: 'globalStatus', op: 'is', value: status }, now), ofSegment] };
    const end = beforeSeq ?? Number.MAX_SAFE_INTEGER;
    const seqs: number[] = [];
    let chunk = tables.segmentColumns.previous(accountId, Math.floor((end - 1) / CHUNK_SIZE));
    while (chunk !== null && seqs.length <= limit) {
      const found = matchingSeqs(tables, accountId, chunk, filter);
      seqs.push(...found.filter((seq) => seq < end).toReversed());
      chunk = chunk === 0 ? null : tables.segmentColumns.previous(accountId, chunk - 1);
    }
    const rows = seqs.slice(0, limit).flatMap((seq) => tables.contacts.bySeq(seq) ?? []);
    return { rows, more: seqs.length > limit };
  },
);

/**
 * The next selected contacts after one, ascending, at most `limit`, and as many as are found while a portion may take. `upTo`:
 * all contacts up to this one were tested.
 */
export const nextSelected = readQuery(
  'nextSelected',
  (tables: Tables, selection: Selection, range: Range, limit: number): { seqs: number[]; upTo: number } => {
    const filter = compileSelection(selection);
    const seqs: number[] = [];
    const end = performance.now() + PORTION_MS;
    for (const chunk of chunksFrom(tables, selection.accountId, Math.floor((range.after + 1) / CHUNK_SIZE))) {
      const first = chunk * CHUNK_SIZE;
      if (first > range.last) break;
      for (const seq of matchingSeqs(tables, selection.accountId, chunk, filter, range)) {
        seqs.push(seq);
        if (seqs.length === limit) return { seqs, upTo: seq };
      }
      if (performance.now() >= end) return { seqs, upTo: Math.min(range.last, first + CHUNK_SIZE - 1) };
    }
    return { seqs, upTo: range.last };
  },
);

/** How long a read of a part of the contacts goes on, so that it ends within `readers.budget`, the shortest of which is 100 ms. */
const PORTION_MS = 50;

/** The chunks with contacts of an account, ascending. */
function* chunksFrom(tables: Tables, accountId: string, from: number): Generator<number> {
  let chunk = tables.segmentColumns.next(accountId, from);
  while (chunk !== null) {
    yield chunk;
    chunk = tables.segmentColumns.next(accountId, chunk + 1);
  }
}
