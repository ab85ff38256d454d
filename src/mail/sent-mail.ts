import { PACKED_ID_LENGTH, packId, unpackId } from './packed-id.ts';

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
