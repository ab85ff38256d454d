import type { Attachment, ParsedMail } from 'mailparser';
import { textFromHtml } from '../mail/html/text-part.ts';
import { decodeWords, type Fields, isFieldName } from '../mail/incoming/fields.ts';
import { INCOMING_LIMITS, type IncomingLimits } from '../mail/incoming/limits.ts';
import { readHeader } from '../mail/incoming/mime.ts';
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

const LIMITS: IncomingLimits = { ...INCOMING_LIMITS, headerFields: 200, fieldChars: 4000 };
const MAX_TEXT_CHARACTERS = 256 * 1024;
/** Its parts are shown as files: they are listed, not opened. */
const MAX_ATTACHMENTS = 50;

/** A page of the inbox, newest first; one entry more than `limit` shows that there is another page. */
export const inboxPage = readQuery('inboxPage', (tables: Tables, filter: KeptMailFilter): InboxEntry[] =>
  tables.keptMail
    .page(filter)
    .map(({ head, ...row }) => entryOf(tables, row, readHeader(Buffer.from(head), LIMITS).fields)),
);

/**
 * A received mail, parsed; null: there is none with this number. mailparser decodes it, as the stored part of 256 KiB bounds what
 * it costs; the parser of reports (mail/incoming) reads structures, and leaves the rest of a mail alone.
 */
export const inboxMail = readQuery(
  'inboxMail',
  async (tables: Tables, number: number): Promise<InboxMail | null> => {
    const head = tables.keptMail.head(number);
    const row = tables.keptMail.get(number);
    if (head === null || row === null) return null;
    const raw = Buffer.from(row.raw);
    const { fields } = readHeader(raw, LIMITS);
    const entry = entryOf(tables, head, fields);
    const { text, attachments } = await contentOf(raw);
    return {
      ...entry,
      headers: fields.names().flatMap((name) =>
        fields
          .all(name)
          .filter(() => isFieldName(name))
          .map((value) => ({ name, value: decodeWords(value) })),
      ),
      text: text.slice(0, MAX_TEXT_CHARACTERS).trim(),
      attachments: attachments
        .slice(0, MAX_ATTACHMENTS)
        .map(({ filename, contentType }) => ({ name: filename ?? '', contentType })),
      isCut: row.raw.length < row.size,
    };
  },
);

async function contentOf(raw: Buffer): Promise<Pick<ParsedMail, 'attachments'> & { text: string }> {
  try {
    const { simpleParser } = await import('./parser-library.ts');
    const { text, html, attachments } = await simpleParser(raw, PARSER_OPTIONS);
    // Empty, not absent, in a mail that is only HTML.
    const shown = text || (html === false ? '' : textFromHtml(html));
    const parts = attachments.filter(isText).map(({ content }) => content.toString());
    return {
      text: [shown, ...parts].filter((part) => part !== '').join('\n\n'),
      attachments: attachments.filter((attachment) => !isText(attachment)),
    };
  } catch (error) {
    // More parts, or longer header fields, than mailparser reads: the operator sees the source.
    if (!(error instanceof Error && 'code' in error && error.code === 'EMAXLEN')) throw error;
    return { text: raw.toString(), attachments: [] };
  }
}

/** No conversion between HTML and text by the library: ours shows what a reader of the mail sees. */
const PARSER_OPTIONS = {
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
};

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

/** A part without a file name whose content is for people: that of a report, its original header, a forwarded mail. */
function isText({ filename, contentType }: Attachment): boolean {
  return filename === undefined && /^(?:text|message)\//.test(contentType);
}
