import { z } from 'zod';
import { shortened } from '../core/refusal.ts';
import { wrappedSchema } from './openapi/wrapped-schema.ts';

/**
 * Names the fields of a request that no schema asks for. They are ignored, so that clients written for other
 * builds of this interface keep working, but a typo in an optional field must never be silent. The walk is
 * compiled from the schema once.
 */
export type FieldCheck = (value: unknown) => string[];

/** Adds the unknown fields below `path` to `found`; null where the schema takes anything. */
type Walk = (value: unknown, path: string, found: Found) => void;

/** Unknown fields: the first ones with what is said of them, the others only counted. */
interface Found {
  count: number;
  named: UnknownField[];
}

interface UnknownField {
  path: string;
  /** A known field that was probably meant. */
  meant: string | null;
}

/** More than these are only counted. */
const MAX_NAMED = 20;

/** A check of values for `schema`; the warnings are whole sentences. `what`: `field`, `query parameter`. */
export function unknownFields(schema: z.ZodType, what: string): FieldCheck {
  const walk = compile(schema, new Map());
  if (walk === null) return () => [];
  return (value) => {
    const found: Found = { count: 0, named: [] };
    walk(value, '', found);
    const warnings = found.named.map(({ path, meant }) => {
      const hint = meant === null ? '' : `; did you mean "${meant}"?`;
      return `unknown ${what} "${path}" was ignored${hint}`;
    });
    const more = found.count - found.named.length;
    if (more > 0) warnings.push(`and ${more} more were ignored`);
    return warnings;
  };
}

/** Schemas that are being compiled or are done: a schema may contain itself. */
type Seen = Map<unknown, { walk: Walk | null }>;

function compile(schema: unknown, seen: Seen): Walk | null {
  const before = seen.get(schema);
  if (before !== undefined) return (value, path, found) => before.walk?.(value, path, found);
  const box: { walk: Walk | null } = { walk: null };
  seen.set(schema, box);
  box.walk = walkOf(schema, seen);
  return box.walk;
}

function walkOf(schema: unknown, seen: Seen): Walk | null {
  if (schema instanceof z.ZodObject) return objectWalk(schema, seen);
  if (schema instanceof z.ZodArray) return eachWalk(compile(schema.def.element, seen));
  if (schema instanceof z.ZodRecord) return valuesWalk(compile(schema.def.valueType, seen));
  if (schema instanceof z.ZodUnion) return unionWalk(schema.def.options.map((one) => compile(one, seen)));
  const inner = wrappedSchema(schema);
  return inner === undefined ? null : compile(inner, seen);
}

function objectWalk(schema: z.ZodObject, seen: Seen): Walk | null {
  // A catch-all takes (or itself refuses) what has no name.
  if (schema.def.catchall !== undefined) return null;
  const fields = new Map(Object.entries(schema.shape).map(([key, inner]) => [key, compile(inner, seen)]));
  return (value, path, found) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    for (const key of Object.keys(value)) {
      const inner = fields.get(key);
      if (inner === undefined) add(found, path, key, fields.keys());
      else if (inner !== null) inner((value as Record<string, unknown>)[key], fieldPath(path, key), found);
    }
  };
}

function add(found: Found, path: string, key: string, known: Iterable<string>): void {
  found.count++;
  if (found.named.length === MAX_NAMED) return;
  found.named.push({ path: fieldPath(path, key), meant: nearest(key, known) });
}

function eachWalk(element: Walk | null): Walk | null {
  if (element === null) return null;
  return (value, path, found) => {
    if (!Array.isArray(value)) return;
    for (const [at, item] of value.entries()) element(item, `${path}[${at}]`, found);
  };
}

function valuesWalk(inner: Walk | null): Walk | null {
  if (inner === null) return null;
  return (value, path, found) => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, item] of Object.entries(value)) inner(item, fieldPath(path, key), found);
  };
}

/** The form with the fewest strange fields is the one that was meant. */
function unionWalk(options: (Walk | null)[]): Walk | null {
  const walks = options.filter((walk) => walk !== null);
  if (walks.length === 0) return null;
  return (value, path, found) => {
    let best: Found | null = null;
    for (const walk of walks) {
      const here: Found = { count: 0, named: [] };
      walk(value, path, here);
      if (best === null || here.count < best.count) best = here;
    }
    if (best === null) return;
    found.count += best.count;
    found.named.push(...best.named.slice(0, MAX_NAMED - found.named.length));
  };
}

/** `attachments[2].content`; names that are no plain words are quoted. */
export function fieldPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`;
  const name = shortened(key);
  if (!/^[A-Za-z0-9_$-]+…?$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

function nearest(name: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let least = name.length <= 4 ? 1 : 2;
  for (const candidate of known) {
    if (Math.abs(name.length - candidate.length) > least) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), least);
    if (distance <= least) {
      best = candidate;
      least = distance - 1;
    }
  }
  return best;
}

/** Single-letter changes (a swap of neighbours counts two) between two names; stops caring above `max`. */
function editDistance(a: string, b: string, max: number): number {
  if (Math.abs(a.length - b.length) > max) return max + 1;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? max + 1;
}
