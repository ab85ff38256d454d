import type { Mailbox, MailingList, MessageContent } from './content.ts';
import { joinShared, type SharedText } from './shared-template.ts';

/**
 * The content that the copies of a campaign share, stored once, and the content of each copy. Both are stored as JSON
 * (stored-content.ts); merged, they are the MessageContent of the copy.
 */
export interface SharedContent {
  from: Mailbox;
  /** Domain of the Message-ID. */
  fromDomain: string;
  replyTo: Mailbox | null;
  list: MailingList;
  /** The values of each part follow those of the part before it. */
  subject: SharedPart;
  /** Null for a message of text only. */
  html: SharedPart | null;
  /** Null: derived from the HTML. */
  text: SharedPart | null;
}

export interface SharedPart extends SharedText {
  /** Index of its first value. */
  first: number;
}

export interface OwnContent {
  /** Display name of the recipient, '' for none. */
  name: string;
  /** The values of the holes, escaped for their part. */
  values: string[];
}

/** The properties of a copy's message that are not part of its content. */
export interface CopyIdentity {
  messageId: string;
  /** Epoch ms of acceptance. */
  date: number;
}

/** Returns the content of one copy. */
export function mergeContent(
  shared: SharedContent,
  { name, values }: OwnContent,
  { messageId, date }: CopyIdentity,
  recipient: string,
): MessageContent {
  const { from, fromDomain, replyTo, list, subject, html, text } = shared;
  const rendered = (part: SharedPart) => joinShared(part, values, part.first);
  return {
    subject: rendered(subject),
    html: html === null ? '' : rendered(html),
    text: text === null ? null : rendered(text),
    from,
    to: [{ name, address: recipient }],
    cc: [],
    replyTo,
    headers: [],
    attachments: [],
    list,
    messageId: `${messageId}@${fromDomain}`,
    date,
  };
}
