import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * Who wrote to whom, as the public pages name them. The recipient is not named in full: a mail is passed on
 * easily, and its links with it.
 */
export function correspondents(tables: Tables, mail: SentMail): { sender: string; recipient: string | null } {
  const account = tables.accounts.get(mail.accountId);
  const message = tables.messages.byId(mail.messageId);
  return {
    sender: account?.company_name ?? account?.name ?? 'this sender',
    recipient: message === null ? null : veiled(message.recipient),
  };
}

/** `a…@example.net` */
function veiled(address: string): string {
  const at = address.lastIndexOf('@');
  const [first = ''] = address;
  return `${first}…${address.slice(at)}`;
}
