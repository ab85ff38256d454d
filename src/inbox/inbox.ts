import { textFromHtml } from '../mail/html/text-part.ts';
import { decodeWords, type Fields, isFieldName } from '../mail/incoming/fields.ts';
import { INCOMING_LIMITS, type IncomingLimits } from '../mail/incoming/limits.ts';
import { leavesOf, type Part, readHeader, readMail, textOf } from '../mail/incoming/mime.ts';
import type { KeptMailFilter, KeptMailHead } from '../store/kept-mail.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Received mail as the operator reads it: mail to postmaster@ and abuse@, and what could not be processed. Anyone can send
 * it: it is parsed within limits, on the threads of reads, and its text is returned without markup.
 */

/** A mail in a list. */
export interface InboxEntry extends Omit<KeptMailHead, 'seq' | 'message_seq'> {
  number: number;
  /** Id of the sent message that it refers to; null: none was found, or it was deleted. */
  messageId: string | null;
  /** Decoded; '' for none. */
  subject: string;
  /** The field From, decoded; '' for none. */
  from: string;
}

export interface InboxMail extends InboxEntry {
  /** Header fields in order of first occurrence, decoded. */
  headers: { name: string; value: string }[];
  /** The text parts, or the text of the HTML parts; '' for none. */
  text: string;
  attachments: { name: string; contentType: string }[];
  /** Whether the end of the mail is not stored. */
  isCut: boolean;
}

/** Limits of a mail that is shown: fewer parts and less text than of a report. */
const LIMITS: IncomingLimits = { ...INCOMING_LIMITS, parts: 50, headerFields: 200, fieldChars: 4000 };
const MAX_TEXT_BYTES = 256 * 1024;

/** A page of the inbox, newest first; one entry more than `limit` shows that there is another page. */
export const inboxPage = readQuery('inboxPage', (tables: Tables, filter: KeptMailFilter): InboxEntry[] =>
  tables.keptMail
    .page(filter)
    .map(({ head, ...row }) => entryOf(tables, row, readHeader(Buffer.from(head), LIMITS).fields)),
);

/** A received mail, parsed; null: there is none with this number. */
export const inboxMail = readQuery('inboxMail', (tables: Tables, number: number): InboxMail | null => {
  const head = tables.keptMail.head(number);
  const row = tables.keptMail.get(number);
  if (head === null || row === null) return null;
  const mail = readMail(Buffer.from(row.raw), LIMITS);
  const leaves = [...leavesOf(mail)];
  const files = leaves.filter(isFile);
  return {
    ...entryOf(tables, head, mail.fields),
    headers: mail.fields.names().flatMap((name) =>
      mail.fields
        .all(name)
        .filter(() => isFieldName(name))
        .map((value) => ({ name, value: decodeWords(value) })),
    ),
    text: textOfLeaves(leaves.filter((leaf) => !isFile(leaf))),
    attachments: files.map(({ filename, type }) => ({ name: filename, contentType: type })),
    isCut: row.raw.length < row.size,
  };
});

/** The stored bytes of a mail, base64; null: there is none with this number. */
export const inboxSource = readQuery('inboxSource', (tables: Tables, number: number): string | null => {
  const row = tables.keptMail.get(number);
  return row === null ? null : Buffer.from(row.raw).toString('base64');
});

function entryOf(tables: Tables, { seq, message_seq, ...head }: KeptMailHead, fields: Fields): InboxEntry {
  return {
    ...head,
    number: seq,
    messageId: message_seq === null ? null : (tables.messages.bySeq(message_seq)?.message_id ?? null),
    subject: decodeWords(fields.get('subject')).slice(0, MAX_LINE),
    from: decodeWords(fields.get('from')).slice(0, MAX_LINE),
  };
}

/** Characters of a subject or a sender in a list. */
const MAX_LINE = 500;

/** A part with a file name, or whose type is neither text nor a report for people. */
function isFile({ filename, type }: Part): boolean {
  return filename !== '' || !/^(?:text\/|message\/)/.test(type);
}

function textOfLeaves(leaves: readonly Part[]): string {
  const plain = leaves.filter(({ type }) => type !== 'text/html');
  const shown = plain.some(({ type }) => type === 'text/plain') ? plain : leaves;
  let left = MAX_TEXT_BYTES;
  const texts: string[] = [];
  for (const leaf of shown) {
    if (left <= 0) break;
    const text = textOf(leaf, left);
    left -= Buffer.byteLength(text);
    texts.push(leaf.type === 'text/html' ? textFromHtml(text) : text);
  }
  return texts.join('\n\n');
}
