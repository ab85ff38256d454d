import { mayReceiveMarketing } from '../audience/eligibility.ts';
import type { MessageRow } from '../store/messages.ts';
import type { Tables } from '../store/tables.ts';
import { suppressedFor } from './suppression.ts';

/**
 * The last look, when a message leaves the queue: what was allowed when it was accepted may not be now.
 * Null: it may go; else the fields of its `email_suppressed` event.
 */
export function stillAllowed(tables: Tables, message: MessageRow): Record<string, unknown> | null {
  if (message.simulated === 1) return null;
  if (message.use_case === 'mk') {
    const { account_id, recipient_hash, subscription_group_id } = message;
    const ended = mayReceiveMarketing(tables, account_id, recipient_hash, subscription_group_id);
    return ended === null ? null : { reasonCode: 'CONSENT_WITHDRAWN', reason: ended.status };
  }
  const found = suppressedFor(tables, message.account_id, message.recipient_hash, message.use_case);
  return found === null ? null : { reasonCode: found.code, reason: found.row.reason };
}
