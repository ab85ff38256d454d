import { PACKED_ID, packId, unpackId } from './packed-id.ts';

/**
 * A mail that was sent, as far as somebody's answer to it is concerned (to unsubscribe, to report it): which
 * account's, to whom, in which stream. Links carry all of it in some ninety octets, so that they work for as
 * long as the mail lies in a mailbox, whatever was purged here.
 */
export interface SentMail {
  messageId: string;
  accountId: string;
  /** `email_<md5>` (identifier.ts). */
  recipientHash: string;
  stream: 'tx' | 'mk';
  /** Subscription group that the mail was sent to; null when there was none. */
  groupId: string | null;
  /** A simulated mail: whatever is answered has no effect on anybody. */
  simulated: boolean;
}

/** What is needed of a message's row: its columns, because this room knows nothing of the store. */
export interface SentMessage {
  message_id: string;
  account_id: string;
  recipient_hash: string;
  use_case: 'tx' | 'mk';
  subscription_group_id: string | null;
  simulated: 0 | 1;
}

/** The same of a message that is still on record. */
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

/** First octet: what follows, and what kind of mail it was. The bits not named here are for later forms. */
const MARKETING = 1;
const SIMULATED = 2;
const IN_GROUP = 4;
const KNOWN = MARKETING | SIMULATED | IN_GROUP;

const MD5 = 16;
const HASH = /^email_([0-9a-f]{32})$/;

/** Flags, message, hash, group where there is one, and the account's id as text up to the end. */
export function packSentMail(mail: SentMail): Buffer {
  const [, md5] = HASH.exec(mail.recipientHash) ?? [];
  if (md5 === undefined) throw new Error(`${mail.recipientHash} cannot stand in a token`);
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

/** Null when the octets are no packed mail. */
export function unpackSentMail(packed: Buffer): SentMail | null {
  const flags = packed[0];
  if (flags === undefined || (flags & ~KNOWN) !== 0) return null;
  let at = 1;
  const take = (length: number) => packed.subarray(at, (at += length));
  const messageId = unpackId(take(PACKED_ID));
  const md5 = take(MD5);
  const groupId = (flags & IN_GROUP) === 0 ? null : unpackId(take(PACKED_ID));
  const accountId = packed.subarray(at).toString();
  const complete = messageId !== null && md5.length === MD5 && accountId !== '';
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
