import { operate } from '../../api.ts';
import type { BodyOf } from '../../operations.ts';
import { type LongTask, useLongTask } from '../../parts/long-task.tsx';

/** A change of all waiting messages that match a filter. */
export type QueueOrder =
  | { change: 'retry'; filter: QueueFilter }
  | { change: 'purge'; filter: QueueFilter; reason: string };

type QueueFilter = BodyOf<'/web-setup/queue/retry', 'post'>['filter'];

export interface QueueWork {
  order: QueueOrder;
  /** Where the next request continues. */
  after: number;
}

function send(order: QueueOrder, more: { dryRun?: boolean; after?: number }) {
  const { filter } = order;
  return order.change === 'retry'
    ? operate('post', '/web-setup/queue/retry', { account: null, body: { filter, ...more } })
    : operate('post', '/web-setup/queue/purge', {
        account: null,
        body: { filter, reason: order.reason, ...more },
      });
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
