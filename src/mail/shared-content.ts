import type { Mailbox, MailingList, MessageContent } from './content.ts';
import { joinShared, type SharedText } from './shared-template.ts';

/**
 * What the copies of a campaign have in common, stored once for all of them, and what is each copy's own. Both are
 * stored as JSON (stored-content.ts); together they are the copy's MessageContent.
 */
export interface SharedContent {
  from: Mailbox;
  /** Of the Message-ID. */
  fromDomain: string;
  replyTo: Mailbox | null;
  list: MailingList;
  /** Each part's values follow those of the part before it. */
  subject: SharedPart;
  /** Null: the message is text only. */
  html: SharedPart | null;
  /** Null: derived from the html. */
  text: SharedPart | null;
}

export interface SharedPart extends SharedText {
  /** Index of its first value. */
  first: number;
}

export interface OwnContent {
  /** Display name of the recipient, '' when there is none. */
  name: string;
  /** What goes into the holes, escaped as each part needs it. */
  values: string[];
}

/** A copy's message, as far as its content does not say. */
export interface CopyIdentity {
  messageId: string;
  /** Epoch ms: when it was accepted. */
  date: number;
}

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
