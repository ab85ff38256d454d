import type { ReadyMessage } from '../../src/store/messages/queue.ts';
import { messageIdOf, newMessage } from '../support/rows.ts';

const NOW = Date.UTC(2026, 0, 15, 12);

/** A message that is ready to be sent, outside of any database. */
export function readyMessage(seq: number, columns: Partial<ReadyMessage> = {}): ReadyMessage {
  const message = newMessage(NOW, {
    message_id: messageIdOf(seq, NOW),
    recipient: columns.recipient ?? `a${seq}@one.test`,
    content_id: seq,
    expires_at: NOW + 86_400_000,
  });
  return {
    ...message,
    seq,
    status: 'queued',
    attempts: 0,
    updated_at: NOW,
    sent_at: null,
    final_at: null,
    destination: 'one.test',
    priority: 0,
    lease: null,
    due_at: NOW,
    secondary: 0,
    reroute: null,
    scheduled_at: null,
    content_bytes: 1000,
    ...columns,
  };
}
