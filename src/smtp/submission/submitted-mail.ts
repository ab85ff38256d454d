import addressparser from 'nodemailer/lib/addressparser';
import type { Alternative, Attachment, Mailbox } from '../../mail/content.ts';
import { CONTENT_ID, MEDIA_TYPE } from '../../mail/content.ts';
import { decodeWords, type Fields } from '../../mail/incoming/fields.ts';
import { INCOMING_LIMITS, type IncomingLimits } from '../../mail/incoming/limits.ts';
import { contentOf, type Part, readMail, textOf } from '../../mail/incoming/mime.ts';
import { escapeHtml } from '../../mail/template.ts';

/**
 * Takes apart a mail that a customer's program hands in over SMTP: addresses, words, attachments and its own
 * header fields, from which the mail is made anew. What cannot be read whole is refused: nothing of a
 * customer's mail may get lost without a word. Checks no more than that.
 */
export interface SubmittedMail {
  from: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  /** Never null together with text. */
  html: string | null;
  text: string | null;
  attachments: Attachment[];
  /** Other forms of the text, in their order. */
  alternatives: Alternative[];
  /** Without angle brackets; null when there is none, or more than one, or it is malformed. */
  messageId: string | null;
  /** The program's own fields, each name once; what the service sets itself is left out. */
  headers: [name: string, value: string][];
  /** `X-Postrider-…`, lower case and without that beginning. */
  controls: [name: string, value: string][];
}

export type Submitted = SubmittedMail | { problem: string };

const LIMITS: IncomingLimits = { ...INCOMING_LIMITS, headerBytes: 64 * 1024, headerFields: 500 };

/** Never throws; the problem is in words for whoever wrote the program. */
export function readSubmitted(raw: Buffer): Submitted {
  const mail = readMail(raw, LIMITS);
  const problem = incomplete(raw, mail);
  if (problem !== null) return { problem };
  const found: Found = { bodies: [], files: [], alternatives: [] };
  collect(mail, found);
  const { bodies, files, alternatives } = found;
  if (bodies.length === 0) return { problem: 'the mail holds no text: neither text/plain nor text/html' };
  const { html, text } = joined(bodies);
  const { fields } = mail;
  return {
    from: addresses(fields, 'from'),
    to: addresses(fields, 'to'),
    cc: addresses(fields, 'cc'),
    replyTo: addresses(fields, 'reply-to'),
    subject: decodeWords(fields.get('subject')),
    html,
    text,
    attachments: files.map((file, index) => attachment(file, index, html ?? '')),
    alternatives,
    messageId: messageIdOf(fields),
    ...ownFields(fields),
  };
}

/** What the limits of reading would have cut off, or taken apart halfway. */
function incomplete(raw: Buffer, mail: Part): string | null {
  const ends = [raw.indexOf('\r\n\r\n'), raw.indexOf('\n\n')].filter((at) => at >= 0);
  if (Math.min(raw.length, ...ends) > LIMITS.headerBytes)
    return `the header is longer than ${LIMITS.headerBytes} bytes`;
  const values = mail.fields.names().flatMap((name) => mail.fields.all(name));
  if (values.length >= LIMITS.headerFields) return `the header has ${LIMITS.headerFields} fields or more`;
  if (values.some(({ length }) => length >= LIMITS.fieldChars))
    return `a header field is longer than ${LIMITS.fieldChars} characters`;
  const parts = [...partsOf(mail)];
  if (parts.length >= LIMITS.parts) return `the mail has ${LIMITS.parts} parts or more`;
  if (parts.some(({ type }) => SEALED.has(type)))
    return 'signed and encrypted mail cannot be taken: mail is made anew here, and signed by the domain';
  if (parts.some(({ type, children }) => type.startsWith('multipart/') && children.length === 0))
    return 'a multipart of the mail cannot be taken apart: its boundary is missing, or it is nested too deep';
  return null;
}

const SEALED: ReadonlySet<string> = new Set(['multipart/signed', 'multipart/encrypted']);

function* partsOf(part: Part): Generator<Part> {
  yield part;
  for (const child of part.children) yield* partsOf(child);
}

/** One piece of what is read, in the forms it comes in. */
interface Body {
  text: string | null;
  html: string | null;
}

/** What a mail consists of, in the order of its parts. */
interface Found {
  bodies: Body[];
  files: Part[];
  alternatives: Alternative[];
}

function collect(part: Part, found: Found): void {
  const { bodies, files } = found;
  if (part.type === 'multipart/alternative') collectForms(part, found);
  else if (part.children.length > 0) for (const child of part.children) collect(child, found);
  else if (isRead(part, 'text/plain')) bodies.push({ text: textOf(part, part.body.length), html: null });
  else if (isRead(part, 'text/html')) bodies.push({ text: null, html: textOf(part, part.body.length) });
  else files.push(part);
}

/** The forms of one text: the plainest first, the richest last (RFC 2046 §5.1.4). */
function collectForms({ children }: Part, { bodies, files, alternatives }: Found): void {
  const choices: (Body & { at: number })[] = [];
  const others: { part: Part; at: number }[] = [];
  for (const [at, child] of children.entries()) {
    if (isOtherForm(child)) {
      others.push({ part: child, at });
      continue;
    }
    const inside: Body[] = [];
    collect(child, { bodies: inside, files, alternatives });
    choices.push(...inside.map((body) => ({ ...body, at })));
  }
  const text = choices.find((choice) => choice.text !== null);
  const html = choices.findLast((choice) => choice.html !== null);
  if (choices.length > 0) bodies.push({ text: text?.text ?? null, html: html?.html ?? null });
  for (const { part, at } of others) {
    const beforeText = text !== undefined && at < text.at;
    const afterHtml = html !== undefined && at > html.at;
    const position = beforeText ? 'before-text' : afterHtml ? 'after-html' : 'before-html';
    alternatives.push(alternative(part, position));
  }
}

/** Neither text nor html, nor one of the files that some programs put here. */
function isOtherForm(part: Part): boolean {
  const { type, fields, filename, children } = part;
  if (children.length > 0 || isRead(part, 'text/plain') || isRead(part, 'text/html')) return false;
  if (/^(?:message|multipart)\//.test(type) || !MEDIA_TYPE.test(type)) return false;
  if (/^attachment\b/i.test(fields.get('content-disposition'))) return false;
  if (type === 'text/calendar') return true;
  return filename === '' && (type.startsWith('text/') || fields.get('content-id') === '');
}

/** Text is stored as UTF-8, whatever its charset was. */
function alternative(part: Part, position: Alternative['position']): Alternative {
  const isText = part.type.startsWith('text/');
  const parameters = [...part.parameters]
    .filter(([name, value]) => !(isText && name === 'charset') && SAFE_PARAMETER.test(`${name}=${value}`))
    .slice(0, MAX_PARAMETERS)
    .map(([name, value]) => `${name}=${value}`);
  const content = isText ? Buffer.from(textOf(part, part.body.length)) : contentOf(part, part.body.length);
  return {
    position,
    contentType: [part.type, ...(isText ? ['charset=utf-8'] : []), ...parameters].join('; '),
    content: content.toString('base64'),
  };
}

/** A parameter that needs no quotes (RFC 2045 §5.1). */
const SAFE_PARAMETER = /^[a-z0-9-]{1,40}=[\w.+-]{1,100}$/;
const MAX_PARAMETERS = 10;

function isRead({ type, filename, fields }: Part, wanted: string): boolean {
  return type === wanted && filename === '' && !/^attachment\b/i.test(fields.get('content-disposition'));
}

/** Several pieces one below the other; without any html there is text only. */
function joined(bodies: readonly Body[]): Body {
  const text = bodies.every((body) => body.text !== null)
    ? bodies.map((body) => body.text ?? '').join('\n')
    : null;
  if (bodies.every((body) => body.html === null)) return { text, html: null };
  return { text, html: bodies.map((body) => body.html ?? htmlOfText(body.text ?? '')).join('\n') };
}

/** Text as html that shows it as it is; the plain compliance variables become those that html must use. */
function htmlOfText(text: string): string {
  const html = escapeHtml(text)
    .replaceAll(/\{\{\s*company_address\s*\}\}/g, '{{company_address_html}}')
    .replaceAll(/\{\{\s*unsubscribe_url\s*\}\}/g, '{{unsubscribe_email_html}}');
  return `<pre style="font:inherit;white-space:pre-wrap">${html}</pre>`;
}

function attachment(part: Part, index: number, html: string): Attachment {
  const id = part.fields.get('content-id').replace(/^<|>$/g, '');
  const isInline = CONTENT_ID.test(id) && html.includes(`cid:${id}`);
  return {
    name: nameOf(part, index),
    contentType: contentType(part),
    content: contentOf(part, part.body.length).toString('base64'),
    ...(isInline ? { contentId: id } : {}),
  };
}

/** The last part of a path, without what may not stand in a name. */
function nameOf({ filename, type }: Part, index: number): string {
  const last = filename.split(/[/\\]/).at(-1) ?? '';
  const name = last
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, '')
    .toWellFormed()
    .trim()
    .slice(0, 255);
  if (name !== '') return name;
  return type === 'message/rfc822' ? `message-${index + 1}.eml` : `attachment-${index + 1}`;
}

/** Messages within the message travel as files: base64 may not be laid around them (RFC 2046 §5.2.1). */
function contentType({ type, parameters }: Part): string {
  if (type.startsWith('message/')) return 'application/octet-stream';
  const kept = ['charset', 'method'].flatMap((name) => {
    const value = parameters.get(name) ?? '';
    return /^[\w.+-]{1,40}$/.test(value) ? [`; ${name}=${value}`] : [];
  });
  const full = `${type}${type.startsWith('text/') ? kept.join('') : ''}`;
  return MEDIA_TYPE.test(full) ? full : 'application/octet-stream';
}

/** The mailboxes of a field, groups opened. Whether an address is valid is checked by the caller. */
function addresses(fields: Fields, name: string): Mailbox[] {
  return fields
    .all(name)
    .flatMap((value) => addressparser(value, { flatten: true }))
    .flatMap(({ name, address }) => {
      // Old Python programs put name and address into one encoded word.
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

/** Set by the service, or trace of how the mail came here. */
const SET_BY_US: ReadonlySet<string> = new Set(
  `from to cc bcc reply-to subject sender date message-id mime-version return-path authentication-results feedback-id`.split(
    ' ',
  ),
);
const OUR_PREFIXES = ['received', 'content-', 'dkim-', 'arc-', 'resent-', 'cfbl-'];
const CONTROL = 'x-postrider-';

function ownFields(fields: Fields): Pick<SubmittedMail, 'headers' | 'controls'> {
  const headers: [string, string][] = [];
  const controls: [string, string][] = [];
  for (const name of fields.names()) {
    const value = decodeWords(fields.get(name));
    if (name.startsWith(CONTROL)) controls.push([name.slice(CONTROL.length), value]);
    else if (!SET_BY_US.has(name) && !OUR_PREFIXES.some((prefix) => name.startsWith(prefix)))
      headers.push([spelt(name), value]);
  }
  return { headers, controls };
}

/** `x-order-id` as people write it. */
function spelt(name: string): string {
  return name.replaceAll(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase());
}
