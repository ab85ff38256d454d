import { type Work, withoutPause } from '../core/slices.ts';
import { domainOf, needsSmtpUtf8 } from './address.ts';
import type { Alternative, Attachment, CopyDetails, MessageContent } from './content.ts';
import { encodeText, wrapBase64 } from './encode.ts';
import { addressField, listIdField, parameterField, textField, wordsField } from './headers.ts';
import { flowText } from './html/flowed.ts';
import { derivingText } from './html/text-part.ts';
import { trackingLinks } from './html/tracked.ts';
import { personalise } from './personalise.ts';

/**
 * Makes the message that one recipient gets (RFC 5322, RFC 2045, RFC 2046). Owns which fields it has and how
 * its parts are nested; signs nothing and sends nothing. CRLF throughout, no line over 998 octets, ASCII but for
 * addresses that need SMTPUTF8, and the same input always gives the same octets.
 */
export interface ComposedMessage {
  /** Whole fields, folded, without their last line end, in order. */
  header: string[];
  /** Ends with CRLF. */
  body: Buffer;
  /** The header or the recipient holds an address that only an SMTPUTF8 host takes (RFC 6531). */
  needsSmtpUtf8: boolean;
}

const CRLF = Buffer.from('\r\n');

/** Puts a content and one copy's details together. */
export function compose(content: MessageContent, copy: CopyDetails): ComposedMessage {
  return withoutPause(composing(content, copy));
}

/** The same in steps: large HTML takes up to a second. */
export function* composing(content: MessageContent, copy: CopyDetails): Work<ComposedMessage> {
  const body = yield* bodyOf(content, copy);
  const header = [
    wordsField('Date', [rfc5322Date(content.date)]),
    addressField('From', [content.from]),
    ...recipientFields(content),
    ...(content.replyTo ? [addressField('Reply-To', [content.replyTo])] : []),
    textField('Subject', content.subject),
    wordsField('Message-ID', [`<${content.messageId}>`]),
    ...serviceFields(content, copy),
    'MIME-Version: 1.0',
    ...body.fields,
  ];
  const addresses = [content.from, content.replyTo, ...content.to, ...content.cc];
  return {
    header,
    body: Buffer.concat(endsLine(body.chunks.at(-1)) ? body.chunks : [...body.chunks, CRLF]),
    needsSmtpUtf8:
      needsSmtpUtf8(copy.recipient) || addresses.some((box) => box !== null && needsSmtpUtf8(box.address)),
  };
}

/** The octets that go over the wire after DATA, signatures first; dots are not yet doubled. */
export function messageBytes(message: ComposedMessage, signatures: readonly string[] = []): Buffer {
  const header = `${[...signatures, ...message.header].join('\r\n')}\r\n\r\n`;
  return Buffer.concat([Buffer.from(header), message.body]);
}

/** RFC 5322 §3.3, in UTC. */
function rfc5322Date(epochMs: number): string {
  return new Date(epochMs).toUTCString().replace('GMT', '+0000');
}

/** Never Bcc. A message to blind copies alone still says whom it is to (RFC 5322 §3.6.3, appendix A.1.3). */
function recipientFields({ to, cc }: MessageContent): string[] {
  const fields = [];
  if (to.length > 0) fields.push(addressField('To', to));
  if (cc.length > 0) fields.push(addressField('Cc', cc));
  return fields.length > 0 ? fields : ['To: undisclosed-recipients:;'];
}

/** The service's own fields and the caller's, which replace ours of the same name. */
function serviceFields(content: MessageContent, copy: CopyDetails): string[] {
  const own = (name: string) => content.headers.find(([given]) => given.toLowerCase() === name)?.[1];
  const { fields: unsubscribe, takesOwnPost } = unsubscribeFields(copy, own);
  const fields = [
    textField('Feedback-ID', copy.feedbackId),
    wordsField('X-Postrider-Id', [copy.signedId]),
    ...unsubscribe,
    ...(copy.kind === 'marketing' ? bulkFields(content, own) : []),
  ];
  if (copy.feedbackAddress !== null) {
    fields.push(wordsField('CFBL-Address', [`${copy.feedbackAddress};`, 'report=arf']));
  }
  for (const [name, value] of content.headers) {
    if (!takesOwnPost && name.toLowerCase() === 'list-unsubscribe-post') continue;
    fields.push(textField(name, value));
  }
  return fields;
}

type OwnField = (name: string) => string | undefined;

/**
 * List-Unsubscribe and List-Unsubscribe-Post stand or fall together, and need an https link (RFC 8058 §3.1, §4): a
 * caller's own List-Unsubscribe removes our Post field, and a caller's Post field counts only beside an https link.
 * One click in a mail client must not block sign-in codes: our link in transactional mail has no Post field.
 */
function unsubscribeFields(copy: CopyDetails, own: OwnField): { fields: string[]; takesOwnPost: boolean } {
  const ownList = own('list-unsubscribe');
  if (ownList !== undefined) return { fields: [], takesOwnPost: /<\s*https:/i.test(ownList) };
  if (copy.kind === 'essential') return { fields: [], takesOwnPost: false };
  const url = `<${copy.unsubscribeUrl}>`;
  const address = copy.unsubscribeAddress;
  const words = address === null ? [url] : [`${url},`, `<mailto:${address}>`];
  const oneClick = copy.kind === 'marketing' && copy.unsubscribeUrl.startsWith('https:');
  const post =
    oneClick && own('list-unsubscribe-post') === undefined
      ? ['List-Unsubscribe-Post: List-Unsubscribe=One-Click']
      : [];
  return { fields: [wordsField('List-Unsubscribe', words), ...post], takesOwnPost: oneClick };
}

/** RFC 2919 §2: at most 255 octets. */
const MAX_LIST_ID = 255;

function bulkFields({ list, from }: MessageContent, own: OwnField): string[] {
  const fields = [];
  const id = list === undefined ? '' : `${list.id}.${domainOf(from.address)}`;
  if (list !== undefined && id.length <= MAX_LIST_ID && own('list-id') === undefined)
    fields.push(listIdField(list.name, id));
  if (own('precedence') === undefined) fields.push('Precedence: bulk');
  return fields;
}

/** The boundary of one level: mixed, related or alternative. */
type Boundary = (level: 'm' | 'r' | 'a') => string;

/** A MIME entity: its own fields and its encoded body, whose last line need not be ended. */
interface Entity {
  fields: string[];
  chunks: Buffer[];
}

/** mixed( readable, attachment… ), or the readable part alone. */
function* bodyOf(content: MessageContent, copy: CopyDetails): Work<Entity> {
  const boundary = boundaries(content.messageId);
  // Without html there is nothing an inline part could stand in.
  const isInline = (attachment: Attachment) => content.html !== '' && attachment.contentId !== undefined;
  const inline = content.attachments.filter(isInline).map(attachmentEntity);
  const attached = content.attachments.filter((attachment) => !isInline(attachment)).map(attachmentEntity);
  const readable = yield* readableOf(content, copy, inline, boundary);
  return attached.length > 0 ? multipart('mixed', boundary('m'), [readable, ...attached]) : readable;
}

/** alternative( text, related( html, inline… ), alternative… ), without what the content lacks. */
function* readableOf(
  content: MessageContent,
  copy: CopyDetails,
  inline: Entity[],
  boundary: Boundary,
): Work<Entity> {
  const { html, text, alternatives = [] } = content;
  const words = text ?? (yield* derivingText(html));
  const at = (position: Alternative['position']) =>
    alternatives.filter((alternative) => alternative.position === position).map(alternativeEntity);
  const forms = at('before-text');
  if (words !== '' || html === '') forms.push(textOf(words, copy, text === null));
  yield;
  forms.push(...at('before-html'));
  if (html !== '') forms.push(yield* htmlOf(html, copy, inline, boundary));
  forms.push(...at('after-html'));
  const [only, ...more] = forms;
  return only !== undefined && more.length === 0 ? only : multipart('alternative', boundary('a'), forms);
}

/** A caller's own text stays as it is; derived text has paragraphs as lines. */
function textOf(words: string, copy: CopyDetails, isDerived: boolean): Entity {
  const source = personalise(words, copy, 'text');
  return isDerived ? textEntity('plain', flowText(source), '; format=flowed') : textEntity('plain', source);
}

function* htmlOf(source: string, copy: CopyDetails, inline: Entity[], boundary: Boundary): Work<Entity> {
  const changed = personalise(yield* trackingLinks(source, copy), copy, 'html');
  yield;
  const html = textEntity('html', changed);
  if (inline.length === 0) return html;
  return multipart('related', boundary('r'), [html, ...inline], { type: 'text/html' });
}

function alternativeEntity({ contentType, content }: Alternative): Entity {
  const type = wordsField('Content-Type', contentType.split(/(?<=;) /));
  if (!/^text\//i.test(contentType)) {
    return { fields: [type, 'Content-Transfer-Encoding: base64'], chunks: [wrapBase64(content)] };
  }
  const { encoding, body } = encodeText(Buffer.from(content, 'base64').toString());
  return { fields: [type, `Content-Transfer-Encoding: ${encoding}`], chunks: [body] };
}

function textEntity(subtype: 'plain' | 'html', source: string, parameters = ''): Entity {
  const { encoding, body } = encodeText(source);
  const fields = [
    `Content-Type: text/${subtype}; charset=utf-8${parameters}`,
    `Content-Transfer-Encoding: ${encoding}`,
  ];
  return { fields, chunks: [body] };
}

function endsLine(chunk: Buffer | undefined): boolean {
  return chunk?.at(-2) === 13 && chunk.at(-1) === 10;
}

/** Types whose content may not be base64 (RFC 2045 §6.4) or is structure rather than content. */
const COMPOSITE = /^(?:message|multipart)\//i;

function attachmentEntity(attachment: Attachment): Entity {
  const { name, contentType, content, contentId } = attachment;
  const type = COMPOSITE.test(contentType) ? 'application/octet-stream' : contentType;
  const fields = [
    parameterField('Content-Type', type, type.includes(';') ? {} : { name }),
    parameterField('Content-Disposition', contentId === undefined ? 'attachment' : 'inline', {
      filename: name,
    }),
    'Content-Transfer-Encoding: base64',
  ];
  if (contentId !== undefined) fields.push(wordsField('Content-ID', [`<${contentId}>`]));
  return { fields, chunks: [wrapBase64(content)] };
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
 * `=_` cannot stand in quoted-printable or base64, and `encodeText` never leaves a line with `--=_` as it is:
 * no part can hold one. The Message-ID in it keeps nested messages apart.
 */
function boundaries(messageId: string): Boundary {
  const tail = messageId.replace(/[^A-Za-z0-9]/g, '').slice(0, 40);
  return (level) => `=_${level}_${tail}`;
}
