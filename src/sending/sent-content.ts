import type { MessageContent } from '../mail/content.ts';
import { mergeContent, type SharedTexts } from '../mail/shared-content.ts';
import { readContent } from '../mail/stored-content.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';

/** A message with what it was composed of. */
export interface SentContent {
  message: MessageRow;
  /** Null: the domain was deleted. */
  domain: Pick<DomainRow, 'name' | 'return_path' | 'tracking_host'> | null;
  /** Null: retention or an erasure has deleted it. */
  content: MessageContent | null;
}

/**
 * Reads a message and its content, decoded; null: the account has no message with this id. The content of another
 * account's message is not read: the time would show that the message exists.
 */
export const sentContent = readQuery(
  'sentContent',
  (
    tables: Tables,
    { accountId, messageId }: { accountId: string; messageId: string },
  ): SentContent | null => {
    const message = tables.messages.byId(messageId);
    if (message === null || message.account_id !== accountId) return null;
    const domain = tables.domains.byId(message.domain_id);
    return {
      message,
      domain:
        domain === null
          ? null
          : { name: domain.name, return_path: domain.return_path, tracking_host: domain.tracking_host },
      content: contentOf(tables, message),
    };
  },
);

function contentOf(tables: Tables, message: MessageRow): MessageContent | null {
  const row = tables.messages.content(message.content_id);
  if (row === null) return null;
  const own = readContent(row);
  // The casts are sound: accept.ts and campaigns/run.ts validated both contents before they were stored.
  if (row.shared_id === null) return own as MessageContent;
  const shared = tables.sharedContents.get(row.shared_id);
  if (shared === null) return null;
  const { message_id: messageId, created_at: date, recipient } = message;
  return mergeContent(
    readContent(shared) as SharedTexts,
    own as Parameters<typeof mergeContent>[1],
    { messageId, date },
    recipient,
  );
}
