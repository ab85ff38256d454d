import * as z from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { Context } from '../../store/context.ts';
import type { StatusCount } from '../../store/messages/message-list.ts';
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
export function messageCountRoutes({ reader }: Pick<Context, 'reader'>): ConsoleRoute[] {
  return [
    consoleRoute('GET /console/message-counts', {
      operationId: 'countMessages',
      access: 'read',
      query: z.object(messageFilters),
      handle: async ({ caller, query }) => {
        const filter = messageFilter(caller.accountId, query);
        if (isRefusal(filter)) return filter;
        const counts = await reader.table(caller.accountId, 'messages', 'statusCounts', filter);
        return { counts } satisfies MessageCounts;
      },
    }),
  ];
}
