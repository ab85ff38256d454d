import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Context } from '../store/context.ts';
import type { InboundFilter, ListedInbound, StoredInbound } from '../store/inbound/inbound-mails.ts';
import type { Page } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';

export type ReceivedMail = StoredInbound & { size: number };

/** The received mail of accounts, without its parts. Starts nothing. */
export function createReceivedMails({ reader, writer }: Pick<Context, 'reader' | 'writer'>) {
  return {
    /** Newest first. */
    list: (filter: InboundFilter): Promise<Page<ListedInbound>> =>
      reader.table(filter.accountId, 'inbound', 'list', filter),
    get: async (accountId: string, inboundId: string): Promise<ReceivedMail | Refusal> =>
      (await reader.table(accountId, 'inbound', 'get', accountId, inboundId)) ?? mailNotFound(inboundId),
    /** Deletes a mail and returns it. Its source is deleted in the background, unless another mail has it, too. */
    remove: (accountId: string, inboundId: string): Promise<ListedInbound | Refusal> =>
      writer.run((tx): ListedInbound | Refusal => {
        const mail = mailOf(tx, accountId, inboundId);
        if (!isRefusal(mail)) tx.inbound.remove(mail.seq);
        return mail;
      }, accountId),
  };
}

/** A mail of the account. */
export function mailOf(tables: Tables, accountId: string, inboundId: string): ListedInbound | Refusal {
  const mail = tables.inbound.byId(inboundId);
  return mail === null || mail.account_id !== accountId ? mailNotFound(inboundId) : mail;
}

export function mailNotFound(inboundId: string): Refusal {
  return refuse('INBOUND_NOT_FOUND', `There is no received mail ${inboundId}`);
}
