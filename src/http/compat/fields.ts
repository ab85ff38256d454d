import * as z from 'zod';
import { invalid, Refusal, type RefusalCode, type RefusalDetail } from '../../core/refusal.ts';
import { formatMailbox, parseMailbox } from '../../mail/address.ts';

/* Parts of the schemas of other providers, and the names of their fields in errors. */

/** An optional field. SDKs of several languages send null for fields that are not set. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value): z.output<Schema> | undefined => value ?? undefined);
}

/** A field without an equivalent that would change recipients, time or content: it is refused. */
export function refusedField(why: string) {
  return optional(z.unknown().refine((value) => value === undefined || value === null, why));
}

/** A field without an equivalent that changes neither recipients nor time or content: it is ignored. */
export const ignored = z.unknown().optional();

/** Base64 as programs of other providers send it: some wrap its lines. */
export function unwrapped(base64: string): string {
  return /\s/.test(base64) ? base64.replace(/\s+/g, '') : base64;
}

/** An empty text is none. */
export function filled(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** The header fields of a list of pairs. Refuses a name that occurs twice, because one of its values would be lost. */
export function headersFrom(pairs: readonly (readonly [string, string])[]): Record<string, string> | Refusal {
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  return names.size < pairs.length
    ? invalid('headers', 'must not have a name twice')
    : Object.fromEntries(pairs);
}

/** The codes whose message names a field. */
const NAMES_FIELDS: ReadonlySet<RefusalCode> = new Set(['VALIDATION_ERROR', 'ATTACHMENT_NOT_FETCHED']);

/**
 * The refusal with the names that the fields of a send have for the provider. `names`: theirs by ours; those of the fields of a
 * list by `attachments[].url`.
 */
export function renamed(refusal: Refusal, names: ReadonlyMap<string, string>): Refusal {
  const { code, extras } = refusal;
  const { details } = extras;
  if (!NAMES_FIELDS.has(code) || details === undefined) return refusal;
  const theirs = details.map((detail) => ({ ...detail, field: nameIn(detail.field, names) }));
  return new Refusal(code, sentenceOf(theirs), { ...extras, details: theirs });
}

function nameIn(field: string, names: ReadonlyMap<string, string>): string {
  const [first = ''] = /^[A-Za-z]+/.exec(field) ?? [];
  const rest = field.slice(first.length);
  const inner = names.get(field.replaceAll(/\[\d+\]/g, '[]'));
  const theirs =
    inner === undefined || rest === '' ? rest : `${rest.slice(0, rest.lastIndexOf('.') + 1)}${inner}`;
  return `${names.get(first) ?? first}${theirs}`;
}

function sentenceOf([first, ...others]: readonly RefusalDetail[]): string {
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return `${first?.field ?? 'body'}: ${first?.message ?? 'is invalid'}${more}`;
}

/** An address with its name as one mailbox of a header field, whatever the texts contain. `field`: names it in errors. */
export function mailboxOf(field: string, email: string, name: string | undefined): string | Refusal {
  const mailbox = parseMailbox(email);
  if (typeof mailbox === 'string') return invalid(field, mailbox);
  return formatMailbox({ name: name ?? mailbox.name, address: mailbox.address });
}

/** Characters that the substitutions of one request may read and write. */
const MAX_SUBSTITUTED = 32 * 1024 * 1024;

/**
 * Returns the function that replaces words by their values, for all mails of a request. It returns null when the request has
 * too many mails, words or characters: a request must not occupy the event loop.
 */
export function createSubstitution() {
  let done = 0;
  return (text: string, words: readonly (readonly [word: string, value: string])[]): string | null => {
    let result = text;
    for (const [word, value] of words) {
      if (word === '') continue;
      done += result.length;
      if (done > MAX_SUBSTITUTED) return null;
      const pieces = result.split(word);
      done += (pieces.length - 1) * value.length;
      if (done > MAX_SUBSTITUTED) return null;
      result = pieces.join(value);
    }
    return result;
  };
}

/** Media types of usual files: SDKs leave it to the provider to derive them from the name. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ['csv', 'text/csv'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['gif', 'image/gif'],
  ['html', 'text/html'],
  ['ics', 'text/calendar'],
  ['jpeg', 'image/jpeg'],
  ['jpg', 'image/jpeg'],
  ['json', 'application/json'],
  ['pdf', 'application/pdf'],
  ['png', 'image/png'],
  ['svg', 'image/svg+xml'],
  ['txt', 'text/plain'],
  ['webp', 'image/webp'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['xml', 'application/xml'],
  ['zip', 'application/zip'],
]);

/** The media type of a file: as given, else by the end of its name. */
export function mediaTypeOf(name: string, given: string | undefined): string {
  if (given !== undefined && given !== '') return given;
  const end = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  return MEDIA_TYPES.get(end) ?? 'application/octet-stream';
}
