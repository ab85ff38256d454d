import * as z from 'zod';
import { Refusal, type RefusalDetail } from '../../core/refusal.ts';

/* Parts of the schemas of other providers, and the names of their fields in errors. */

/** An optional field. SDKs of several languages send null for fields that are not set. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value): z.output<Schema> | undefined => value ?? undefined);
}

/** A field without an equivalent that changes neither recipients nor time or content: it is ignored. */
export const ignored = z.unknown().optional();

/** Base64 as programs of other providers send it: some wrap its lines. */
export function unwrapped(base64: string): string {
  return /\s/.test(base64) ? base64.replace(/\s+/g, '') : base64;
}

/** The header fields of a list of pairs; null: a name occurs twice, so that one of its values would be lost. */
export function headersFrom(pairs: readonly (readonly [string, string])[]): Record<string, string> | null {
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  return names.size < pairs.length ? null : Object.fromEntries(pairs);
}

/** The refusal with the names that the fields of a send have for the provider. `names`: theirs by ours. */
export function renamed(refusal: Refusal, names: ReadonlyMap<string, string>): Refusal {
  const { code, extras } = refusal;
  const { details } = extras;
  if (code !== 'VALIDATION_ERROR' || details === undefined) return refusal;
  const theirs = details.map((detail) => ({ ...detail, field: nameIn(detail.field, names) }));
  return new Refusal(code, sentenceOf(theirs), { ...extras, details: theirs });
}

function nameIn(field: string, names: ReadonlyMap<string, string>): string {
  const [first = ''] = /^[A-Za-z]+/.exec(field) ?? [];
  const name = names.get(first);
  return name === undefined ? field : `${name}${field.slice(first.length)}`;
}

function sentenceOf([first, ...others]: readonly RefusalDetail[]): string {
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return `${first?.field ?? 'body'}: ${first?.message ?? 'is invalid'}${more}`;
}
