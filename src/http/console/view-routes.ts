import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import {
  type SavedView,
  type SavedViews,
  savedViewSchema,
  type ViewOwner,
} from '../../people/saved-views.ts';
import type { ApiResponse } from '../route.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/** The response of `GET /console/views`. */
export interface SavedViewList {
  views: SavedView[];
}

/** `/console/views`: the views that the person saved, in an account or, without one, of lists about the installation. */
export function viewRoutes({ access, views }: { access: ConsoleAccess; views: SavedViews }): ConsoleRoute[] {
  const ownerOf = ({ caller }: { caller: Caller }): ViewOwner => ({
    personId: access.sessionOf(caller).person.id,
    accountId: access.identityOf(caller).accountId,
  });
  return [
    consoleRoute({
      method: 'GET',
      path: '/views',
      operationId: 'listViews',
      access: 'read',
      accountOptional: true,
      handle: (call) => ({ status: 200, data: { views: views.list(ownerOf(call)) } satisfies SavedViewList }),
    }),
    consoleRoute({
      method: 'POST',
      path: '/views',
      operationId: 'saveView',
      access: 'read',
      accountOptional: true,
      ownAudit: true,
      body: savedViewSchema,
      handle: async (call): Promise<ApiResponse | Refusal> => {
        const saved = await views.save(ownerOf(call), call.body);
        return isRefusal(saved) ? saved : { status: 201, data: saved };
      },
    }),
    consoleRoute({
      method: 'DELETE',
      path: '/views/{viewId}',
      operationId: 'deleteView',
      access: 'read',
      accountOptional: true,
      ownAudit: true,
      params: z.object({ viewId: z.string().max(100) }),
      handle: async (call): Promise<ApiResponse | Refusal> =>
        (await views.remove(ownerOf(call).personId, call.params.viewId)) ?? { status: 200, data: {} },
    }),
  ];
}
