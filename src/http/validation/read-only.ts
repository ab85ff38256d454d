import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { isRecord } from '../json-schema.ts';
import type { ApiResponse, Call, Route } from '../route.ts';
import { unknownFields } from './known-fields.ts';

/**
 * Fields that a resource has and a request cannot set, such as `createdAt`. Clients send back what they read, so these
 * are not unknown fields: a value that equals that of the resource or the path is ignored silently, another value with
 * a warning that names the field. The fields, and the values to compare with, come from the operation that reads the
 * resource.
 */
export interface ReadOnlyCheck {
  /** The body without its read-only fields. */
  without(sent: unknown): unknown;
  /** Warnings about read-only fields whose value differs from that of the resource. */
  warnings(sent: unknown, call: AnyCall): Promise<string[]>;
}

type AnyCall = Call<Record<string, unknown>, Record<string, unknown>, unknown>;
type Fields = Record<string, unknown>;

/** Null when the operation writes no readable resource. */
export function readOnlyCheck(route: Route, routes: readonly Route[]): ReadOnlyCheck | null {
  if (route.body === undefined || route.method === 'DELETE') return null;
  const member = routes.find(({ method, path }) => method === 'GET' && isMemberOf(path, route.path));
  const itself = routes.find(({ method, path }) => method === 'GET' && path === route.path);
  const readRoute = member ?? itself;
  const data = readRoute?.responses[200]?.data;
  if (readRoute === undefined || !(data instanceof z.ZodObject)) return null;
  const [[name, first] = ['', null]] = Object.entries(data.shape);
  const resource = first instanceof z.ZodObject ? first : data;
  const unknownIn = unknownFields(route.body, 'field');
  let names: ReadonlySet<string> | null = null;

  async function current(call: AnyCall): Promise<Fields> {
    // A resource that is being created has the values of the path only.
    if (readRoute === undefined || member !== undefined) return call.params;
    const read = dataOf(await readRoute.handle({ ...call, query: {}, body: undefined, upload: null }));
    const values = resource === data ? read : read[name];
    return { ...(isRecord(values) ? values : {}), ...call.params };
  }

  /** The fields of the resource that the body cannot have, compared at the first use. */
  function readOnlyNames(): ReadonlySet<string> {
    names ??= new Set(Object.keys(resource.shape).filter((key) => unknownIn({ [key]: null }).length > 0));
    return names;
  }

  function readOnly(sent: unknown): string[] {
    if (!isRecord(sent)) return [];
    const known = readOnlyNames();
    return Object.keys(sent).filter((key) => known.has(key));
  }

  return {
    without: (sent) =>
      readOnly(sent).length === 0 || !isRecord(sent)
        ? sent
        : Object.fromEntries(Object.entries(sent).filter(([key]) => !readOnlyNames().has(key))),
    warnings: async (sent, call) => {
      const fields = readOnly(sent);
      if (fields.length === 0 || !isRecord(sent)) return [];
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

function dataOf(response: ApiResponse | Refusal): Fields {
  if (isRefusal(response)) return {};
  const data: unknown =
    'raw' in response ? (JSON.parse(response.raw) as { data?: unknown }).data : response.data;
  return isRecord(data) ? data : {};
}
