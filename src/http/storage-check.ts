import type { Refusal } from '../core/refusal.ts';
import type { Route } from './route.ts';

/**
 * Refuses the requests that add to what their account stores, while the disk is nearly full or the account has reached its
 * limit. It applies to every operation whose description does not exempt it: what removes data, opts someone out, or
 * belongs to the operator works at any time. `refusalOf`: why nothing is stored for an account; null: it is.
 */
export function withStorageCheck(route: Route, refusalOf: (accountId: string) => Refusal | null): Route {
  if (route.method === 'GET' || route.method === 'DELETE' || route.scope === 'operator') return route;
  const refusals = new Set([...route.refusals, 'LIMIT_REACHED' as const]);
  return {
    ...route,
    refusals: [...refusals],
    handle: (call) => {
      const stores = route.stores?.(call.body) ?? true;
      return (stores ? refusalOf(call.caller.accountId) : null) ?? route.handle(call);
    },
  };
}
