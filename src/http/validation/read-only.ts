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

/** Takes the read-only fields out of a body; null: it has none. */
export type SplitFields = (sent: unknown) => { readOnly: Fields; rest: Fields } | null;

/** Null when the operation writes no resource. The names are compared with those of the body at the first use. */
export function readOnlyFields({ method, body, responses, ...route }: Route): SplitFields | null {
  const resource = route.resource ?? resourceIn(Object.values(responses)[0]?.data);
  if (body === undefined || method === 'DELETE' || resource === null) return null;
  const unknownIn = unknownFields(body, 'field');
  let names: ReadonlySet<string> | null = null;
  return (sent) => {
    if (!isRecord(sent)) return null;
    names ??= new Set(Object.keys(resource.shape).filter((key) => unknownIn({ [key]: null }).length > 0));
    const readOnly: Fields = {};
    const rest: Fields = {};
    for (const [key, value] of Object.entries(sent)) (names.has(key) ? readOnly : rest)[key] = value;
    return Object.keys(readOnly).length === 0 ? null : { readOnly, rest };
  };
}

function resourceIn(data: z.ZodType | undefined): z.ZodObject | null {
  if (!(data instanceof z.ZodObject)) return null;
  return Object.values(data.shape).find((field) => field instanceof z.ZodObject) ?? data;
}

/**
 * Warnings about fields whose values differ from those of the resource that was written. `updatedAt` of an update is that of
 * the version which the client has read.
 */
export function readOnlyWarnings(method: string, sent: Fields, answer: object, params: Fields): string[] {
  const content = answer instanceof Reply ? answer.content : { data: answer };
  const data = 'data' in content ? content.data : {};
  const resource: Fields = { ...(Object.values(data).find(isRecord) ?? data), ...params };
  if (method !== 'POST') delete resource['updatedAt'];
  return Object.entries(sent)
    .filter(([field, value]) => field in resource && !isDeepStrictEqual(value, resource[field]))
    .map(([field]) => `read-only field "${field}" was ignored`);
}
