import type { InboundHeader } from '../mail/incoming/inbound-header.ts';
import type { ParsedInbound } from './parse-mail.ts';

/** What a reader of a received mail sees, as it is stored. */
export interface StoredContent
  extends Pick<InboundHeader, 'headers'>,
    Pick<ParsedInbound, 'text' | 'isTextCut' | 'html' | 'isHtmlCut' | 'replyText' | 'attachments'> {}

/** The content of a mail that was parsed; null: it waits for the parser. */
export function readContent(stored: string | null): StoredContent | null {
  // Sound: only the worker writes the column.
  return stored === null ? null : (JSON.parse(stored) as StoredContent);
}
