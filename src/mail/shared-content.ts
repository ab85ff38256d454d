import type { Mailbox, MailingList, MessageContent } from './content.ts';
import { joinShared, type SharedText } from './shared-template.ts';

/*
 * Content that messages share, stored once, and the content of each message: of the copies of a campaign, and of messages
 * that an account sends with the same template. Both are stored as JSON (stored-content.ts); merged, they are the
 * MessageContent of the message.
 */

/** The rendered texts of a template. The values of each part follow those of the part before it. */
export interface SharedTexts {
  /** Null for a message of text only. */
  html: SharedPart | null;
  /** Null: derived from the HTML. */
  text: SharedPart | null;
}

/** What the copies of a campaign share. */
export interface SharedContent extends SharedTexts {
  from: Mailbox;
  /** Domain of the Message-ID. */
  fromDomain: string;
  replyTo: Mailbox | null;
  list: MailingList;
  /** Its values precede those of the HTML. */
  subject: SharedPart;
}

export interface SharedPart extends SharedText {
  /** Index of its first value. */
  first: number;
}

/** What belongs to one copy of a campaign. */
export interface OwnContent {
  /** Display name of the recipient, '' for none. */
  name: string;
  /** The values of the placeholders, escaped for their part. */
  values: string[];
}

/** What belongs to one message that shares only the texts of its template. */
export interface TemplatedContent {
  /** The values of the placeholders, escaped for their part. */
  values: string[];
  fields: Omit<MessageContent, 'html' | 'text'>;
}

/** The properties of a copy's message that are not part of its content. */
export interface CopyIdentity {
  messageId: string;
  /** Epoch ms of acceptance. */
  date: number;
}

/** Returns the content of one message. `shared`: a SharedContent for an OwnContent. */
export function mergeContent(
  shared: SharedTexts,
  own: OwnContent | TemplatedContent,
  { messageId, date }: CopyIdentity,
  recipient: string,
): MessageContent {
  const rendered = (part: SharedPart) => joinShared(part, own.values, part.first);
  const texts = {
    html: shared.html === null ? '' : rendered(shared.html),
    text: shared.text === null ? null : rendered(shared.text),
  };
  if ('fields' in own) return { ...own.fields, ...texts };
  // Sound: only copies of campaigns have an OwnContent, which refers to the shared content of its campaign.
  const { from, fromDomain, replyTo, list, subject } = shared as SharedContent;
  return {
    subject: rendered(subject),
    ...texts,
    from,
    to: [{ name: own.name, address: recipient }],
    cc: [],
    replyTo,
    headers: [],
    attachments: [],
    list,
    messageId: `${messageId}@${fromDomain}`,
    date,
  };
}
