import { invalid, type Refusal, refuse } from '../../core/refusal.ts';
import { partsOf } from '../body/file-body.ts';

/** A field of a form: its text, or a file. */
export type FormValue = string | { name: string; type: string; content: Buffer };

/** Fields of a form, repeated ones included. Each of them costs time and memory. */
const MAX_FIELDS = 2000;

/**
 * Parses the body of a form, `application/x-www-form-urlencoded` or `multipart/form-data` (RFC 7578). The fields are in their
 * order, by name. The length of the body is limited already.
 */
export function parseForm(body: Buffer, contentType: string): Map<string, FormValue[]> | Refusal {
  const [type = ''] = contentType.toLowerCase().split(';');
  if (type.trim() === 'application/x-www-form-urlencoded') return fieldsOf(body.toString('utf8'));
  if (type.trim() !== 'multipart/form-data')
    return refuse('UNSUPPORTED_MEDIA_TYPE', 'The body must be sent as a form');
  const parts = partsOf(body, contentType, MAX_FIELDS);
  if (typeof parts === 'string') return invalid('body', parts);
  const fields = new Map<string, FormValue[]>();
  for (const { name, fileName, type: mediaType, content } of parts)
    add(
      fields,
      name,
      fileName === undefined ? content.toString() : { name: fileName, type: mediaType, content },
    );
  return fields;
}

function fieldsOf(text: string): Map<string, FormValue[]> | Refusal {
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS)
    return invalid('body', `must be a form of at most ${MAX_FIELDS} fields`);
  const fields = new Map<string, FormValue[]>();
  for (const [name, value] of new URLSearchParams(text)) add(fields, name, value);
  return fields;
}

function add(fields: Map<string, FormValue[]>, name: string, value: FormValue): void {
  const values = fields.get(name);
  if (values === undefined) fields.set(name, [value]);
  else values.push(value);
}
