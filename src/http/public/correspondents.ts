import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * Sender and recipient of a mail as public pages display them. The address is masked, because a mail may be forwarded with
 * its links.
 */
export function correspondents(tables: Tables, mail: SentMail): { sender: string; recipient: string | null } {
  const account = tables.accounts.get(mail.accountId);
  const message = tables.messages.byId(mail.messageId);
  return {
    sender: account?.company_name ?? account?.name ?? 'this sender',
    recipient: message === null ? null : masked(message.recipient),
  };
}

/** `a…@example.net` */
function masked(address: string): string {
  const at = address.lastIndexOf('@');
  const [first = ''] = address;
  return `${first}…${address.slice(at)}`;
}
