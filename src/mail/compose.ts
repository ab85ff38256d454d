import { needsSmtpUtf8 } from './address.ts';
import type { Attachment, CopyDetails, MessageContent } from './content.ts';
import { encodeText, wrapBase64 } from './encode.ts';
import { flowText } from './flowed.ts';
import { addressField, parameterField, textField, wordsField } from './headers.ts';
import { personalise } from './personalise.ts';
import { textFromHtml } from './text-part.ts';
import { tracked } from './tracked.ts';

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
  const body = bodyOf(content, copy);
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

/**
 * The service's own fields and the caller's. List-Unsubscribe and List-Unsubscribe-Post stand or fall together
 * (RFC 8058 §3.1): a caller's own List-Unsubscribe takes our Post field away, and a caller's Post field counts
 * only beside an https link.
 */
function serviceFields(content: MessageContent, copy: CopyDetails): string[] {
  const own = (name: string) => content.headers.find(([given]) => given.toLowerCase() === name)?.[1];
  const ownList = own('list-unsubscribe');
  const fields = [textField('Feedback-ID', copy.feedbackId), wordsField('X-Postrider-Id', [copy.signedId])];
  if (ownList === undefined) {
    const url = `<${copy.unsubscribeUrl}>`;
    const address = copy.unsubscribeAddress;
    fields.push(
      wordsField('List-Unsubscribe', address === null ? [url] : [`${url},`, `<mailto:${address}>`]),
    );
    if (own('list-unsubscribe-post') === undefined)
      fields.push('List-Unsubscribe-Post: List-Unsubscribe=One-Click');
  }
  if (copy.feedbackAddress !== null) {
    fields.push(wordsField('CFBL-Address', [`${copy.feedbackAddress};`, 'report=arf']));
  }
  const postIsVoid = ownList !== undefined && !/<\s*https:/i.test(ownList);
  for (const [name, value] of content.headers) {
    if (postIsVoid && name.toLowerCase() === 'list-unsubscribe-post') continue;
    fields.push(textField(name, value));
  }
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
function bodyOf(content: MessageContent, copy: CopyDetails): Entity {
  const boundary = boundaries(content.messageId);
  // Without html there is nothing an inline part could stand in.
  const isInline = (attachment: Attachment) => content.html !== '' && attachment.contentId !== undefined;
  const inline = content.attachments.filter(isInline).map(attachmentEntity);
  const attached = content.attachments.filter((attachment) => !isInline(attachment)).map(attachmentEntity);
  const readable = readableOf(content, copy, inline, boundary);
  return attached.length > 0 ? multipart('mixed', boundary('m'), [readable, ...attached]) : readable;
}

/** alternative( text, related( html, inline… ) ), leaving out what there is none of. */
function readableOf(
  content: MessageContent,
  copy: CopyDetails,
  inline: Entity[],
  boundary: Boundary,
): Entity {
  const words = content.text ?? textFromHtml(content.html);
  const personal = personalise(words, copy, 'text');
  // A caller's own text stays as it is; derived text has paragraphs as lines.
  const text =
    content.text === null
      ? textEntity('plain', flowText(personal), '; format=flowed')
      : textEntity('plain', personal);
  if (content.html === '') return text;
  const bare = textEntity('html', personalise(tracked(content.html, copy), copy, 'html'));
  const html =
    inline.length > 0 ? multipart('related', boundary('r'), [bare, ...inline], { type: 'text/html' }) : bare;
  return words === '' ? html : multipart('alternative', boundary('a'), [text, html]);
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
