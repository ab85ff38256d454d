import { invalid, type Refusal } from '../../core/refusal.ts';

/** A file that was sent, with the other fields of its form. */
export interface SentFile {
  file: Buffer;
  /** Undefined: the body is the file. */
  fileName: string | undefined;
  fields: Readonly<Record<string, string>>;
}

/** Parts of a form: the file and its fields. */
const MAX_PARTS = 10;

/**
 * The file in a body: the body itself, or the field `file` of a form (`multipart/form-data`, RFC 7578). Refuses
 * (`VALIDATION_ERROR` of `file`) a form without it. A form is parsed by Node, after its parts were counted.
 */
export async function fileInBody(body: Buffer, contentType: string): Promise<SentFile | Refusal> {
  if (!/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType))
    return { file: body, fileName: undefined, fields: {} };
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) return invalid('file', 'the form has no boundary in its Content-Type');
  if (!hasFewParts(body, `--${boundary}`))
    return invalid('file', `the form has more than ${MAX_PARTS} fields`);
  const form = await new Response(body, { headers: { 'Content-Type': contentType } })
    .formData()
    // The parser rejects every form that is not well-formed.
    .catch(() => null);
  if (form === null)
    return invalid('file', 'the form is damaged or incomplete (multipart/form-data, RFC 7578)');
  const file = form.get('file');
  if (file === null || typeof file === 'string')
    return invalid('file', 'is missing: the form must have a file in the field "file"');
  const texts = [...form].filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return {
    file: Buffer.from(await file.arrayBuffer()),
    fileName: file.name,
    fields: Object.fromEntries(texts),
  };
}

function hasFewParts(body: Buffer, mark: string): boolean {
  let at = -1;
  for (let parts = 0; parts <= MAX_PARTS + 1; parts++) {
    at = body.indexOf(mark, at + 1, 'latin1');
    if (at === -1) return true;
  }
  return false;
}
