import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { isRecord } from '../json-schema.ts';
import { Reply, type Route } from '../route.ts';
import { unknownFields } from './known-fields.ts';

/*
 * Fields that a resource has and a request cannot set, such as `createdAt`. Clients send back what they read, so these are
 * not unknown fields: one that is as in the response or in the path is ignored silently, another one with a warning.
 */

type Fields = Record<string, unknown>;

/** Read-only fields of a request. `isNew`: it creates the resource. */
export interface ReadOnlyFields {
  fields: Fields;
  isNew: boolean;
  /** The field of the response with the resource; null: the data is the resource. */
  name: string | null;
}

/** Takes the read-only fields out of a body; null: it has none. */
export type SplitFields = (sent: unknown) => { readOnly: ReadOnlyFields; rest: Fields } | null;

/** Null when the operation writes no resource that can be read. The names are compared with the body at the first use. */
export function readOnlyFields(route: Route, routes: readonly Route[]): SplitFields | null {
  const { method, body, path } = route;
  if (body === undefined || method === 'DELETE') return null;
  const reads = routes.filter((each) => each.method === 'GET');
  const member = reads.find((each) => isMemberOf(each.path, path));
  const resource = resourceOf(member ?? reads.find((each) => each.path === path));
  if (resource === null) return null;
  const name = resourceOf(route)?.name ?? null;
  const unknownIn = unknownFields(body, 'field');
  let names: ReadonlySet<string> | null = null;
  return (sent) => {
    if (!isRecord(sent)) return null;
    names ??= new Set(
      Object.keys(resource.schema.shape).filter((key) => unknownIn({ [key]: null }).length > 0),
    );
    const isReadOnly = (key: string) => names?.has(key) === true;
    const fields = Object.fromEntries(Object.entries(sent).filter(([key]) => isReadOnly(key)));
    const rest = Object.fromEntries(Object.entries(sent).filter(([key]) => !isReadOnly(key)));
    const readOnly = { fields, isNew: member !== undefined, name };
    return Object.keys(fields).length === 0 ? null : { readOnly, rest };
  };
}

/** The resource in the responses of an operation: the first field of the data if that is an object, else the data. */
function resourceOf(route: Route | undefined): { name: string | null; schema: z.ZodObject } | null {
  const [data] = Object.values(route?.responses ?? {}).map((success) => success.data);
  if (!(data instanceof z.ZodObject)) return null;
  const [[name, first] = []] = Object.entries(data.shape);
  return name !== undefined && first instanceof z.ZodObject
    ? { name, schema: first }
    : { name: null, schema: data };
}

/** `/domains/{domainId}` is a member of `/domains`. */
function isMemberOf(path: string, collection: string): boolean {
  return path.startsWith(`${collection}/{`) && !path.slice(collection.length + 1).includes('/');
}

/**
 * Warnings about fields whose values differ from those of the resource in the response, or of the path. An update has the
 * `updatedAt` of the version that the client has read, and may have fields that the response does not have.
 */
export function readOnlyWarnings(
  { fields, isNew, name }: ReadOnlyFields,
  answer: object,
  params: Fields,
): string[] {
  const content = answer instanceof Reply ? answer.content : { data: answer };
  const data: Fields = 'data' in content ? { ...content.data } : {};
  const found = name === null ? data : data[name];
  const resource: Fields = { ...(isRecord(found) ? found : {}), ...params };
  return Object.entries(fields)
    .filter(
      ([field, value]) =>
        (isNew || isCompared(field, resource)) && !isDeepStrictEqual(value, resource[field]),
    )
    .map(([field]) => `read-only field "${field}" was ignored`);
}

function isCompared(field: string, resource: Fields): boolean {
  return field !== 'updatedAt' && field in resource;
}
