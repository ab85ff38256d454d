import type * as z from 'zod';
import { editDistance } from '../../core/closest-word.ts';
import { invalid, isRefusalCode, type Refusal, refuse, shortened } from '../../core/refusal.ts';
import { alternativesOf, isRecord, type JsonSchema, jsonSchemaOf } from '../json-schema.ts';

/*
 * One walk over the data of a request before it is validated. It limits the entries of lists and maps: zod validates every
 * entry first and the length last, so that a long list of invalid entries would yield an error for each. And it finds the
 * fields that the schema does not define. They are ignored, so that clients written for other versions of the API keep
 * working; a warning makes a typo in an optional field visible.
 */

/** Unknown fields: the first `MAX_LISTED` of the value itself and as many inside of it, with their values; all by number. */
export interface UnknownFields {
  count: number;
  listed: UnknownField[];
}

export interface UnknownField {
  /** The path of the object that has it. */
  object: string;
  name: string;
  value: unknown;
  /** The fields that the object can have. */
  known: KnownFields;
}

type KnownFields = ReadonlyMap<string, { walk: Walk | null; isFlag: boolean }>;

const MAX_LISTED = 100;
/** Entries of a list or map whose schema sets no limit. */
const DEFAULT_MAX_ENTRIES = 10_000;
/** Keyword of a list or map that is refused with another code than VALIDATION_ERROR. */
export const CODE_KEYWORD = 'x-error-code';

/** `whole` names the value as a whole in messages (`body`). */
interface Walked extends UnknownFields {
  whole: string;
  /** Numbers of unknown fields: of the value itself, and inside of it. */
  own: number;
  inside: number;
}

/** Adds the unknown fields of a value to `walked`, or refuses it. Values of another type are left to the schema. */
type Walk = (value: unknown, path: string, walked: Walked) => Refusal | null;

const compiled = new WeakMap<z.ZodType, { walk: Walk | null }>();

/** The unknown fields of a value; a refusal when a list or map in it is too long. The walk is compiled at its first use. */
export function unknownFields(schema: z.ZodType, value: unknown, whole: string): UnknownFields | Refusal {
  let known = compiled.get(schema);
  if (known === undefined) {
    known = { walk: compileSchema(schema) };
    compiled.set(schema, known);
  }
  const walked: Walked = { whole, count: 0, listed: [], own: 0, inside: 0 };
  return known.walk?.(value, '', walked) ?? walked;
}

function compileSchema(schema: z.ZodType): Walk | null {
  const { root, definitions } = jsonSchemaOf(schema, 'input');
  const named = new Map<string, { walk: Walk | null }>();
  const compile = (node: unknown): Walk | null => {
    if (!isRecord(node)) return null;
    const { $ref } = node;
    if (typeof $ref !== 'string') return compileNode(node, compile);
    const name = $ref.slice($ref.lastIndexOf('/') + 1);
    const known = named.get(name);
    // A schema that contains itself is not compiled yet.
    if (known !== undefined) return (value, path, walked) => known.walk?.(value, path, walked) ?? null;
    const entry: { walk: Walk | null } = { walk: null };
    named.set(name, entry);
    entry.walk = compile($ref === '#' ? root : definitions[name]);
    return entry.walk;
  };
  return compile(root);
}

function compileNode(node: JsonSchema, compile: (node: unknown) => Walk | null): Walk | null {
  const alternatives = alternativesOf(node);
  if (alternatives.length > 0) return unionWalk(alternatives.map(compile).filter((walk) => walk !== null));
  const { type, properties, additionalProperties, items } = node;
  if (type === 'array') return entriesWalk(node, 'maxItems', Array.isArray, compile(items));
  if (!isRecord(properties))
    return isRecord(additionalProperties)
      ? entriesWalk(node, 'maxProperties', isRecord, compile(additionalProperties))
      : null;
  // With `additionalProperties` the object accepts, or itself rejects, fields that it does not name.
  return objectWalk(
    new Map(
      Object.entries(properties).map(([name, property]) => [
        name,
        { walk: compile(property), isFlag: isRecord(property) && property['type'] === 'boolean' },
      ]),
    ),
    additionalProperties === undefined,
  );
}

function objectWalk(known: KnownFields, findsUnknown: boolean): Walk {
  return (value, path, walked) => {
    if (!isRecord(value)) return null;
    for (const name of Object.keys(value)) {
      const field = known.get(name);
      if (field !== undefined) {
        const refusal = field.walk?.(value[name], fieldPath(path, name), walked) ?? null;
        if (refusal !== null) return refusal;
      } else if (findsUnknown) list(walked, { object: path, name, value: value[name], known });
    }
    return null;
  };
}

function entriesWalk(
  node: JsonSchema,
  keyword: 'maxItems' | 'maxProperties',
  isOfType: (value: unknown) => boolean,
  entry: Walk | null,
): Walk {
  const { [keyword]: limit, [CODE_KEYWORD]: code } = node;
  const max = typeof limit === 'number' ? limit : DEFAULT_MAX_ENTRIES;
  return (value, path, walked) => {
    if (typeof value !== 'object' || value === null || !isOfType(value)) return null;
    const count = Array.isArray(value) ? value.length : Object.keys(value).length;
    if (count > max) return tooMany(path || walked.whole, count, max, code);
    if (entry === null) return null;
    for (const [key, item] of Object.entries(value)) {
      const inner = Array.isArray(value) ? `${path}[${key}]` : fieldPath(path, key);
      const refusal = entry(item, inner, walked);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

/** A list is counted by the alternative that is a list. The alternative with the fewest unknown fields reports them. */
function unionWalk(walks: readonly Walk[]): Walk | null {
  const [only = null, ...others] = walks;
  if (others.length === 0) return only;
  return (value, path, walked) => {
    let best: Walked | null = null;
    for (const walk of walks) {
      const current: Walked = { whole: walked.whole, count: 0, listed: [], own: 0, inside: 0 };
      const refusal = walk(value, path, current);
      if (refusal !== null) return refusal;
      if (best === null || current.count < best.count) best = current;
    }
    if (best === null) return null;
    for (const field of best.listed) list(walked, field);
    walked.count += best.count - best.listed.length;
    return null;
  };
}

/** Counts an unknown field. Those of the value itself are listed also behind many that are inside of it. */
function list(walked: Walked, field: UnknownField): void {
  walked.count++;
  const isOwn = field.object === '';
  const listed = isOwn ? walked.own++ : walked.inside++;
  if (listed < MAX_LISTED) walked.listed.push(field);
}

function tooMany(field: string, count: number, max: number, code: unknown): Refusal {
  if (typeof code !== 'string' || !isRefusalCode(code))
    return invalid(field, `must have at most ${max} entries`);
  const message = `must have at most ${max} entries; the request has ${count}`;
  return refuse(code, `${field}: ${message}`, { details: [{ field, message }] });
}

/** `attachments[2].content`; names other than plain words are quoted. */
export function fieldPath(path: string, key: string): string {
  const name = shortened(key);
  if (!/^[A-Za-z0-9_$-]+…?$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

const MAX_NAMED = 20;

/** Warnings as sentences: the first 20 fields, and the number of others. `kind`: `field`, `query parameter`. */
export function unknownWarnings({ count, listed }: UnknownFields, kind: string): string[] {
  const named = listed.slice(0, MAX_NAMED);
  const warnings = named.map(({ object, name, known }) => {
    const meant = nearest(name, known.keys());
    const hint = meant === null ? '' : `; did you mean "${meant}"?`;
    return `unknown ${kind} "${fieldPath(object, name)}" was ignored${hint}`;
  });
  const more = count - named.length;
  return more > 0 ? [...warnings, `and ${more} more were ignored`] : warnings;
}

function nearest(name: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let limit = name.length <= 4 ? 1 : 2;
  for (const candidate of known) {
    if (Math.abs(name.length - candidate.length) > limit) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), { transpositions: false });
    if (distance <= limit) {
      best = candidate;
      limit = distance - 1;
    }
  }
  return best;
}
