import type { Log } from '../../core/log.ts';
import type { UnclassifiedReplies, UnclassifiedReply } from '../../mail/classify/unclassified.ts';
import type { Writer } from '../../store/database/writer.ts';

/** Rows that one unit of work writes. */
const WRITE_BATCH_SIZE = 50;

/**
 * Stores the replies that were counted since the last call, in portions. Replies that cannot be stored are counted again.
 * Never rejects.
 */
export async function storeUnclassified(
  replies: UnclassifiedReplies,
  writer: Writer,
  log: Log,
): Promise<void> {
  for (;;) {
    const batch = replies.take(WRITE_BATCH_SIZE);
    if (batch.length === 0) return;
    try {
      await writer.run((tables) => tables.unclassifiedReplies.add(batch.map(toRow)));
    } catch (error) {
      replies.giveBack(batch);
      log.warn({ err: error }, 'unclassified replies could not be stored; trying again later');
      return;
    }
  }
}

function toRow({ firstAt, lastAt, ...reply }: UnclassifiedReply) {
  return { ...reply, first_at: firstAt, last_at: lastAt };
}
