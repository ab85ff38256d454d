import type { Attachment, ParsedMail } from 'mailparser';
import { textFromHtml } from '../mail/html/text-part.ts';
import { type InboundHeader, readInboundHeader } from '../mail/incoming/inbound-header.ts';
import { replyText } from '../mail/incoming/reply-text.ts';
import { signatureKeyNames } from '../mail/incoming/verify-authentication.ts';

/*
 * Parses inbound mail, with mailparser, on a parser thread: the content is hostile, and the thread has limits of time and
 * memory. What the result has is limited; the whole mail is its source.
 */

export interface InboundAttachment {
  /** '' for none. */
  name: string;
  type: string;
  /** Bytes, decoded. */
  size: number;
  /** Without angle brackets; null for none. */
  contentId: string | null;
  /** Whether the HTML shows it (RFC 2392). */
  isInline: boolean;
}

export interface ParsedInbound extends InboundHeader {
  /** The text part, else the text of the HTML; '' for none. */
  text: string;
  isTextCut: boolean;
  /** Null: the mail has no HTML part. */
  html: string | null;
  isHtmlCut: boolean;
  /** `text` without what the mail program quoted. */
  replyText: string;
  attachments: InboundAttachment[];
  /** Names of the DNS records with the keys of its signatures. */
  keyNames: string[];
}

/** An attachment with its bytes. */
export interface AttachmentFile extends InboundAttachment {
  bytes: Uint8Array;
}

export const MAX_TEXT_CHARACTERS = 256 * 1024;
const MAX_HTML_CHARACTERS = 512 * 1024;
const MAX_ATTACHMENTS = 200;
const MAX_NAME = 255;
const PARSER_OPTIONS = {
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
  keepCidLinks: true,
  // Reports are files, and embedded mails are not opened.
  keepDeliveryStatus: true,
  ignoreEmbedded: true,
  maxHeadSize: 512 * 1024,
  maxChildNodes: 500,
};

/** A mail that mailparser does not read. */
interface Unreadable {
  unreadable: 'failed';
}

export async function parseInbound(raw: Buffer, hostname: string): Promise<ParsedInbound | Unreadable> {
  const mail = await parsed(raw);
  if (mail === null) return { unreadable: 'failed' };
  const { text, html, attachments } = mail;
  // Declared as `false` without HTML, and absent then if it was not to be derived from the text.
  const markup = typeof html === 'string' ? html : null;
  const shown = text || (markup === null ? '' : textFromHtml(markup.slice(0, MAX_HTML_CHARACTERS)));
  const cut = shown.slice(0, MAX_TEXT_CHARACTERS).toWellFormed();
  return {
    ...readInboundHeader(raw, hostname),
    text: cut,
    isTextCut: cut.length < shown.length,
    html: markup === null ? null : markup.slice(0, MAX_HTML_CHARACTERS).toWellFormed(),
    isHtmlCut: (markup?.length ?? 0) > MAX_HTML_CHARACTERS,
    replyText: replyText(cut),
    attachments: attachments.slice(0, MAX_ATTACHMENTS).map(described),
    keyNames: signatureKeyNames(raw),
  };
}

/** An attachment by its position, from 0; null: there is none. */
export async function attachmentOf(raw: Buffer, position: number): Promise<AttachmentFile | null> {
  const attachment = (await parsed(raw))?.attachments[position];
  return attachment === undefined || position >= MAX_ATTACHMENTS
    ? null
    : { ...described(attachment), bytes: new Uint8Array(attachment.content) };
}

/** Null: mailparser refuses the mail, for example because it has too many parts. The thread goes on with the next one. */
async function parsed(raw: Buffer): Promise<ParsedMail | null> {
  const { simpleParser } = await import('../inbox/parser-library.ts');
  return simpleParser(raw, PARSER_OPTIONS).catch(() => null);
}

function described({ filename, contentType, size, cid, related }: Attachment): InboundAttachment {
  return {
    name: fileName(filename ?? ''),
    type: /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(contentType) ? contentType : 'application/octet-stream',
    size,
    contentId: cid ?? null,
    isInline: related && cid !== undefined,
  };
}

/** The last part of a path, without characters that no file system shows. */
function fileName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  return last
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '')
    .trim()
    .slice(0, MAX_NAME)
    .toWellFormed();
}
