import { invalid, type Refusal, refuse } from '../../core/refusal.ts';

/** A field of a form: its text, or a file. */
export type FormValue = string | { name: string; type: string; content: Buffer };

/** Fields of a form, repeated ones included. Each of them costs time and memory. */
const MAX_FIELDS = 2000;

/**
 * Parses the body of a form, `application/x-www-form-urlencoded` or `multipart/form-data` (RFC 7578). The fields are in their
 * order, by name. The length of the body is limited already.
 */
export async function parseForm(
  body: Buffer,
  contentType: string,
): Promise<Map<string, FormValue[]> | Refusal> {
  const [type = ''] = contentType.toLowerCase().split(';');
  if (type.trim() === 'application/x-www-form-urlencoded') return fieldsOf(body.toString('utf8'));
  if (type.trim() !== 'multipart/form-data')
    return refuse('UNSUPPORTED_MEDIA_TYPE', 'The body must be sent as a form');
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType);
  const mark = `--${boundary?.[1] ?? boundary?.[2] ?? ''}`;
  if (mark === '--' || occurrences(body, mark) > MAX_FIELDS + 1) return tooMany();
  let form: FormData;
  try {
    form = await new Response(new Uint8Array(body), { headers: { 'Content-Type': contentType } }).formData();
  } catch {
    return invalid('body', 'is not valid multipart/form-data');
  }
  const fields = new Map<string, FormValue[]>();
  for (const [name, value] of form) {
    const content =
      typeof value === 'string'
        ? value
        : { name: value.name, type: value.type, content: Buffer.from(await value.arrayBuffer()) };
    add(fields, name, content);
  }
  return fields;
}

function fieldsOf(text: string): Map<string, FormValue[]> | Refusal {
  if (occurrences(Buffer.from(text), '&') >= MAX_FIELDS) return tooMany();
  const fields = new Map<string, FormValue[]>();
  for (const [name, value] of new URLSearchParams(text)) add(fields, name, value);
  return fields;
}

function add(fields: Map<string, FormValue[]>, name: string, value: FormValue): void {
  const values = fields.get(name);
  if (values === undefined) fields.set(name, [value]);
  else values.push(value);
}

/** Counts up to a little more than MAX_FIELDS. */
function occurrences(bytes: Buffer, text: string): number {
  let count = 0;
  for (let at = bytes.indexOf(text); at >= 0 && count <= MAX_FIELDS + 1; count++)
    at = bytes.indexOf(text, at + text.length);
  return count;
}

function tooMany(): Refusal {
  return invalid('body', `must be a form of at most ${MAX_FIELDS} fields`);
}
