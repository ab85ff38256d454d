import type * as z from 'zod';
import { editDistance } from '../../core/closest-word.ts';
import { shortened } from '../../core/refusal.ts';
import { alternativesOf, compileInput, isRecord, type JsonSchema } from '../json-schema.ts';

/**
 * Reports fields of a request that the schema does not define. They are ignored, so that clients written for other
 * versions of the API keep working; the warning makes a typo in an optional field visible. The check is compiled from
 * the schema at its first use.
 */
export type FieldCheck = (value: unknown) => string[];

/** Adds the unknown fields below `path` to `found`. */
type Walk = (value: unknown, path: string, found: Found) => void;

/** Unknown fields: the first `MAX_NAMED` by name, all by number. */
interface Found {
  count: number;
  named: UnknownField[];
}

interface UnknownField {
  path: string;
  /** A known field with a similar name; null: none. */
  suggestion: string | null;
}

const MAX_NAMED = 20;

/** Returns a check of values for `schema` that yields warnings as sentences. `kind`: `field`, `query parameter`. */
export function unknownFields(schema: z.ZodType, kind: string): FieldCheck {
  let walk: Walk | null | undefined;
  return (value) => {
    if (walk === undefined) walk = compileFields(schema);
    if (walk === null) return [];
    const found: Found = { count: 0, named: [] };
    walk(value, '', found);
    const warnings = found.named.map(({ path, suggestion }) => {
      const hint = suggestion === null ? '' : `; did you mean "${suggestion}"?`;
      return `unknown ${kind} "${path}" was ignored${hint}`;
    });
    const more = found.count - found.named.length;
    if (more > 0) warnings.push(`and ${more} more were ignored`);
    return warnings;
  };
}

function compileFields(schema: z.ZodType): Walk | null {
  return compileInput<Walk>(
    schema,
    compileNode,
    (get) => (value, path, found) => get()?.(value, path, found),
  );
}

function compileNode(node: JsonSchema, compile: (node: unknown) => Walk | null): Walk | null {
  const alternatives = alternativesOf(node);
  if (alternatives.length > 0) return unionWalk(alternatives.map(compile));
  const { items, properties, additionalProperties } = node;
  if (items !== undefined) return eachWalk(compile(items));
  if (properties === undefined) return valuesWalk(compile(additionalProperties));
  // Such an object accepts, or itself rejects, fields that it does not name.
  if (additionalProperties !== undefined || !isRecord(properties)) return null;
  return objectWalk(new Map(Object.entries(properties).map(([key, property]) => [key, compile(property)])));
}

function objectWalk(fields: ReadonlyMap<string, Walk | null>): Walk {
  return (value, path, found) => {
    if (!isRecord(value)) return;
    for (const key of Object.keys(value)) {
      const inner = fields.get(key);
      if (inner === undefined) add(found, path, key, fields.keys());
      else if (inner !== null) inner(value[key], fieldPath(path, key), found);
    }
  };
}

function add(found: Found, path: string, key: string, known: Iterable<string>): void {
  found.count++;
  if (found.named.length === MAX_NAMED) return;
  found.named.push({ path: fieldPath(path, key), suggestion: nearest(key, known) });
}

function eachWalk(element: Walk | null): Walk | null {
  if (element === null) return null;
  return (value, path, found) => {
    if (!Array.isArray(value)) return;
    for (const [index, item] of value.entries()) element(item, `${path}[${index}]`, found);
  };
}

function valuesWalk(inner: Walk | null): Walk | null {
  if (inner === null) return null;
  return (value, path, found) => {
    if (!isRecord(value)) return;
    for (const [key, item] of Object.entries(value)) inner(item, fieldPath(path, key), found);
  };
}

/** Reports for the alternative with the fewest unknown fields. */
function unionWalk(alternatives: (Walk | null)[]): Walk | null {
  const walks = alternatives.filter((walk) => walk !== null);
  if (walks.length === 0) return null;
  return (value, path, found) => {
    let best: Found | null = null;
    for (const walk of walks) {
      const current: Found = { count: 0, named: [] };
      walk(value, path, current);
      if (best === null || current.count < best.count) best = current;
    }
    if (best === null) return;
    found.count += best.count;
    found.named.push(...best.named.slice(0, MAX_NAMED - found.named.length));
  };
}

/** `attachments[2].content`; names other than plain words are quoted. */
export function fieldPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`;
  const name = shortened(key);
  if (!/^[A-Za-z0-9_$-]+…?$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
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
