import type { Work } from '../core/concurrency/slices.ts';
import { domainOf, needsSmtpUtf8 } from './address.ts';
import {
  type Alternative,
  type Attachment,
  type CopyDetails,
  type Mailbox,
  type MessageContent,
  personalize,
} from './content.ts';
import { type EncodedBody, encodeFile, encodeText, encodeTextInSteps, wrapBase64 } from './encode.ts';
import {
  addressField,
  isUrlList,
  listIdField,
  parameterField,
  textField,
  urlListField,
  wordsField,
} from './headers.ts';
import { flowTextInSteps } from './html/flowed.ts';
import { trackLinksInSteps } from './html/links.ts';
import { deriveTextInSteps } from './html/text-part.ts';

/*
 * Composes the message for one recipient (RFC 5322, RFC 2045, RFC 2046): its header fields and its MIME structure. It
 * neither signs nor sends. The result has CRLF line ends, no line over 998 bytes, and only ASCII except for addresses
 * that need SMTPUTF8. The same input always results in the same bytes.
 */

/** A message before it is signed. */
export interface ComposedMessage {
  /** Complete fields in order, folded, without the final line end. */
  header: string[];
  /** Ends with CRLF. */
  body: Buffer;
  /** The header or the recipient contains an address that only an SMTPUTF8 host accepts (RFC 6531). */
  needsSmtpUtf8: boolean;
}

const CRLF = Buffer.from('\r\n');

/** Parts of a copy that were prepared with those of other copies (shared-content.ts). */
export interface CopyParts {
  /** The text derived from the HTML, before `personalize`; null: compose.ts derives it. */
  text: string | null;
  /** The encoded HTML; null: compose.ts encodes it. */
  html: EncodedBody | null;
}

const NOTHING_PREPARED: CopyParts = { text: null, html: null };

/** `compose` in steps: large HTML takes up to a second. */
export function* composeInSteps(
  content: MessageContent,
  copy: CopyDetails,
  prepared: CopyParts = NOTHING_PREPARED,
): Work<ComposedMessage> {
  const body = yield* bodyOf(content, copy, prepared);
  const header = [
    wordsField('Date', [rfc5322Date(content.date)]),
    addressField('From', [content.from]),
    ...recipientFields(content),
    ...(content.replyTo ? [addressField('Reply-To', [content.replyTo].flat())] : []),
    textField('Subject', content.subject),
    wordsField('Message-ID', [`<${content.messageId}>`]),
    ...serviceFields(content, copy),
    'MIME-Version: 1.0',
    ...body.fields,
  ];
  const addresses = [content.from, ...[content.replyTo].flat(), ...content.to, ...content.cc];
  return {
    header,
    body: Buffer.concat(
      endsLine(body.chunks.findLast(({ length }) => length > 0)) ? body.chunks : [...body.chunks, CRLF],
    ),
    needsSmtpUtf8:
      needsSmtpUtf8(copy.recipient) || addresses.some((box) => box !== null && needsSmtpUtf8(box.address)),
  };
}

/** The header of mail that the platform itself sends, such as reports and notices, without the fields of its content. */
export function platformMailHeader({
  from,
  to,
  subject,
  messageId,
  at,
}: {
  from: Mailbox;
  to: string;
  subject: string;
  messageId: string;
  /** Epoch ms. */
  at: number;
}): string[] {
  return [
    wordsField('Date', [rfc5322Date(at)]),
    addressField('From', [from]),
    addressField('To', [{ name: '', address: to }]),
    textField('Subject', subject),
    wordsField('Message-ID', [messageId]),
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
  ];
}

/** The header as it is sent: the signatures, the fields of the message, and the empty line after them. */
export function headerBytes(
  { header }: { header: readonly string[] },
  signatures: readonly string[],
): Buffer {
  return Buffer.from(`${[...signatures, ...header].join('\r\n')}\r\n\r\n`);
}

/** The bytes that are sent after DATA, before dot-stuffing. */
export function messageBytes(message: ComposedMessage, signatures: readonly string[] = []): Buffer {
  return Buffer.concat([headerBytes(message, signatures), message.body]);
}

/** RFC 5322 §3.3, in UTC. */
function rfc5322Date(epochMs: number): string {
  return new Date(epochMs).toUTCString().replace('GMT', '+0000');
}

/** Never Bcc. A message to blind copies alone has an empty group in To (RFC 5322 §3.6.3, appendix A.1.3). */
function recipientFields({ to, cc }: MessageContent): string[] {
  const fields = [];
  if (to.length > 0) fields.push(addressField('To', to));
  if (cc.length > 0) fields.push(addressField('Cc', cc));
  return fields.length > 0 ? fields : ['To: undisclosed-recipients:;'];
}

/** Our header fields, then the caller's; a List-Unsubscribe of the caller replaces ours. */
function serviceFields(content: MessageContent, copy: CopyDetails): string[] {
  const callerField = (name: string) =>
    content.headers.find(([fieldName]) => fieldName.toLowerCase() === name)?.[1];
  const { fields: unsubscribe, allowsCallerPost } = unsubscribeFields(copy, callerField);
  const fields = [
    textField('Feedback-ID', copy.feedbackId),
    wordsField('X-Postrider-Id', [copy.signedId]),
    ...unsubscribe,
    ...(copy.kind === 'marketing' ? bulkFields(content) : []),
  ];
  if (copy.feedbackAddress !== null) {
    fields.push(wordsField('CFBL-Address', [`${copy.feedbackAddress};`, 'report=arf']));
  }
  for (const [name, value] of content.headers) {
    const lower = name.toLowerCase();
    if (!allowsCallerPost && lower === 'list-unsubscribe-post') continue;
    if (copy.kind === 'marketing' && BULK_FIELDS.has(lower)) continue;
    const isList = lower === 'list-unsubscribe' && isUrlList(value);
    fields.push(isList ? urlListField(name, value) : textField(name, value));
  }
  return fields;
}

/** The value of a caller's header field, by its name in lower case. */
type CallerField = (name: string) => string | undefined;

/**
 * List-Unsubscribe-Post requires List-Unsubscribe with an https link (RFC 8058 §3.1, §4): a caller's List-Unsubscribe
 * removes our Post field, and a caller's Post field is sent only with an https link. One click in a mail client must not
 * block sign-in codes, so the link in transactional mail has no Post field.
 */
function unsubscribeFields(
  copy: CopyDetails,
  callerField: CallerField,
): { fields: string[]; allowsCallerPost: boolean } {
  const callerList = callerField('list-unsubscribe');
  if (callerList !== undefined) return { fields: [], allowsCallerPost: /<\s*https:/i.test(callerList) };
  if (copy.kind === 'essential') return { fields: [], allowsCallerPost: false };
  const url = `<${copy.unsubscribeUrl}>`;
  const address = copy.unsubscribeAddress;
  const words = address === null ? [url] : [`${url},`, `<mailto:${address}>`];
  const oneClick = copy.kind === 'marketing' && copy.unsubscribeUrl.startsWith('https:');
  const post =
    oneClick && callerField('list-unsubscribe-post') === undefined
      ? ['List-Unsubscribe-Post: List-Unsubscribe=One-Click']
      : [];
  return { fields: [wordsField('List-Unsubscribe', words), ...post], allowsCallerPost: oneClick };
}

/** RFC 2919 §2: at most 255 bytes. */
const MAX_LIST_ID = 255;

/** What the service alone states about marketing mail, in lower case. */
export const BULK_FIELDS: ReadonlySet<string> = new Set(['list-id', 'precedence']);

function bulkFields({ list, from }: MessageContent): string[] {
  const fields = [];
  const id = list === undefined ? '' : `${list.id}.${domainOf(from.address)}`;
  if (list !== undefined && id.length <= MAX_LIST_ID) fields.push(listIdField(list.name, id));
  fields.push('Precedence: bulk');
  return fields;
}

/** The boundary of a level: mixed, related or alternative. */
type Boundary = (level: 'm' | 'r' | 'a') => string;

/** A MIME entity: its fields and its encoded body, whose last line may lack its line end. */
interface Entity {
  fields: string[];
  chunks: Buffer[];
}

/** mixed( content, attachment… ), or the content alone. */
function* bodyOf(content: MessageContent, copy: CopyDetails, prepared: CopyParts): Work<Entity> {
  const boundary = boundaries(content.messageId);
  // Without HTML nothing can refer to an inline part.
  const isInline = (attachment: Attachment) => content.html !== '' && attachment.contentId !== undefined;
  const inline = content.attachments.filter(isInline).map(attachmentEntity);
  const attached = content.attachments.filter((attachment) => !isInline(attachment)).map(attachmentEntity);
  const main = yield* contentEntity(content, copy, { prepared, inline, boundary });
  return attached.length > 0 ? multipart('mixed', boundary('m'), [main, ...attached]) : main;
}

/** alternative( text, related( html, inline… ), alternative… ), without the parts that the content lacks. */
function* contentEntity(
  content: MessageContent,
  copy: CopyDetails,
  { prepared, inline, boundary }: { prepared: CopyParts; inline: Entity[]; boundary: Boundary },
): Work<Entity> {
  const { html, text, alternatives = [] } = content;
  const plainText = text ?? prepared.text ?? (yield* deriveTextInSteps(html));
  const at = (position: Alternative['position']) =>
    alternatives.filter((alternative) => alternative.position === position).map(alternativeEntity);
  const entities = at('before-text');
  if (plainText !== '' || html === '') entities.push(yield* plainTextEntity(plainText, copy, text === null));
  yield;
  entities.push(...at('before-html'));
  if (html !== '') {
    const body = prepared.html ?? (yield* encodedHtml(html, copy));
    entities.push(htmlEntity(body, inline, boundary));
  }
  entities.push(...at('after-html'));
  const [only, ...more] = entities;
  return only !== undefined && more.length === 0 ? only : multipart('alternative', boundary('a'), entities);
}

/** A caller's text is not reflowed; derived text has a line for each paragraph. */
function* plainTextEntity(text: string, copy: CopyDetails, isDerived: boolean): Work<Entity> {
  const source = personalize(text, copy, 'text');
  yield;
  if (!isDerived) return textEntity('plain', yield* encodeTextInSteps(source));
  const flowed = yield* flowTextInSteps(source);
  yield;
  return textEntity('plain', yield* encodeTextInSteps(flowed), '; format=flowed');
}

/** The parts of one copy as a reader sees them, without line wrapping and transfer encoding. Null: there is no such part. */
export function* readableParts(
  content: MessageContent,
  copy: CopyDetails,
): Work<{ html: string | null; text: string | null }> {
  const text = personalize(content.text ?? (yield* deriveTextInSteps(content.html)), copy, 'text');
  yield;
  const html =
    content.html === '' ? null : personalize(yield* trackLinksInSteps(content.html, copy), copy, 'html');
  return { html, text: text === '' ? null : text };
}

function* encodedHtml(source: string, copy: CopyDetails): Work<EncodedBody> {
  const tracked = yield* trackLinksInSteps(source, copy);
  yield;
  return yield* encodeTextInSteps(tracked, (lines) => personalize(lines, copy, 'html'));
}

function htmlEntity(body: EncodedBody, inline: Entity[], boundary: Boundary): Entity {
  const html = textEntity('html', body);
  if (inline.length === 0) return html;
  return multipart('related', boundary('r'), [html, ...inline], { type: 'text/html' });
}

function alternativeEntity({ contentType, content }: Alternative): Entity {
  const type = wordsField('Content-Type', contentType.split(/(?<=;) /));
  if (!/^text\//i.test(contentType)) {
    return { fields: [type, 'Content-Transfer-Encoding: base64'], chunks: [wrapBase64(content)] };
  }
  const { encoding, chunks } = encodeText(Buffer.from(content, 'base64').toString());
  return { fields: [type, `Content-Transfer-Encoding: ${encoding}`], chunks };
}

function textEntity(subtype: 'plain' | 'html', { encoding, chunks }: EncodedBody, parameters = ''): Entity {
  const fields = [
    `Content-Type: text/${subtype}; charset=utf-8${parameters}`,
    `Content-Transfer-Encoding: ${encoding}`,
  ];
  return { fields, chunks };
}

function endsLine(chunk: Buffer | undefined): boolean {
  return chunk?.at(-2) === 13 && chunk.at(-1) === 10;
}

/** Types that must not be base64 (RFC 2045 §6.4); their attachments are sent as application/octet-stream. */
const COMPOSITE = /^(?:message|multipart)\//i;

/** Types whose content is probably shorter and readable without base64. */
const TEXTUAL = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml) *(?:;|$))/i;

function attachmentEntity(attachment: Attachment): Entity {
  const { name, contentType, content, contentId } = attachment;
  const type = COMPOSITE.test(contentType) ? 'application/octet-stream' : contentType;
  const { encoding, chunks }: EncodedBody = TEXTUAL.test(type)
    ? encodeFile(content)
    : { encoding: 'base64', chunks: [wrapBase64(content)] };
  const fields = [
    parameterField('Content-Type', type, type.includes(';') ? {} : { name }),
    parameterField('Content-Disposition', contentId === undefined ? 'attachment' : 'inline', {
      filename: name,
    }),
    `Content-Transfer-Encoding: ${encoding}`,
  ];
  if (contentId !== undefined) fields.push(wordsField('Content-ID', [`<${contentId}>`]));
  return { fields, chunks };
}

/** The CRLF before a boundary line belongs to the boundary (RFC 2046 §5.1.1). */
function multipart(
  subtype: string,
  boundary: string,
  children: Entity[],
  parameters: Record<string, string> = {},
): Entity {
  const chunks: Buffer[] = [];
  let lineEnd = '';
  for (const { fields, chunks: inner } of children) {
    chunks.push(Buffer.from(`${lineEnd}--${boundary}\r\n${fields.join('\r\n')}\r\n\r\n`), ...inner);
    lineEnd = '\r\n';
  }
  chunks.push(Buffer.from(`${lineEnd}--${boundary}--\r\n`));
  return {
    fields: [parameterField('Content-Type', `multipart/${subtype}`, { ...parameters, boundary })],
    chunks,
  };
}

/**
 * No part can contain a boundary: `=_` is impossible in quoted-printable and base64, and `encodeText` encodes every line
 * that begins with `--=_`. The Message-ID makes it unique among nested messages.
 */
function boundaries(messageId: string): Boundary {
  const tail = messageId.replace(/[^A-Za-z0-9]/g, '').slice(0, 40);
  return (level) => `=_${level}_${tail}`;
}
