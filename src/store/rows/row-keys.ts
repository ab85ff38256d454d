/*
 * Compact forms of ids, hashes and enumerations in tables with millions of rows. Every text has exactly one form, so that
 * equal texts are equal in SQL; a text that does not have the usual shape is stored as text.
 */

/** The compact form of an id or a hash; text if it does not have the usual shape. */
export type StoredKey = Buffer | string;

const PUBLIC_ID = /^([a-z]+)_(0|[1-9]\d{0,14})_([0-9a-z]{12})$/;
const MAX_TIME = 2 ** 48 - 1;
const TIME_BYTES = 6;
/** The twelve base-36 characters of an id in two halves, each of which fits 32 bits. */
const HALF = 6;
const SUFFIX_BYTES = 8;
const KEY_BYTES = TIME_BYTES + SUFFIX_BYTES;

/** `<kind>_<epoch ms>_<suffix>` (core/ids) in 14 bytes: time (6), suffix (8). Keys sort like the ids of a kind. */
export function keyOfId(kind: string, id: string): StoredKey {
  const parts = partsOf(kind, id);
  if (parts === null) return id;
  const key = Buffer.allocUnsafe(KEY_BYTES);
  writeSuffix(key, key.writeUIntBE(parts.time, 0, TIME_BYTES), parts.suffix);
  return key;
}

/** The id for a key of `keyOfId`; a key that is text is the id itself. */
export function idOfKey(kind: string, key: StoredKey): string {
  if (typeof key === 'string') return key;
  return `${kind}_${key.readUIntBE(0, TIME_BYTES)}_${readSuffix(key, TIME_BYTES)}`;
}

/** The key of an event; without the time when it equals the time of the event, which is in the row. */
export function keyOfEvent(id: string, at: number): StoredKey {
  const parts = partsOf('evt', id);
  if (parts?.time !== at) return keyOfId('evt', id);
  const key = Buffer.allocUnsafe(SUFFIX_BYTES);
  writeSuffix(key, 0, parts.suffix);
  return key;
}

/** The id for a key of `keyOfEvent`. `at`: the time of the event, epoch ms. */
export function idOfEvent(key: StoredKey, at: number): string {
  return typeof key === 'string' || key.length !== SUFFIX_BYTES
    ? idOfKey('evt', key)
    : `evt_${at}_${readSuffix(key, 0)}`;
}

function partsOf(kind: string, id: string): { time: number; suffix: string } | null {
  const [, found, time = '', suffix = ''] = PUBLIC_ID.exec(id) ?? [];
  return found === kind && Number(time) <= MAX_TIME ? { time: Number(time), suffix } : null;
}

function writeSuffix(key: Buffer, at: number, suffix: string): void {
  key.writeUInt32BE(Number.parseInt(suffix.slice(0, HALF), 36), at);
  key.writeUInt32BE(Number.parseInt(suffix.slice(HALF), 36), at + 4);
}

function readSuffix(key: Buffer, at: number): string {
  return base36(key.readUInt32BE(at)) + base36(key.readUInt32BE(at + 4));
}

function base36(half: number): string {
  return half.toString(36).padStart(HALF, '0');
}

const EMAIL_IDENTIFIER = /^email_[0-9a-f]{32}$/;
const EMAIL_PREFIX = 'email_';

/** `email_<md5>` in 16 bytes. */
export function keyOfRecipient(identifier: string): StoredKey {
  return EMAIL_IDENTIFIER.test(identifier)
    ? Buffer.from(identifier.slice(EMAIL_PREFIX.length), 'hex')
    : identifier;
}

/**
 * The identifier for a key of `keyOfRecipient`; a key that is text, such as `phone_<md5>`, is the identifier itself.
 */
export function recipientOfKey(key: StoredKey): string {
  return typeof key === 'string' ? key : EMAIL_PREFIX + key.toString('hex');
}

/** The stored codes of the values of an enumeration: small integers. */
export interface Codes<Value extends string> {
  /** Throws when `value` has no code. */
  code(value: Value): number;
  /** Throws when no value has this code. */
  value(code: number): Value;
  /** The code as text for a statement. */
  sql(value: Value): string;
}

/** Assigns codes to values in order, beginning with `first`. Values are only appended: codes are stored. */
export function createCodes<const Value extends string>(
  first: number,
  values: readonly Value[],
): Codes<Value> {
  const codes = new Map(values.map((value, index) => [value, first + index]));
  const code = (value: Value): number => {
    const found = codes.get(value);
    if (found === undefined) throw new Error(`${JSON.stringify(value)} has no code`);
    return found;
  };
  return {
    code,
    value: (number) => {
      const value = values[number - first];
      if (value === undefined) throw new Error(`there is no code ${number}`);
      return value;
    },
    sql: (value) => String(code(value)),
  };
}

/**
 * Above 1, because 0 and 1 take no byte in a row and all others one: a row that keeps its size when its status
 * changes is overwritten in place.
 */
const FIRST_STATUS = 2;

export const STATUS_CODES = createCodes(FIRST_STATUS, [
  'queued',
  'sending',
  'delivered',
  'deferred',
  'bounced',
  'failed',
  'complained',
  'cancelled',
]);

export const USE_CASE_CODES = createCodes(0, ['tx', 'mk']);

export const ROLE_CODES = createCodes(0, ['to', 'cc', 'bcc']);

export const ATTEMPT_LANE_CODES = createCodes(0, ['primary', 'secondary', 'simulator']);

const EVENT_KINDS = [
  'email_sent',
  'email_delivered',
  'email_delayed',
  'email_bounced',
  'email_suppressed',
  'email_rejected',
  'email_failed',
  'email_complained',
  'email_opened',
  'email_clicked',
  'email_unsubscribed',
  'domain_verified',
  'domain_failing',
  'domain_failed',
  'source_address_blocked',
  'campaign_paused',
  'sending_limited',
  'sending_resumed',
  'erasure_requested',
  'email_received',
  'domain_deleted',
];

const KIND_CODES: ReadonlyMap<string, bigint> = new Map(
  EVENT_KINDS.map((kind, code) => [kind, BigInt(code)]),
);

/** The code of an event kind as an integer, because better-sqlite3 binds a `number` as REAL; text when it has no code. */
export function codeOfKind(kind: string): bigint | string {
  return KIND_CODES.get(kind) ?? kind;
}

/** The kind for a code of `codeOfKind`; text is the kind itself. Throws for a number without a kind. */
export function kindOfCode(code: number | string): string {
  const kind = typeof code === 'string' ? code : EVENT_KINDS[code];
  if (kind === undefined) throw new Error(`there is no event kind ${code}`);
  return kind;
}
