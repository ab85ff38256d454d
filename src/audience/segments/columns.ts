import type { KnownContact } from '../../store/contacts/contacts.ts';
import { CHUNK_SIZE, type EngagementRow } from '../../store/contacts/engagement.ts';
import type { ChunkMembership, ContactChange } from '../../store/contacts/segment-columns.ts';
import { readQuery } from '../../store/readers/reads.ts';
import type { Tables } from '../../store/tables.ts';
import {
  customFieldsOf,
  ENGAGEMENT_COLUMNS,
  FIELDS,
  groupValue,
  lastJoined,
  unansweredValue,
} from './match.ts';

/*
 * Copies of contacts by column. A column of a chunk has the distinct values as JSON, and a number among them for each
 * contact: a condition tests each distinct value once, then looks up the result of each contact. That takes some ten
 * nanoseconds a contact, where reading it from its tables takes ten microseconds.
 *
 * A copy is never wrong: contacts that changed after it was made are read from their tables, and so are those whose values are
 * too long or have too many names.
 */

/** Bytes of the custom fields of a contact that is copied. */
const MAX_CUSTOM_BYTES = 4096;
/** Names of custom fields that one chunk of an account has columns for. */
const MAX_CUSTOM_COLUMNS = 200;
/** Contacts of an account in a chunk below which they are not copied. */
const MIN_CONTACTS = 32;

/** The bytes before the values. */
const HEADER = 4;

/** `values`: of the contacts in their order; null: none of them has a value. */
export function encodeColumn(values: readonly unknown[]): Buffer | null {
  const codes = new Map<string, number>([['null', 0]]);
  const numbers = new Uint16Array(values.length);
  for (const [index, value] of values.entries()) {
    const text = JSON.stringify(value ?? null);
    let code = codes.get(text);
    if (code === undefined) {
      code = codes.size;
      codes.set(text, code);
    }
    numbers[index] = code;
  }
  if (codes.size === 1) return null;
  const distinct = Buffer.from(`[${[...codes.keys()].join(',')}]`);
  const width = codes.size <= 256 ? 1 : 2;
  const encoded = Buffer.alloc(HEADER + width * values.length + distinct.length);
  encoded[0] = width;
  for (const [index, code] of numbers.entries())
    if (width === 1) encoded[HEADER + index] = code;
    else encoded.writeUInt16LE(code, HEADER + 2 * index);
  distinct.copy(encoded, HEADER + width * values.length);
  return encoded;
}

/** The distinct values of a column, and the index of each contact's value among them. `size`: number of contacts. */
export function decodeColumn(
  data: Buffer | null,
  size: number,
): { distinct: readonly unknown[]; codes: Uint8Array | Uint16Array } {
  if (data === null) return { distinct: [null], codes: new Uint8Array(size) };
  const width = data[0] ?? 1;
  const end = HEADER + width * size;
  // Sound: `encodeColumn` writes a list.
  const distinct = JSON.parse(data.toString('utf8', end)) as unknown[];
  const bytes = data.subarray(HEADER, end);
  return { distinct, codes: width === 1 ? bytes : numbersOf(bytes) };
}

/** 16-bit numbers, little-endian. */
export function numbersOf(bytes: Buffer): Uint16Array {
  const aligned = new Uint8Array(bytes).buffer;
  return new Uint16Array(aligned);
}

function bytesOf(seqs: readonly number[]): ArrayBuffer {
  return Uint16Array.from(seqs, (seq) => seq % CHUNK_SIZE).buffer;
}

/** The copies of a chunk, as a reader thread makes them. */
interface ChunkCopies {
  accounts: {
    accountId: string;
    copied: ArrayBuffer;
    others: ArrayBuffer;
    columns: { name: string; data: ArrayBuffer }[];
  }[];
  changes: ContactChange[];
}

/** Copies the contacts of a chunk, of all accounts with enough of them. */
export const copyChunk = readQuery('copyChunk', (tables: Tables, chunk: number): ChunkCopies => {
  const { contacts, memberships, engagement } = tables.segmentColumns.sources(chunk);
  const membershipsOf = grouped(memberships, (one) => one.contact_seq);
  const engagementOf = new Map(engagement.map((row) => [row.contact_seq, row]));
  const accounts = [...grouped(contacts, (one) => one.account_id)].flatMap(([accountId, own]) =>
    own.length < MIN_CONTACTS ? [] : [copyOf(accountId, own, membershipsOf, engagementOf)],
  );
  const first = chunk * CHUNK_SIZE;
  return { accounts, changes: tables.segmentColumns.changes(first, first + CHUNK_SIZE - 1) };
});

function copyOf(
  accountId: string,
  contacts: readonly KnownContact[],
  membershipsOf: ReadonlyMap<number, ChunkMembership[]>,
  engagementOf: ReadonlyMap<number, EngagementRow>,
): ChunkCopies['accounts'][number] {
  const names = new Set<string>();
  const others: number[] = [];
  const copied: { contact: KnownContact; custom: Record<string, unknown> }[] = [];
  for (const contact of contacts) {
    const custom = contact.custom_fields.length > MAX_CUSTOM_BYTES ? null : customFieldsOf(contact);
    if (custom === null || !hasColumns(names, Object.keys(custom))) others.push(contact.seq);
    else copied.push({ contact, custom });
  }
  const columns: { name: string; data: ArrayBuffer }[] = [];
  const add = (name: string, values: readonly unknown[]) => {
    const data = encodeColumn(values);
    if (data !== null) columns.push({ name, data: new Uint8Array(data).buffer });
  };
  for (const [name, valueOf] of Object.entries(FIELDS))
    add(
      `field:${name}`,
      copied.map(({ contact }) => valueOf(contact)),
    );
  for (const name of names)
    add(
      `custom:${name}`,
      copied.map(({ custom }) => (Object.hasOwn(custom, name) ? custom[name] : null)),
    );
  for (const [name, column] of Object.entries(ENGAGEMENT_COLUMNS))
    add(
      name,
      copied.map(({ contact }) => engagementOf.get(contact.seq)?.[column]),
    );
  add(
    'unanswered',
    copied.map(({ contact }) => unansweredValue(engagementOf.get(contact.seq))),
  );
  const ofCopied = copied.map(({ contact }) => membershipsOf.get(contact.seq) ?? []);
  add('joined', ofCopied.map(lastJoined));
  const groups = new Set(ofCopied.flatMap((own) => own.map((one) => one.subscription_group_id)));
  for (const group of groups)
    add(
      `group:${group}`,
      ofCopied.map((own) => groupValue(own.find((one) => one.subscription_group_id === group))),
    );
  return {
    accountId,
    copied: bytesOf(copied.map(({ contact }) => contact.seq)),
    others: bytesOf(others),
    columns,
  };
}

function grouped<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const known = groups.get(keyOf(item));
    if (known === undefined) groups.set(keyOf(item), [item]);
    else known.push(item);
  }
  return groups;
}

/** Adds the names of a contact, if there are columns for all of them. */
function hasColumns(names: Set<string>, own: readonly string[]): boolean {
  const added = own.filter((name) => !names.has(name));
  if (names.size + added.length > MAX_CUSTOM_COLUMNS) return false;
  for (const name of added) names.add(name);
  return true;
}
