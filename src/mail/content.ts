import type { KeyObject } from 'node:crypto';

/**
 * What a caller asked to be sent, checked and rendered, but not yet a MIME message: the form in which the
 * queue keeps it. One content serves all copies of a request; what differs from copy to copy (links with the
 * recipient's own tokens, the recipient's address) stands in it as a mark, filled in by `personalise` when
 * the copy is sent.
 */
export interface Mailbox {
  /** Display name, decoded, '' when there is none. */
  name: string;
  /** `local@domain`, domain as A-labels, lower case; local part as given. */
  address: string;
}

export interface Attachment {
  name: string;
  /** Matches MEDIA_TYPE. */
  contentType: string;
  /** Base64 without line breaks, checked. */
  content: string;
  /** Makes it inline: `cid:` of the html refers to it. Matches CONTENT_ID. */
  contentId?: string | undefined;
}

/** A form of the message beside its text and html, for readers that know it: an invitation, AMP html. */
export interface Alternative {
  /** Where it stands among them: readers show the last form that they know (RFC 2046 §5.1.4). */
  position: 'before-text' | 'before-html' | 'after-html';
  /** Type and parameters, separated by `; `. Of a text type, the charset is utf-8. */
  contentType: string;
  /** Base64 without line breaks. */
  content: string;
}

/** The list that a marketing mail belongs to (RFC 2919). */
export interface MailingList {
  /** Id of the subscription group, else of the campaign. */
  id: string;
  /** Name of the group, '' for none. */
  name: string;
}

/** RFC 6838 §4.2, perhaps with parameters. */
export const MEDIA_TYPE = /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}(?: *;[ -~]{0,200})?$/;

/** What may stand between the brackets of a Content-ID field and in a `cid:` URL (RFC 2392). */
export const CONTENT_ID = /^[!-;=?-~]{1,250}$/;

export interface MessageContent {
  from: Mailbox;
  /** The To and Cc header fields as every copy shows them. */
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox | null;
  subject: string;
  /** '' when the message is text only. */
  html: string;
  /** Null: derived from the html when the message is composed. */
  text: string | null;
  /** The caller's own header fields, in order; names are unique apart from letter case. */
  headers: [name: string, value: string][];
  attachments: Attachment[];
  alternatives?: Alternative[];
  list?: MailingList;
  /** Without angle brackets. */
  messageId: string;
  /** Epoch ms of the Date field: when it was accepted. */
  date: number;
}

/** How one copy's links and its opening are noticed. */
export interface Tracking {
  /** Tracked links begin with it, and end with a token: `https://link.example.com/c/`. */
  linkPrefix: string;
  /** Signs the tokens (tokens.ts); null: links stay as they are. */
  clickKey: KeyObject | null;
  messageId: string;
  /** Address of the picture that tells that a copy was opened; null for none. */
  pixelUrl: string | null;
}

/** Decides which fields for unsubscribing and for bulk mail a message carries. */
export type MailKind = 'marketing' | 'transactional' | 'essential';

/** What is one copy's own. */
export interface CopyDetails {
  kind: MailKind;
  recipient: string;
  unsubscribeUrl: string;
  reportAbuseUrl: string;
  /** Address for the `mailto:` form of List-Unsubscribe; null where no return path of ours can take it. */
  unsubscribeAddress: string | null;
  /** Signed token that names the message: the X-Postrider-Id field. */
  signedId: string;
  /** RFC 9477 address for complaint feedback; null when there is none. */
  feedbackAddress: string | null;
  /** `<campaign, else group, else stream>:<account>:<stream>:postrider`. */
  feedbackId: string;
  /** Not there: nothing is tracked. */
  tracking?: Tracking;
}

/**
 * Marks in a content's html and text. They begin with NUL, which no caller's text may hold (it is refused at
 * the door), so nobody can forge one.
 */
export const MARKS = {
  unsubscribeUrl: '\u0000u\u0000',
  reportAbuseUrl: '\u0000r\u0000',
  recipient: '\u0000e\u0000',
} as const;
