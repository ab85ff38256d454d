import * as z from 'zod';
import { editDistance } from '../../core/closest-word.ts';
import { type Refusal, type RefusalDetail, refuse, shortened } from '../../core/refusal.ts';
import { isRecord } from '../json-schema.ts';
import { fieldPath } from './known-fields.ts';

/**
 * Fields that decide about recipients, time or content, with names that other services use for them. An unknown field
 * with such a name, or with a similar one, is refused instead of ignored. A dot leads to the fields of list entries:
 * `attachments.contentId`. Names are compared without case and without `-`, `_`, `:` and spaces.
 */
export type SignificantFields = Readonly<Record<string, readonly string[]>>;

export type MisnamedCheck = (sent: unknown) => Refusal | null;

/** Longer names resemble no field. */
const MAX_NAME = 40;
/** Unknown names of one object that are examined: no client sends as many by mistake. */
const MAX_EXAMINED = 100;
const MAX_DETAILS = 20;
/** Shorter fields are found by their other names only: most short words resemble them. */
const MIN_SIMILAR = 4;

interface Field {
  name: string;
  folded: string;
  /** A boolean can be meant for this field. */
  isFlag: boolean;
}

interface Names {
  known: ReadonlySet<string>;
  fields: Field[];
  byOtherName: ReadonlyMap<string, Field>;
}

/** Returns a check of request bodies before they are validated. Throws when a field is not one of the schema. */
export function misnamedFields(schema: z.ZodType, significant: SignificantFields): MisnamedCheck {
  if (!(schema instanceof z.ZodObject)) throw new Error('only objects have significant fields');
  const { shape } = schema;
  const whole = namesOf(shape, significant);
  const inside = new Map<string, Names>();
  for (const list of new Set(Object.keys(significant).flatMap((name) => name.split('.').slice(0, -1)))) {
    const fields = Object.entries(significant).flatMap(([name, others]) =>
      name.startsWith(`${list}.`) ? [[name.slice(list.length + 1), others] as const] : [],
    );
    inside.set(list, namesOf(shapeOfEntries(shape, list), Object.fromEntries(fields)));
  }
  return (sent) => {
    if (!isRecord(sent)) return null;
    const details: RefusalDetail[] = [];
    find(sent, '', whole, details);
    for (const [list, names] of inside) {
      const entries = Object.hasOwn(sent, list) ? sent[list] : undefined;
      if (!Array.isArray(entries)) continue;
      for (const [index, entry] of entries.slice(0, MAX_EXAMINED).entries())
        if (isRecord(entry)) find(entry, `${list}[${index}]`, names, details);
    }
    const [first] = details;
    if (first === undefined) return null;
    const more = details.length > 1 ? ` (and ${details.length - 1} more)` : '';
    return refuse('VALIDATION_ERROR', `${first.field}: ${first.message}${more}`, { details });
  };
}

function find(sent: Record<string, unknown>, path: string, names: Names, details: RefusalDetail[]): void {
  let examined = 0;
  for (const name of Object.keys(sent)) {
    if (names.known.has(name)) continue;
    if (examined++ === MAX_EXAMINED || details.length === MAX_DETAILS) return;
    if (name.length > MAX_NAME || isNothing(sent[name])) continue;
    const folded = fold(name);
    const field = names.byOtherName.get(folded) ?? similar(folded, names);
    if (field === null || (typeof sent[name] === 'boolean' && !field.isFlag)) continue;
    const message = `is not a field; did you mean "${fieldPath(path, field.name)}"? The field would be ignored`;
    details.push({ field: fieldPath(path, shortened(name)), message });
  }
}

/** Such a value asks for nothing: clients send it for options that are not set. */
function isNothing(value: unknown): boolean {
  if (value === null || value === '' || value === false) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function similar(folded: string, { fields }: Names): Field | null {
  for (const field of fields) {
    const { length } = field.folded;
    if (length < MIN_SIMILAR || folded.length < MIN_SIMILAR) continue;
    const limit = length <= MIN_SIMILAR ? 1 : 2;
    if (Math.abs(folded.length - field.folded.length) > limit) continue;
    if (editDistance(folded, field.folded, { transpositions: false }) <= limit) return field;
  }
  return null;
}

function namesOf(shape: z.core.$ZodShape, significant: SignificantFields): Names {
  const fields: Field[] = [];
  const byOtherName = new Map<string, Field>();
  for (const [name, others] of Object.entries(significant)) {
    if (name.includes('.')) continue;
    if (!Object.hasOwn(shape, name)) throw new Error(`${name} is not a field of the schema`);
    const field = { name, folded: fold(name), isFlag: required(shape[name]) instanceof z.ZodBoolean };
    fields.push(field);
    for (const other of [name, ...others]) byOtherName.set(fold(other), field);
  }
  return { known: new Set(Object.keys(shape)), fields, byOtherName };
}

/** The fields of the entries of a list. */
function shapeOfEntries(shape: z.core.$ZodShape, list: string): z.core.$ZodShape {
  const field = required(shape[list]);
  const element = field instanceof z.ZodArray ? field.element : undefined;
  if (!(element instanceof z.ZodObject)) throw new Error(`${list} is not a list of objects`);
  return element.shape;
}

function required(field: z.core.$ZodType | undefined): z.core.$ZodType | undefined {
  return field instanceof z.ZodOptional ? field.unwrap() : field;
}

function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[-_: ]/g, '');
}
