import * as z from 'zod';
import { invalid, isRefusalCode, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import { alternativesOf, compileInput, isRecord, type JsonSchema } from '../json-schema.ts';
import { fieldPath } from './known-fields.ts';

/**
 * Limits the entries of lists and maps before any entry is validated. Zod validates every entry first and the length
 * last: a long list of invalid entries would yield an error for each. The check is compiled from the schema once.
 */
export type CountCheck = (value: unknown, whole: string) => Refusal | null;

/** Entries of a list or map whose schema sets no limit. */
const DEFAULT_MAX_ENTRIES = 10_000;

/** Keyword of a list or map that is refused with another code than VALIDATION_ERROR. */
const CODE_KEYWORD = 'x-error-code';

/**
 * Limits the entries of a list or map. `code`: of the refusal, in place of VALIDATION_ERROR. The limit becomes
 * `maxItems` or `maxProperties` of the JSON Schema.
 */
export function atMost<Schema extends z.ZodArray | z.ZodRecord>(
  schema: Schema,
  max: number,
  code?: RefusalCode,
): Schema {
  const limit = schema.type === 'array' ? { maxItems: max } : { maxProperties: max };
  z.globalRegistry.add(schema, code === undefined ? limit : { ...limit, [CODE_KEYWORD]: code });
  return schema;
}

type Walk = (value: unknown, path: string, whole: string) => Refusal | null;

const compiled = new WeakMap<z.ZodType, CountCheck>();

/** The check of a schema. It accepts values of another type, which the schema itself refuses. */
export function countCheck(schema: z.ZodType): CountCheck {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const walk = compileInput<Walk>(
    schema,
    compileNode,
    (get) => (value, path, whole) => get()?.(value, path, whole) ?? null,
  );
  const check: CountCheck = (value, whole) => walk?.(value, '', whole) ?? null;
  compiled.set(schema, check);
  return check;
}

function compileNode(node: JsonSchema, compile: (node: unknown) => Walk | null): Walk | null {
  const alternatives = alternativesOf(node);
  if (alternatives.length > 0) return unionWalk(alternatives.map(compile));
  const { type, properties, additionalProperties, items } = node;
  if (type === 'array') return listWalk(limitOf(node, 'maxItems'), compile(items));
  if (isRecord(properties)) return objectWalk(properties, compile);
  return isRecord(additionalProperties)
    ? mapWalk(limitOf(node, 'maxProperties'), compile(additionalProperties))
    : null;
}

interface EntryLimit {
  max: number;
  code: RefusalCode | null;
}

function limitOf(node: JsonSchema, keyword: 'maxItems' | 'maxProperties'): EntryLimit {
  const max = node[keyword];
  const code = node[CODE_KEYWORD];
  return {
    max: typeof max === 'number' ? max : DEFAULT_MAX_ENTRIES,
    code: typeof code === 'string' && isRefusalCode(code) ? code : null,
  };
}

function objectWalk(
  properties: Record<string, unknown>,
  compile: (node: unknown) => Walk | null,
): Walk | null {
  const fields = Object.entries(properties).flatMap(([key, property]) => {
    const walk = compile(property);
    return walk === null ? [] : [{ key, walk }];
  });
  if (fields.length === 0) return null;
  return (value, path, whole) => {
    if (!isRecord(value)) return null;
    for (const { key, walk } of fields) {
      if (!Object.hasOwn(value, key)) continue;
      const refusal = walk(value[key], fieldPath(path, key), whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

function listWalk(limit: EntryLimit, element: Walk | null): Walk {
  return (value, path, whole) => {
    if (!Array.isArray(value)) return null;
    if (value.length > limit.max) return tooMany(path || whole, value.length, limit);
    if (element === null) return null;
    for (const [index, item] of value.entries()) {
      const refusal = element(item, `${path}[${index}]`, whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

function mapWalk(limit: EntryLimit, inner: Walk | null): Walk {
  return (value, path, whole) => {
    if (!isRecord(value)) return null;
    const names = Object.keys(value);
    if (names.length > limit.max) return tooMany(path || whole, names.length, limit);
    if (inner === null) return null;
    for (const name of names) {
      const refusal = inner(value[name], fieldPath(path, name), whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

/** A list is counted by the alternative that is a list; the others accept it. */
function unionWalk(alternatives: (Walk | null)[]): Walk | null {
  const walks = alternatives.filter((walk) => walk !== null);
  if (walks.length === 0) return null;
  return (value, path, whole) => {
    for (const walk of walks) {
      const refusal = walk(value, path, whole);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

function tooMany(field: string, count: number, { max, code }: EntryLimit): Refusal {
  if (code === null) return invalid(field, `must have at most ${max} entries`);
  const message = `must have at most ${max} entries; the request has ${count}`;
  return refuse(code, `${field}: ${message}`, { details: [{ field, message }] });
}
