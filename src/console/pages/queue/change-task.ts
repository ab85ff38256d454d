import type * as z from 'zod';
import type { bulkSchema } from '../../../http/api/queue/queue-schemas.ts';
import { request } from '../../api.ts';
import { type LongTask, useLongTask } from '../../parts/long-task.tsx';

type Bulk = z.output<typeof bulkSchema>;

/** A change of all waiting messages that match a filter. */
export interface QueueOrder {
  change: 'purge' | 'retry';
  filter: { destination?: string; accountId?: string };
  /** Reason of a `purge`. */
  reason?: string;
}

export interface QueueWork {
  order: QueueOrder;
  /** Where the next request continues. */
  after: number;
}

function send({ change, ...order }: QueueOrder, more: { dryRun?: boolean; after?: number }): Promise<Bulk> {
  const body = { ...order, ...more };
  return request<Bulk>(`/console/api/web-setup/queue/${change}`, { method: 'POST', body });
}

/** The number of messages that an order would change. */
export async function countOf(order: QueueOrder): Promise<number> {
  return (await send(order, { dryRun: true })).matched;
}

/** Changes waiting messages in portions. */
export function useQueueTask(change: QueueOrder['change'], onEnd: () => void): LongTask<QueueWork> {
  return useLongTask<QueueWork>(
    `queue ${change}`,
    async ({ order, after }) => {
      const { changed, skipped, next } = await send(order, { after });
      return { rest: next === null ? null : { order, after: next }, done: changed + skipped, skipped };
    },
    onEnd,
  );
}
