import { domainOf } from '../mail/address.ts';
import { providerOf } from '../mail/providers.ts';
import { OTHER_PROVIDER } from '../store/messages/hourly-counts.ts';

/** The mailbox provider of a message's recipient. The address of an erased person is empty. */
export function providerOfRecipient(recipient: string): string {
  const domain = domainOf(recipient);
  return domain === '' ? OTHER_PROVIDER : providerOf(domain);
}
