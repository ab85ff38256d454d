import { invalid, type Refusal } from '../../core/refusal.ts';

/** A file that was sent, with the other fields of its form. */
export interface SentFile {
  /** A part of the body, without a copy, unless it is encoded. */
  file: Buffer;
  /** Undefined: the body is the file. */
  fileName: string | undefined;
  fields: Readonly<Record<string, string>>;
}

/** Parts of a form: the file and its fields. */
const MAX_PARTS = 10;
/** Bytes of the header of a part. */
const MAX_PART_HEADER = 8 * 1024;
const DAMAGED = 'the form is damaged or incomplete (multipart/form-data, RFC 7578)';

/**
 * The file in a body: the body itself, or the field `file` of a form (`multipart/form-data`, RFC 7578). Refuses
 * (`VALIDATION_ERROR` of `file`) a form without it, and one that is damaged. Of fields with the same name, the last one counts.
 */
export function fileInBody(body: Buffer, contentType: string): SentFile | Refusal {
  if (!/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType))
    return { file: body, fileName: undefined, fields: {} };
  const parts = partsOf(body, contentType, MAX_PARTS);
  if (typeof parts === 'string') return invalid('file', parts);
  const file = parts.find(({ name, fileName }) => name === 'file' && fileName !== undefined);
  if (file === undefined) return invalid('file', 'is missing: the form must have a file in the field "file"');
  const texts = parts.filter(({ fileName }) => fileName === undefined);
  return {
    file: file.content,
    fileName: file.fileName,
    fields: Object.fromEntries(texts.map(({ name, content }) => [name, content.toString()])),
  };
}

interface FormPart {
  name: string;
  /** Undefined: the part is a field. */
  fileName: string | undefined;
  /** The media type as it was sent; '' if it was not. */
  type: string;
  /** A part of the body, without a copy, unless it is encoded. */
  content: Buffer;
}

/** The parts of a form (RFC 2046 §5.1.1), or why it is refused. */
export function partsOf(body: Buffer, contentType: string, maxParts: number): FormPart[] | string {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) return 'the form has no boundary in its Content-Type';
  const separator = Buffer.from(`\r\n--${boundary}`, 'latin1');
  const first = separator.subarray(2);
  const start = body.subarray(0, first.length).equals(first) ? 0 : body.indexOf(separator) + 2;
  if (start === 1) return DAMAGED;
  const parts: FormPart[] = [];
  for (let at = start + first.length; ; ) {
    // White space may follow a boundary.
    while (body[at] === 0x20 || body[at] === 0x09) at++;
    const next = body.toString('latin1', at, at + 2);
    if (next === '--') return parts;
    if (next !== '\r\n') return DAMAGED;
    if (parts.length === maxParts) return `the form has more than ${maxParts} fields`;
    const end = body.indexOf(separator, at);
    if (end === -1) return DAMAGED;
    const part = partOf(body.subarray(at, end));
    if (part === null) return DAMAGED;
    parts.push(part);
    at = end + separator.length;
  }
}

/** A part from the line end before its header on; null: it is no field of a form. */
function partOf(part: Buffer): FormPart | null {
  const end = part.subarray(0, MAX_PART_HEADER).indexOf('\r\n\r\n');
  if (end === -1) return null;
  const header = part.toString('utf8', 0, end);
  const [disposition] = /\r\ncontent-disposition:[ \t]*form-data[ \t]*;[^\r\n]*/i.exec(header) ?? [];
  const [, type = ''] = /\r\ncontent-type:[ \t]*([^\r\n]*)/i.exec(header) ?? [];
  const name = parameterOf(disposition ?? '', 'name');
  if (name === undefined) return null;
  const fileName = parameterOf(disposition ?? '', 'filename');
  const sent = part.subarray(end + 4);
  // Deprecated for forms (RFC 7578 §4.7).
  const isBase64 = /\r\ncontent-transfer-encoding:[ \t]*base64/i.test(header);
  const content = isBase64 ? Buffer.from(sent.toString('latin1'), 'base64') : sent;
  return { name, fileName, type: type.trim(), content };
}

/** A parameter in quotes, as browsers encode it (HTML, multipart/form-data encoding), or without them. */
function parameterOf(field: string, name: 'name' | 'filename'): string | undefined {
  const pattern = PARAMETERS[name];
  const [, quoted, plain] = pattern.exec(field) ?? [];
  return (quoted ?? plain)?.replace(/%0D|%0A|%22/gi, (code) => decodeURIComponent(code));
}

const PARAMETERS = {
  name: /;[ \t]*name=(?:"([^"]*)"|([^\s";]+))/i,
  filename: /;[ \t]*filename=(?:"([^"]*)"|([^\s";]+))/i,
} as const;
