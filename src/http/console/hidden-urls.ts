import { permissionsOf } from '../../people/roles.ts';
import { mapData, type Route } from '../route.ts';
import type { ConsoleAccess } from './access.ts';

/*
 * URLs can contain secrets, such as the links of mail that sign in or reset a password, and the addresses of webhooks. They
 * are shown completely to those who may read the content of messages (`getMessageContent`).
 */

/** query: the query and the fragment are hidden; path: also the path. */
type Hidden = NonNullable<Route['hidesUrls']>;

/** The route with the parts of URLs hidden that the role of the caller may not read. */
export function withHiddenUrls(route: Route, access: Pick<ConsoleAccess, 'identityOf'>): Route {
  const { hidesUrls: hidden } = route;
  if (hidden === undefined) return route;
  return {
    ...route,
    handle: async (call) => {
      const response = await route.handle(call);
      const { standing } = access.identityOf(call.caller);
      if (standing !== null && permissionsOf(standing).includes('messages')) return response;
      return mapData(response, (data) => hideUrls(data, hidden));
    },
  };
}

/** Fields with URLs: ours, and those of webhooks in the formats of other providers. */
const URL_FIELDS: ReadonlySet<string> = new Set(['url', 'Url', 'OriginalLink', 'link']);

/** A copy of a part of a response; JSON values have no cycles. */
export function hideUrls<T>(value: T, hidden: Hidden): T {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, each]): [string, unknown] => [
    name,
    URL_FIELDS.has(name) && typeof each === 'string' ? shownUrl(each, hidden) : hideUrls(each, hidden),
  ]);
  // Sound: the same fields, with values of the same types.
  return (Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries)) as T;
}

function shownUrl(text: string, hidden: Hidden): string {
  if (!URL.canParse(text)) return '…';
  const { origin, pathname, search, hash } = new URL(text);
  if (hidden === 'path') return pathname + search + hash === '/' ? text : `${origin}/…`;
  return search + hash === '' ? text : `${origin}${pathname}?…`;
}
