import { type Refusal, refuse } from '../core/refusal.ts';
import { type Attachment, CONTENT_ID, MEDIA_TYPE } from '../mail/content.ts';
import type { Fault } from './faults.ts';

export const MAX_ATTACHMENTS = 10;
/** Decoded bytes of all attachments of a message. */
export const MAX_ATTACHMENT_BYTES = 2 * 1024 * 1024;

/** Strict RFC 4648 §4: bits after the last byte are zero (§3.5), so each content has one form. */
const BASE64 = /^[A-Za-z0-9+/]*(?:[AQgw]==|[AEIMQUYcgkosw048]=)?$/;
const BAD_NAME = /[\p{Cc}/\\\u2028\u2029]/u;

/** Checked before the contents of the attachments. */
export function tooManyAttachments(attachments: readonly Attachment[]): Refusal | null {
  if (attachments.length <= MAX_ATTACHMENTS) return null;
  const message = `A message can have at most ${MAX_ATTACHMENTS} attachments; the request has ${attachments.length}`;
  return refuse('TOO_MANY_ATTACHMENTS', message, { details: [{ field: 'attachments', message }] });
}

/**
 * Reports malformed attachments; returns a refusal when they are too large together, which applies only when none is
 * malformed. `otherBytes`: bytes of other parts that count as attachments.
 */
export function checkAttachments(attachments: Attachment[], fault: Fault, otherBytes = 0): Refusal | null {
  const ids = new Set<string>();
  let total = otherBytes;
  for (const [index, attachment] of attachments.entries()) {
    const field = `attachments[${index}]`;
    const { name, contentType, content, contentId } = attachment;
    if (name.length < 1 || name.length > 255) fault(`${field}.name`, 'must have 1 to 255 characters');
    else if (BAD_NAME.test(name) || !name.isWellFormed())
      fault(`${field}.name`, 'must not contain path separators or control characters');
    if (!MEDIA_TYPE.test(contentType))
      fault(`${field}.contentType`, 'must be a media type such as "application/pdf"');
    else if (/^(multipart|message)\//i.test(contentType)) {
      fault(
        `${field}.contentType`,
        'cannot be attached as base64 (RFC 2046 §5); send it as "application/octet-stream"',
      );
    }
    if (content.length % 4 !== 0 || !BASE64.test(content))
      fault(`${field}.content`, 'must be base64 without line breaks');
    else total += decodedLength(content);
    if (contentId !== undefined && !CONTENT_ID.test(contentId)) {
      fault(`${field}.contentId`, 'must have 1 to 250 visible ASCII characters and no angle brackets');
    } else if (contentId !== undefined && ids.has(contentId)) fault(`${field}.contentId`, 'is used twice');
    if (contentId !== undefined) ids.add(contentId);
  }
  if (total > MAX_ATTACHMENT_BYTES) {
    const message = `Attachments can have at most ${MAX_ATTACHMENT_BYTES} decoded bytes together; those of the request have ${total}`;
    return refuse('ATTACHMENTS_TOO_LARGE', message, { details: [{ field: 'attachments', message }] });
  }
  return null;
}

/** Base64 of the URL-safe alphabet, or without padding (RFC 4648 §3.2 and §5), in the usual form; other text unchanged. */
export function canonicalBase64(text: string): string {
  const usual =
    text.includes('-') || text.includes('_') ? text.replaceAll('-', '+').replaceAll('_', '/') : text;
  return usual.length % 4 === 0 || usual.length % 4 === 1
    ? usual
    : usual.padEnd(usual.length + 4 - (usual.length % 4), '=');
}

/** Number of bytes that valid base64 encodes. */
export function decodedLength(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}
