import * as z from 'zod';
import { readProgramFile } from '../../config/program-file.ts';
import { editDistance } from '../../core/closest-word.ts';
import { type Refusal, type RefusalDetail, refuse, shortened } from '../../core/refusal.ts';
import { fieldPath, type UnknownField, type UnknownFields } from './unknown-fields.ts';

/*
 * Unknown fields that were meant for one that decides about recipients, time or content: they are refused instead of
 * ignored. The file field-names.toml has these fields, with names that other services use for them.
 */

/** Longer names resemble no field. */
const MAX_NAME = 40;
const MAX_DETAILS = 20;
/** Shorter fields are found by their other names only: most short words resemble them. */
const MIN_SIMILAR = 4;

interface Meant {
  name: string;
  folded: string;
  /** The other names, without what the comparison ignores. */
  others: ReadonlySet<string>;
}

/** The significant fields of an object, by its path without the positions in lists. */
const significant = new Map<string, Meant[]>();
for (const [path, names] of Object.entries(
  z.record(z.string(), z.array(z.string())).parse(readProgramFile('field-names.toml')),
)) {
  const object = path.slice(0, Math.max(0, path.lastIndexOf('.')));
  const name = path.slice(path.lastIndexOf('.') + 1);
  const field = { name, folded: fold(name), others: new Set(names.map(fold)) };
  significant.set(object, [...(significant.get(object) ?? []), field]);
}

/** Refuses a request with such fields; null: it has none. */
export function misnamedFields({ listed }: UnknownFields): Refusal | null {
  const details: RefusalDetail[] = [];
  // The fields of the whole before those inside it.
  for (const field of listed.toSorted((a, b) => a.object.length - b.object.length)) {
    const meant = meantBy(field);
    if (meant === null) continue;
    const { object, name } = field;
    const message = `is not a field; did you mean "${fieldPath(object, meant)}"? The field would be ignored`;
    details.push({ field: fieldPath(object, shortened(name)), message });
    if (details.length === MAX_DETAILS) break;
  }
  const [first] = details;
  if (first === undefined) return null;
  const more = details.length > 1 ? ` (and ${details.length - 1} more)` : '';
  return refuse('VALIDATION_ERROR', `${first.field}: ${first.message}${more}`, { details });
}

function meantBy({ object, name, value, known }: UnknownField): string | null {
  if (name.length > MAX_NAME || isNothing(value)) return null;
  const folded = fold(name);
  const fields = (significant.get(object.replaceAll(/\[\d+\]/g, '')) ?? []).filter((field) =>
    known.has(field.name),
  );
  const meant =
    fields.find((field) => field.folded === folded || field.others.has(folded)) ??
    fields.find((field) => isSimilar(folded, field.folded));
  if (meant === undefined) return null;
  // A boolean asks for an option.
  return typeof value === 'boolean' && known.get(meant.name)?.isFlag !== true ? null : meant.name;
}

/** Such a value asks for nothing: clients send it for options that are not set. */
function isNothing(value: unknown): boolean {
  if (value === null || value === '' || value === false) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function isSimilar(name: string, field: string): boolean {
  if (field.length < MIN_SIMILAR || name.length < MIN_SIMILAR) return false;
  const limit = field.length <= MIN_SIMILAR ? 1 : 2;
  if (Math.abs(name.length - field.length) > limit) return false;
  return editDistance(name, field, { transpositions: false }) <= limit;
}

function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[-_: ]/g, '');
}
