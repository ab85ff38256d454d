import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { isRefusal } from '../../core/refusal.ts';
import {
  type SavedView,
  type SavedViews,
  savedViewSchema,
  type ViewOwner,
} from '../../people/saved-views.ts';
import { Reply } from '../route.ts';
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
    consoleRoute('GET /console/views', {
      operationId: 'listViews',
      summary: 'List saved views',
      access: 'read',
      accountOptional: true,
      handle: (call) => ({ views: views.list(ownerOf(call)) }) satisfies SavedViewList,
    }),
    consoleRoute('POST /console/views', {
      operationId: 'saveView',
      summary: 'Save a view',
      access: 'read',
      accountOptional: true,
      ownAudit: true,
      body: savedViewSchema,
      handle: async (call) => {
        const saved = await views.save(ownerOf(call), call.body);
        return isRefusal(saved) ? saved : new Reply({ data: saved }, { status: 201 });
      },
    }),
    consoleRoute('DELETE /console/views/{viewId}', {
      operationId: 'deleteView',
      summary: 'Delete a saved view',
      access: 'read',
      accountOptional: true,
      ownAudit: true,
      params: { viewId: z.string().max(100) },
      handle: async (call) => (await views.remove(ownerOf(call).personId, call.params.viewId)) ?? {},
    }),
  ];
}
