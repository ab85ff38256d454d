import { z } from 'zod';
import { invalid, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import { fieldPath } from '../known-fields.ts';
import { wrappedSchema } from '../openapi/wrapped-schema.ts';

/**
 * Limits on the entries of lists and maps, checked before any entry is looked at. Zod checks every entry first
 * and the length last: a list of too many faulty entries would become an error for each. The check is compiled
 * from the schema once.
 */
export type CountCheck = (value: unknown, whole: string) => Refusal | null;

/** Limits that a schema cannot express itself (maps), or that are refused with a code of their own. */
const limits = z.registry<{ max: number; code?: RefusalCode }>();

/** Entries of a list or map whose schema sets no limit. */
const DEFAULT_MAX = 10_000;

/** Limits the entries of a list or map; the last call on a schema, as each other makes a copy. `code`: of the refusal, in place of VALIDATION_ERROR. */
export function atMost<Schema extends z.ZodArray | z.ZodRecord>(
  schema: Schema,
  max: number,
  code?: RefusalCode,
): Schema {
  limits.add(schema, code === undefined ? { max } : { max, code });
  return schema;
}

type Walk = (value: unknown, path: string, whole: string) => Refusal | null;

const compiled = new WeakMap<z.ZodType, CountCheck>();

/** The check of a schema; it passes values of another form, which the schema itself refuses. */
export function countCheck(schema: z.ZodType): CountCheck {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const walk = compile(schema, new Map());
  const check: CountCheck = (value, whole) => walk?.(value, '', whole) ?? null;
  compiled.set(schema, check);
  return check;
}

/** Schemas that are being compiled or are done: a schema may contain itself. */
type Seen = Map<unknown, { walk: Walk | null }>;

function compile(schema: unknown, seen: Seen): Walk | null {
  const before = seen.get(schema);
  if (before !== undefined) return (value, path, whole) => before.walk?.(value, path, whole) ?? null;
  const box: { walk: Walk | null } = { walk: null };
  seen.set(schema, box);
  box.walk = walkOf(schema, seen);
  return box.walk;
}

function walkOf(schema: unknown, seen: Seen): Walk | null {
  if (schema instanceof z.ZodObject) return objectWalk(schema, seen);
  if (schema instanceof z.ZodArray) return listWalk(schema, compile(schema.def.element, seen));
  if (schema instanceof z.ZodRecord) return mapWalk(schema, compile(schema.def.valueType, seen));
  if (schema instanceof z.ZodUnion) return unionWalk(schema.def.options.map((one) => compile(one, seen)));
  const inner = wrappedSchema(schema);
  return inner === undefined ? null : compile(inner, seen);
}

function objectWalk(schema: z.ZodObject, seen: Seen): Walk | null {
  const fields = Object.entries(schema.shape).flatMap(([key, inner]) => {
    const walk = compile(inner, seen);
    return walk === null ? [] : [{ key, walk }];
  });
  if (fields.length === 0) return null;
  return (value, path, whole) => {
    if (!isObject(value)) return null;
    for (const { key, walk } of fields) {
      if (!Object.hasOwn(value, key)) continue;
      const refusal = walk(value[key], fieldPath(path, key), whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

function listWalk(schema: z.ZodArray, element: Walk | null): Walk {
  const own = limits.get(schema);
  const max = own?.max ?? lengthLimit(schema) ?? DEFAULT_MAX;
  return (value, path, whole) => {
    if (!Array.isArray(value)) return null;
    if (value.length > max) {
      return tooMany(path || whole, value.length, max, own?.code);
    }
    if (element === null) return null;
    for (const [at, item] of value.entries()) {
      const refusal = element(item, `${path}[${at}]`, whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

/** What `.max()` of the schema says. */
function lengthLimit(schema: z.ZodArray): number | null {
  for (const check of schema.def.checks ?? []) {
    if (check instanceof z.core.$ZodCheckMaxLength) return check._zod.def.maximum;
  }
  return null;
}

function mapWalk(schema: z.ZodRecord, inner: Walk | null): Walk {
  const own = limits.get(schema);
  const max = own?.max ?? DEFAULT_MAX;
  return (value, path, whole) => {
    if (!isObject(value)) return null;
    const names = Object.keys(value);
    if (names.length > max) return tooMany(path || whole, names.length, max, own?.code);
    if (inner === null) return null;
    for (const name of names) {
      const refusal = inner(value[name], fieldPath(path, name), whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

function unionWalk(options: (Walk | null)[]): Walk | null {
  const walks = options.filter((walk) => walk !== null);
  if (walks.length === 0) return null;
  // A list is too long for its own form only; the other forms pass it.
  return (value, path, whole) => {
    for (const walk of walks) {
      const refusal = walk(value, path, whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

function tooMany(field: string, count: number, max: number, code: RefusalCode | undefined): Refusal {
  if (code === undefined) return invalid(field, `must have at most ${max} entries`);
  const message = `at most ${max} ${field}, here are ${count}`;
  return refuse(code, message, { details: [{ field, message }] });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
