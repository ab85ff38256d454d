import { isRefusal, type Refusal } from '../core/refusal.ts';
import { refusalResponse } from './responses.ts';
import type { OpenRoute } from './route.ts';
import type { Handler, RoutedRequest } from './router.ts';

/** Handler of a route that requires no key. `refusalOf`: refuses requests before the route handles them. */
export function openHandler(
  route: OpenRoute,
  refusalOf: (incoming: RoutedRequest) => Refusal | null = () => null,
): Handler {
  return async (incoming) => {
    const refusal = refusalOf(incoming);
    if (refusal !== null) return refusalResponse(refusal, incoming.requestId);
    const page = await route.handle({
      from: incoming.from(),
      params: incoming.params,
      query: new URLSearchParams(incoming.search),
      headers: incoming.req.headers,
      requestId: incoming.requestId,
    });
    return isRefusal(page) ? refusalResponse(page, incoming.requestId) : page;
  };
}
