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
  const unknownIn = unknownFields(body, 'field');
  let names: ReadonlySet<string> | null = null;
  return (sent) => {
    if (!isRecord(sent)) return null;
    names ??= new Set(Object.keys(resource.shape).filter((key) => unknownIn({ [key]: null }).length > 0));
    const fields: Fields = {};
    const rest: Fields = {};
    for (const [key, value] of Object.entries(sent)) (names.has(key) ? fields : rest)[key] = value;
    const readOnly = { fields, isNew: member !== undefined };
    return Object.keys(fields).length === 0 ? null : { readOnly, rest };
  };
}

function resourceOf(read: Route | undefined): z.ZodObject | null {
  const data = read?.responses[200]?.data;
  if (!(data instanceof z.ZodObject)) return null;
  const [first] = Object.values(data.shape);
  return first instanceof z.ZodObject ? first : data;
}

/** `/domains/{domainId}` is a member of `/domains`. */
function isMemberOf(path: string, collection: string): boolean {
  return path.startsWith(`${collection}/{`) && !path.slice(collection.length + 1).includes('/');
}

/**
 * Warnings about fields whose values differ from those of the resource in the response, or of the path. An update has the
 * `updatedAt` of the version which the client has read, and may have fields that the response does not have.
 */
export function readOnlyWarnings(
  { fields, isNew }: ReadOnlyFields,
  answer: object,
  params: Fields,
): string[] {
  const content = answer instanceof Reply ? answer.content : { data: answer };
  const data = 'data' in content ? content.data : {};
  const resource: Fields = { ...(Object.values(data).find(isRecord) ?? data), ...params };
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
