/**
 * The properties of a sent mail that a recipient's action on it (unsubscribe, report abuse) needs. Links contain all of
 * them in about ninety bytes, so that they still work after the message was purged.
 */
export interface SentMail {
  messageId: string;
  accountId: string;
  /** `email_<md5>` (identifier.ts). */
  recipientHash: string;
  stream: 'tx' | 'mk';
  /** Subscription group that the mail was sent to; null for none. */
  groupId: string | null;
  /** A simulated mail: actions on it have no effect. */
  simulated: boolean;
}

/** The columns of a message's row that are needed. Declared here, as mail/ does not depend on store/. */
export interface SentMessage {
  message_id: string;
  account_id: string;
  recipient_hash: string;
  use_case: 'tx' | 'mk';
  subscription_group_id: string | null;
  simulated: 0 | 1;
}

/** Reads the properties from the row of a message. */
export function sentMailOf(message: SentMessage): SentMail {
  return {
    messageId: message.message_id,
    accountId: message.account_id,
    recipientHash: message.recipient_hash,
    stream: message.use_case,
    groupId: message.subscription_group_id,
    simulated: message.simulated === 1,
  };
}

/** Flags in the first byte. The other bits are reserved for later formats. */
const MARKETING = 1;
const SIMULATED = 2;
const IN_GROUP = 4;
const KNOWN_FLAGS = MARKETING | SIMULATED | IN_GROUP;

const MD5_LENGTH = 16;
const HASH = /^email_([0-9a-f]{32})$/;

/** Packs flags, message id, hash, group id if any, and the account id as text. Throws when an id cannot be packed. */
export function packSentMail(mail: SentMail): Buffer {
  const [, md5] = HASH.exec(mail.recipientHash) ?? [];
  if (md5 === undefined) throw new Error(`${mail.recipientHash} cannot be packed into a token`);
  const flags =
    (mail.stream === 'mk' ? MARKETING : 0) |
    (mail.simulated ? SIMULATED : 0) |
    (mail.groupId === null ? 0 : IN_GROUP);
  return Buffer.concat([
    Buffer.from([flags]),
    packId(mail.messageId),
    Buffer.from(md5, 'hex'),
    ...(mail.groupId === null ? [] : [packId(mail.groupId)]),
    Buffer.from(mail.accountId),
  ]);
}

/** Null when the bytes are not a packed mail. */
export function unpackSentMail(packed: Buffer): SentMail | null {
  const flags = packed[0];
  if (flags === undefined || (flags & ~KNOWN_FLAGS) !== 0) return null;
  let at = 1;
  const take = (length: number) => packed.subarray(at, (at += length));
  const messageId = unpackId(take(PACKED_ID_LENGTH));
  const md5 = take(MD5_LENGTH);
  const groupId = (flags & IN_GROUP) === 0 ? null : unpackId(take(PACKED_ID_LENGTH));
  const accountId = packed.subarray(at).toString();
  const complete = messageId !== null && md5.length === MD5_LENGTH && accountId !== '';
  if (!complete || (groupId === null && (flags & IN_GROUP) !== 0)) return null;
  return {
    messageId,
    accountId,
    recipientHash: `email_${md5.toString('hex')}`,
    stream: (flags & MARKETING) === 0 ? 'tx' : 'mk',
    groupId,
    simulated: (flags & SIMULATED) !== 0,
  };
}

const ID_PATTERN = /^([a-z]+)_(0|[1-9][0-9]{0,14})_([0-9a-z]{12})$/;
export const PACKED_ID_LENGTH = 15;
const SUFFIX_LENGTH = 12;
const MAX_EPOCH = 2 ** 48 - 1;

/** The index of a kind is its number in all existing tokens: append only. */
const KINDS = ['msg', 'job', 'evt', 'campaign', 'domain', 'sgroup', 'whd'];

/**
 * Packs a public id (core/ids.ts) into 15 bytes, for short tokens: kind (1), epoch ms (6), the 12 base-36 characters of the
 * suffix as a number (8). Throws when the id is not of a known kind.
 */
export function packId(id: string): Buffer {
  const [, kind = '', epoch = '', suffix = ''] = ID_PATTERN.exec(id) ?? [];
  const number = KINDS.indexOf(kind);
  if (number === -1 || Number(epoch) > MAX_EPOCH)
    throw new Error(`${JSON.stringify(id)} cannot be packed into a token`);
  const packed = Buffer.alloc(PACKED_ID_LENGTH);
  packed.writeUInt8(number, 0);
  packed.writeUIntBE(Number(epoch), 1, 6);
  packed.writeBigUInt64BE(fromBase36(suffix), 7);
  return packed;
}

/** Null when the bytes are not a packed id. */
export function unpackId(packed: Buffer): string | null {
  if (packed.length !== PACKED_ID_LENGTH) return null;
  const kind = KINDS[packed.readUInt8(0)];
  const suffix = packed.readBigUInt64BE(7).toString(36).padStart(SUFFIX_LENGTH, '0');
  return kind === undefined || suffix.length > SUFFIX_LENGTH
    ? null
    : `${kind}_${packed.readUIntBE(1, 6)}_${suffix}`;
}

/** Parses two halves of six characters, each small enough for an exact number. */
function fromBase36(suffix: string): bigint {
  const half = SUFFIX_LENGTH / 2;
  return (
    BigInt(Number.parseInt(suffix.slice(0, half), 36)) * BigInt(36 ** half) +
    BigInt(Number.parseInt(suffix.slice(half), 36))
  );
}
