import * as z from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { StatusCount } from '../../store/messages/message-list.ts';
import type { Reader } from '../../store/readers/reads.ts';
import { messageFilter, messageFilters } from '../api/sending/messages.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/** The response of `GET /console/message-counts`. */
export interface MessageCounts {
  counts: StatusCount[];
}

/**
 * `/console/message-counts`: how many messages of each status the filters of the list of messages find. Each count is of
 * the newest messages that a page can examine.
 */
export function messageCountRoutes({ reader }: { reader: Reader }): ConsoleRoute[] {
  return [
    consoleRoute({
      method: 'GET',
      path: '/message-counts',
      operationId: 'countMessages',
      access: 'read',
      query: z.object(messageFilters),
      handle: async ({ caller, query }) => {
        const filter = messageFilter(caller.accountId, query);
        if (isRefusal(filter)) return filter;
        const counts = await reader.table(caller.accountId, 'messages', 'statusCounts', filter);
        return { status: 200, data: { counts } satisfies MessageCounts };
      },
    }),
  ];
}
