import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * Sender and recipient of a mail as the public pages name them. The address of the recipient is masked, because a mail
 * may be forwarded together with its links.
 */
export function partiesOf(tables: Tables, mail: SentMail): { sender: string; recipient: string | null } {
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
