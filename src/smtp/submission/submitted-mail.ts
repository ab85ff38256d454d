import addressparser from 'nodemailer/lib/addressparser';
import {
  type Alternative,
  type Attachment,
  CONTENT_ID,
  type Mailbox,
  MEDIA_TYPE,
} from '../../mail/content.ts';
import { escapeHtml } from '../../mail/html/escape.ts';
import { unflowText } from '../../mail/html/flowed.ts';
import { isKnownCharset } from '../../mail/incoming/charset.ts';
import { charsetsOfWords, decodeWords, type Fields, readParameters } from '../../mail/incoming/fields.ts';
import { INCOMING_LIMITS, type IncomingLimits } from '../../mail/incoming/limits.ts';
import { contentOf, encodingOf, type Part, readMail, textOf } from '../../mail/incoming/mime.ts';
import { isServiceField } from '../../sending/request.ts';

/**
 * Parses a mail that a customer's program submits over SMTP into addresses, text, attachments and custom header fields,
 * from which the mail is composed again. A mail that cannot be parsed completely is rejected, so that no part of it is
 * lost silently. All other checks follow later.
 */
export interface SubmittedMail {
  from: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  /** For mail without an envelope; the field is not sent. */
  bcc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  /** Never null if text is null. A mail without any text has an empty one. */
  html: string | null;
  text: string | null;
  attachments: Attachment[];
  /** Further alternatives of the text, in order. */
  alternatives: Alternative[];
  /** Without angle brackets; null when there is none, or more than one, or it is malformed. */
  messageId: string | null;
  /** Custom fields, each name once, without those that the service sets. */
  headers: [name: string, value: string][];
  /** `X-Postrider-…` fields, lower case and without that prefix. */
  controls: [name: string, value: string][];
}

export type Submitted = SubmittedMail | { problem: string };

const LIMITS: IncomingLimits = {
  ...INCOMING_LIMITS,
  headerBytes: 64 * 1024,
  headerFields: 500,
  keepsSpaces: true,
};

/** Never throws. `problem`: a sentence for the developer of the program. */
export function parseSubmitted(raw: Buffer): Submitted {
  const mail = readMail(raw, LIMITS);
  const problem = incomplete(raw, mail);
  if (problem !== null) return { problem };
  const found: MailParts = { bodies: [], files: [], alternatives: [], problems: [] };
  collect(mail, found, true);
  const { bodies, files, alternatives } = found;
  if (found.problems[0] !== undefined) return { problem: found.problems[0] };
  const { html, text } = bodies.length === 0 ? { html: null, text: '' } : joined(bodies);
  const inlineIds = contentIdsIn(html ?? '');
  const { fields } = mail;
  return {
    from: addresses(fields, 'from'),
    to: addresses(fields, 'to'),
    cc: addresses(fields, 'cc'),
    bcc: addresses(fields, 'bcc'),
    replyTo: addresses(fields, 'reply-to'),
    subject: decodeWords(fields.get('subject')),
    html,
    text,
    attachments: files.map((file, index) => attachment(file, index, inlineIds)),
    alternatives,
    messageId: messageIdOf(fields),
    ...customFields(fields),
  };
}

/** The limit of the parser that the mail exceeds, null: none. */
function incomplete(raw: Buffer, mail: Part): string | null {
  if (raw.length > LIMITS.mailBytes) return `The mail is longer than ${LIMITS.mailBytes} bytes`;
  const ends = [raw.indexOf('\r\n\r\n'), raw.indexOf('\n\n')].filter((at) => at >= 0);
  if (Math.min(raw.length, ...ends) > LIMITS.headerBytes)
    return `The header is longer than ${LIMITS.headerBytes} bytes`;
  const values = mail.fields.names().flatMap((name) => mail.fields.all(name));
  if (values.length >= LIMITS.headerFields) return `The header has ${LIMITS.headerFields} fields or more`;
  if (values.some(({ length }) => length >= LIMITS.fieldChars))
    return `A header field is longer than ${LIMITS.fieldChars} characters`;
  const parts = [...partsOf(mail)];
  if (parts.length >= LIMITS.parts) return `The mail has ${LIMITS.parts} parts or more`;
  if (parts.some(({ type }) => SEALED_TYPES.has(type)))
    return 'Signed and encrypted mail is not supported: the mail is composed again, and signed for the domain';
  if (parts.some(({ type, children }) => type.startsWith('multipart/') && children.length === 0))
    return 'A multipart of the mail cannot be parsed: its boundary is missing, or it is nested too deep';
  return parts.map(undecodable).find((problem) => problem !== null) ?? null;
}

/** Why the header fields or the content of a part cannot be decoded without guessing, null: they can. */
function undecodable(part: Part): string | null {
  const { fields } = part;
  const declared = [
    ...fields.names().flatMap((name) => fields.all(name).flatMap(charsetsOfWords)),
    ...readParameters(fields.get('content-type')).charsets,
    ...readParameters(fields.get('content-disposition')).charsets,
  ];
  const unknown = declared.find((charset) => !isKnownCharset(charset));
  if (unknown !== undefined) return unknownCharset(unknown, 'a header field');
  if (part.children.length > 0 || encodingOf(part) !== null) return null;
  const encoding = shown(fields.get('content-transfer-encoding'));
  return `The transfer encoding ${encoding} is not supported: use base64 or quoted-printable`;
}

function unknownCharset(label: string, place: string): string {
  return `The charset ${shown(label)} of ${place} is not supported: use UTF-8`;
}

/** A value from the mail within a message: quoted, and short. */
function shown(value: string): string {
  return JSON.stringify(value.slice(0, MAX_SHOWN));
}

const MAX_SHOWN = 60;

const SEALED_TYPES: ReadonlySet<string> = new Set(['multipart/signed', 'multipart/encrypted']);

function* partsOf(part: Part): Generator<Part> {
  yield part;
  for (const child of part.children) yield* partsOf(child);
}

/** One piece of the text, in its plain and HTML forms. */
interface TextPiece {
  text: string | null;
  html: string | null;
}

/** The contents of a mail, in the order of its parts. */
interface MailParts {
  bodies: TextPiece[];
  files: Part[];
  alternatives: Alternative[];
  /** Sentences about texts that cannot be decoded. */
  problems: string[];
}

/** `isAlone`: nothing but alternatives is next to the part, so that a file name in its Content-Type does not make it a file. */
function collect(part: Part, found: MailParts, isAlone: boolean): void {
  const { bodies, files } = found;
  if (part.type === 'multipart/alternative') collectAlternatives(part, found);
  else if (part.children.length > 0) for (const child of part.children) collect(child, found, false);
  else if (isBody(part, 'text/plain', isAlone)) bodies.push({ text: plainTextOf(part, found), html: null });
  else if (isBody(part, 'text/html', isAlone)) bodies.push({ text: null, html: decodedText(part, found) });
  else files.push(part);
}

/** Files are passed on byte for byte; a text is decoded, so its charset must be known. */
function decodedText(part: Part, { problems }: MailParts): string {
  const charset = part.parameters.get('charset') ?? '';
  if (charset !== '' && !isKnownCharset(charset)) problems.push(unknownCharset(charset, 'a text'));
  return textOf(part, part.body.length);
}

function plainTextOf(part: Part, found: MailParts): string {
  const text = decodedText(part, found);
  const isFlowed = part.parameters.get('format')?.toLowerCase() === 'flowed';
  return isFlowed ? unflowText(text, part.parameters.get('delsp')?.toLowerCase() === 'yes') : text;
}

/** The alternatives of one text: the plainest first, the richest last (RFC 2046 §5.1.4). */
function collectAlternatives({ children }: Part, found: MailParts): void {
  const { bodies, alternatives } = found;
  const choices: (TextPiece & { at: number })[] = [];
  const others: { part: Part; at: number }[] = [];
  for (const [at, child] of children.entries()) {
    if (isOtherAlternative(child)) {
      others.push({ part: child, at });
      continue;
    }
    const inside: TextPiece[] = [];
    collect(child, { ...found, bodies: inside }, true);
    // Only the children are alternatives of each other: the pieces inside of one belong together.
    if (inside.length > 0) choices.push({ ...joined(inside), at });
  }
  const text = choices.find((choice) => choice.text !== null);
  const html = choices.findLast((choice) => choice.html !== null);
  if (choices.length > 0) bodies.push({ text: text?.text ?? null, html: html?.html ?? null });
  for (const { part, at } of others) {
    const beforeText = text !== undefined && at < text.at;
    const afterHtml = html !== undefined && at > html.at;
    const position = beforeText ? 'before-text' : afterHtml ? 'after-html' : 'before-html';
    alternatives.push(alternative(part, position, found));
  }
}

/** An alternative that is neither text nor HTML, nor one of the files that some programs add here. */
function isOtherAlternative(part: Part): boolean {
  const { type, fields, filename, children } = part;
  if (children.length > 0 || isBody(part, 'text/plain', true) || isBody(part, 'text/html', true))
    return false;
  if (/^(?:message|multipart)\//.test(type) || !MEDIA_TYPE.test(type)) return false;
  if (/^attachment\b/i.test(fields.get('content-disposition'))) return false;
  if (type === 'text/calendar') return true;
  return filename === '' && (type.startsWith('text/') || fields.get('content-id') === '');
}

/** Text is stored as UTF-8, whatever its charset was. */
function alternative(part: Part, position: Alternative['position'], found: MailParts): Alternative {
  const isText = part.type.startsWith('text/');
  const parameters = [...part.parameters]
    .filter(([name, value]) => !(isText && name === 'charset') && SAFE_PARAMETER.test(`${name}=${value}`))
    .slice(0, MAX_PARAMETERS)
    .map(([name, value]) => `${name}=${value}`);
  const content = isText ? Buffer.from(decodedText(part, found)) : contentOf(part, part.body.length);
  return {
    position,
    contentType: [part.type, ...(isText ? ['charset=utf-8'] : []), ...parameters].join('; '),
    content: content.toString('base64'),
  };
}

/** A parameter that needs no quotes (RFC 2045 §5.1). */
const SAFE_PARAMETER = /^[a-z0-9-]{1,40}=[\w.+-]{1,100}$/;
const MAX_PARAMETERS = 10;

function isBody({ type, filename, fields }: Part, expected: string, isAlone: boolean): boolean {
  const disposition = fields.get('content-disposition');
  const isFile = /^attachment\b/i.test(disposition) || (filename !== '' && !(isAlone && disposition === ''));
  return type === expected && !isFile;
}

/** Joins several pieces; without any HTML the result is text only. */
function joined(bodies: readonly TextPiece[]): TextPiece {
  const text = bodies.every((body) => body.text !== null)
    ? bodies.map((body) => body.text ?? '').join('\n')
    : null;
  if (bodies.every((body) => body.html === null)) return { text, html: null };
  return { text, html: bodies.map((body) => body.html ?? htmlOfText(body.text ?? '')).join('\n') };
}

/** HTML that displays the text unchanged; compliance variables become their HTML forms. */
function htmlOfText(text: string): string {
  const html = escapeHtml(text)
    .replaceAll(/\{\{\s*company_address\s*\}\}/g, '{{company_address_html}}')
    .replaceAll(/\{\{\s*unsubscribe_url\s*\}\}/g, '{{unsubscribe_email_html}}');
  return `<pre style="font:inherit;white-space:pre-wrap">${html}</pre>`;
}

const CID_URL = /cid:([^\s"'<>()]{1,300})/gi;

/** The Content-IDs that the HTML refers to; in URLs they are percent-encoded (RFC 2392 §2). */
function contentIdsIn(html: string): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const [, id = ''] of html.matchAll(CID_URL)) {
    ids.add(id);
    if (id.includes('%')) ids.add(decodePercent(id));
  }
  return ids;
}

/** The text unchanged where it is not valid percent-encoding. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function attachment(part: Part, index: number, inlineIds: ReadonlySet<string>): Attachment {
  const id = part.fields.get('content-id').replace(/^<|>$/g, '');
  const isInline = CONTENT_ID.test(id) && inlineIds.has(id);
  return {
    name: nameOf(part, index),
    contentType: contentType(part),
    content: contentOf(part, part.body.length).toString('base64'),
    ...(isInline ? { contentId: id } : {}),
  };
}

/** The last segment of a path, without control characters; one that is too long keeps its extension. */
function nameOf({ filename, type }: Part, index: number): string {
  const last = filename.split(/[/\\]/).at(-1) ?? '';
  const name = last
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, '')
    .toWellFormed()
    .trim();
  if (name.length > MAX_FILE_NAME) {
    const extension = /\.[^.\s]{1,20}$/u.exec(name)?.[0] ?? '';
    return `${name.slice(0, MAX_FILE_NAME - extension.length)}${extension}`.toWellFormed();
  }
  if (name !== '') return name;
  return type === 'message/rfc822' ? `message-${index + 1}.eml` : `attachment-${index + 1}`;
}

const MAX_FILE_NAME = 255;

/** Messages within the message become files, as message/rfc822 must not be base64-encoded (RFC 2046 §5.2.1). */
function contentType({ type, parameters }: Part): string {
  if (type.startsWith('message/')) return 'application/octet-stream';
  const kept = ['charset', 'method'].flatMap((name) => {
    const value = parameters.get(name) ?? '';
    return /^[\w.+-]{1,40}$/.test(value) ? [`; ${name}=${value}`] : [];
  });
  const full = `${type}${type.startsWith('text/') ? kept.join('') : ''}`;
  return MEDIA_TYPE.test(full) ? full : 'application/octet-stream';
}

/** The mailboxes of a field, groups flattened. The caller validates the addresses. */
function addresses(fields: Fields, name: string): Mailbox[] {
  return fields
    .all(name)
    .flatMap((value) => addressparser(value, { flatten: true }))
    .flatMap(({ name, address }) => {
      // Old Python programs encode name and address as one encoded word.
      if (!address.includes('@') && `${name}${address}`.includes('=?'))
        return addressparser(decodeWords(name || address), { flatten: true });
      return [{ name: decodeWords(name), address }];
    })
    .filter(({ address, name }) => address !== '' || name !== '');
}

/** `id-left@id-right` of RFC 5322 §3.6.4, without quoted strings, domain literals and comments. */
const MESSAGE_ID = /^<([!-;=?A-~]{1,200}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?)>$/;

function messageIdOf(fields: Fields): string | null {
  const [value = '', ...others] = fields.all('message-id');
  return others.length > 0 ? null : (MESSAGE_ID.exec(value.trim())?.[1] ?? null);
}

const CONTROL = 'x-postrider-';

function customFields(fields: Fields): Pick<SubmittedMail, 'headers' | 'controls'> {
  const headers: [string, string][] = [];
  const controls: [string, string][] = [];
  for (const name of fields.names()) {
    // The field of a mail that Postrider has sent and another server, such as a mailing list, submits again.
    if (name === `${CONTROL}id`) continue;
    const value = decodeWords(fields.get(name));
    // Only tags may be repeated.
    if (name === `${CONTROL}tag`)
      for (const each of fields.all(name)) controls.push(['tag', decodeWords(each)]);
    else if (name.startsWith(CONTROL)) controls.push([name.slice(CONTROL.length), value]);
    else if (!isServiceField(name)) headers.push([headerCase(name), value]);
  }
  return { headers, controls };
}

/** `X-Order-Id` for `x-order-id`. */
function headerCase(name: string): string {
  return name.replaceAll(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase());
}
