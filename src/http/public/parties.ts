import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tables } from '../../store/tables.ts';
import { accountLook, type Look } from './look.ts';

/**
 * The look of a page about a mail, and its recipient as the pages name them. The address is masked, because a mail may be
 * forwarded together with its links; null after the message was deleted.
 */
export interface Parties {
  look: Look;
  sender: string;
  recipient: string | null;
  /** The recipient is a contact of the account, so that there are preferences. */
  isContact: boolean;
}

/** In the language of the recipient, if that is a contact of the account. */
export function partiesOf(tables: Tables, mail: SentMail, acceptLanguage: string): Parties {
  const contact = tables.contacts.byIdentifier(mail.accountId, mail.recipientHash);
  const look = accountLook(tables, mail.accountId, contact?.language ?? null, acceptLanguage);
  const message = tables.messages.byId(mail.messageId);
  return {
    look,
    sender: look.brand?.name ?? look.plain('sender'),
    recipient: message === null ? null : masked(message.recipient),
    isContact: contact !== null,
  };
}

/** `a…@example.net` */
export function masked(address: string): string {
  const at = address.lastIndexOf('@');
  const [first = ''] = address;
  return `${first}…${address.slice(at)}`;
}
