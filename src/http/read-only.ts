import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { unknownFields } from './known-fields.ts';
import type { Answer, Call, Route } from './route.ts';

/**
 * Fields that a resource shows and a request cannot set, such as `createdAt`. Clients send back what they read, so these
 * are no unknown fields: one that repeats what the resource or the path has is ignored silently, another value is
 * ignored with a warning that names the field. Which fields these are follows from the operation that reads the
 * resource, and so does the value to compare with.
 */
export interface ReadOnlyCheck {
  /** The body without its read-only fields. */
  without(sent: unknown): unknown;
  /** About read-only fields with another value than the resource has. */
  warnings(sent: unknown, call: AnyCall): Promise<string[]>;
}

type AnyCall = Call<Record<string, unknown>, Record<string, unknown>, unknown>;
type Fields = Record<string, unknown>;

/** Null when the operation writes no resource that can be read, or all of the resource can be written. */
export function readOnlyCheck(route: Route, routes: readonly Route[]): ReadOnlyCheck | null {
  if (route.body === undefined || route.method === 'DELETE') return null;
  const member = routes.find(({ method, path }) => method === 'GET' && isMemberOf(path, route.path));
  const itself = routes.find(({ method, path }) => method === 'GET' && path === route.path);
  const reader = member ?? itself;
  const data = reader?.answers[200]?.data;
  if (reader === undefined || !(data instanceof z.ZodObject)) return null;
  const [[name, first] = ['', null]] = Object.entries(data.shape);
  const form = first instanceof z.ZodObject ? first : data;
  const isUnknown = unknownFields(route.body, 'field');
  const names = new Set(Object.keys(form.shape).filter((key) => isUnknown({ [key]: null }).length > 0));
  if (names.size === 0) return null;

  async function current(call: AnyCall): Promise<Fields> {
    // What is being created has no values yet, but for what the path says.
    if (reader === undefined || member !== undefined) return call.params;
    const read = dataOf(await reader.handle({ ...call, query: {}, body: undefined, upload: null }));
    const resource = form === data ? read : read[name];
    return { ...(isFields(resource) ? resource : {}), ...call.params };
  }

  const readOnly = (sent: unknown) =>
    isFields(sent) ? Object.keys(sent).filter((key) => names.has(key)) : [];

  return {
    without: (sent) =>
      readOnly(sent).length === 0 || !isFields(sent)
        ? sent
        : Object.fromEntries(Object.entries(sent).filter(([key]) => !names.has(key))),
    warnings: async (sent, call) => {
      const fields = readOnly(sent);
      if (fields.length === 0 || !isFields(sent)) return [];
      const known = await current(call);
      return fields
        .filter((field) => !isDeepStrictEqual(sent[field], known[field]))
        .map((field) => `read-only field "${field}" was ignored`);
    },
  };
}

/** `/domains/{domainId}` is a member of `/domains`. */
function isMemberOf(path: string, collection: string): boolean {
  return path.startsWith(`${collection}/{`) && !path.slice(collection.length + 1).includes('/');
}

function dataOf(answer: Answer | Refusal): Fields {
  if (isRefusal(answer)) return {};
  const data: unknown = 'raw' in answer ? (JSON.parse(answer.raw) as { data?: unknown }).data : answer.data;
  return isFields(data) ? data : {};
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
