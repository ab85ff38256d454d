import { escapeHtml } from './html/escape.ts';
import type { ClickSigner } from './tokens.ts';

/*
 * The content of a message, validated and rendered, but not yet composed as MIME: the form that the queue stores. All
 * copies of a request share one content. Values that differ between copies (links with a recipient's tokens, the
 * recipient's address) are represented by marks in the content, which `personalize` replaces when a copy is sent.
 */

/** An address with its display name. */
export interface Mailbox {
  /** Display name, decoded, '' for none. */
  name: string;
  /** `local@domain`, the domain as lower-case A-labels, the local part unchanged. */
  address: string;
}

export interface Attachment {
  name: string;
  /** Matches MEDIA_TYPE. */
  contentType: string;
  /** Base64 without line breaks, validated. */
  content: string;
  /** Makes the attachment inline: the HTML refers to it by `cid:`. Matches CONTENT_ID. */
  contentId?: string | undefined;
}

/** An alternative to text and HTML, for mail clients that support it: an invitation, AMP HTML. */
export interface Alternative {
  /** Clients display the last alternative that they support (RFC 2046 §5.1.4). */
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

/** RFC 6838 §4.2, optionally with parameters. */
export const MEDIA_TYPE = /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}(?: *;[ -~]{0,200})?$/;

/** The value of a Content-ID field without angle brackets, as in a `cid:` URL (RFC 2392). */
export const CONTENT_ID = /^[!-;=?-~]{1,250}$/;

/** One mailbox, or a list of several. */
export type ReplyTo = Mailbox | Mailbox[];

export interface MessageContent {
  from: Mailbox;
  /** The To and Cc header fields as every copy shows them. */
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: ReplyTo | null;
  subject: string;
  /** '' for a message of text only. */
  html: string;
  /** Null: derived from the HTML when the message is composed. */
  text: string | null;
  /** The caller's header fields, in order; names are unique, ignoring case. */
  headers: [name: string, value: string][];
  attachments: Attachment[];
  alternatives?: Alternative[];
  list?: MailingList;
  /** Without angle brackets. */
  messageId: string;
  /** Epoch ms of the Date field: when it was accepted. */
  date: number;
}

/** How clicks on the links of a copy and its opening are recorded. */
export interface Tracking {
  /** The URL of a tracked link before its token: `https://link.example.com/c/`. */
  linkPrefix: string;
  /** Signs the tokens (tokens.ts); null: links are not changed. */
  clickSigner: ClickSigner | null;
  messageId: string;
  /** URL of the open-tracking pixel; null for none. */
  pixelUrl: string | null;
}

/** Determines the List-Unsubscribe and bulk mail fields of a message. */
export type MailKind = 'marketing' | 'transactional' | 'essential';

/** The values that differ between copies. */
export interface CopyDetails {
  kind: MailKind;
  recipient: string;
  unsubscribeUrl: string;
  reportAbuseUrl: string;
  /** The page that shows the message; undefined: none. */
  viewUrl?: string;
  /** Address for the `mailto:` form of List-Unsubscribe; null when no return path domain can receive it. */
  unsubscribeAddress: string | null;
  /** Signed token of the message id, for the X-Postrider-Id field. */
  signedId: string;
  /** RFC 9477 address for complaint feedback; null for none. */
  feedbackAddress: string | null;
  /** `<campaign, else group, else stream>:<account>:<stream>:postrider`. */
  feedbackId: string;
  /** Undefined: nothing is tracked. */
  tracking?: Tracking;
}

/**
 * Marks in the HTML and text of a content. They begin with NUL, which the API rejects in all text of callers, so that no
 * caller can forge one.
 */
export const MARKS = {
  unsubscribeUrl: '\u0000u\u0000',
  reportAbuseUrl: '\u0000r\u0000',
  preferencesUrl: '\u0000p\u0000',
  viewUrl: '\u0000v\u0000',
  recipient: '\u0000e\u0000',
} as const;

const MARK = new RegExp(Object.values(MARKS).join('|'), 'g');

/** The preference page has the token of the unsubscribe page: who has one of the links may do what both pages offer. */
function preferencesUrlOf(unsubscribeUrl: string): string {
  return unsubscribeUrl.replace(/\/u\/(?=[^/]*$)/, '/p/');
}

/** Replaces the marks by the values of one copy. In HTML they are escaped for attributes and element content alike. */
export function personalize(
  source: string,
  copy: Pick<CopyDetails, 'recipient' | 'unsubscribeUrl' | 'reportAbuseUrl' | 'viewUrl'> & {
    preferencesUrl?: string;
  },
  kind: 'html' | 'text',
): string {
  if (!source.includes('\u0000')) return source;
  const encode = kind === 'html' ? escapeHtml : (value: string) => value;
  const values: Record<string, string> = {
    [MARKS.unsubscribeUrl]: encode(copy.unsubscribeUrl),
    [MARKS.reportAbuseUrl]: encode(copy.reportAbuseUrl),
    [MARKS.viewUrl]: encode(copy.viewUrl ?? ''),
    [MARKS.recipient]: encode(copy.recipient),
  };
  // Few contents have this one.
  const preferences = () => encode(copy.preferencesUrl ?? preferencesUrlOf(copy.unsubscribeUrl));
  return source.replace(MARK, (mark) =>
    mark === MARKS.preferencesUrl ? preferences() : (values[mark] ?? ''),
  );
}
