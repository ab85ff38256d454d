/** The names of the demo's small internet. All of them end in `.test`, which leads nowhere outside (RFC 6761 §6.2). */
export const NAMES = {
  platform: 'mail.postrider.test',
  sender: 'shop.test',
  receiver: 'mx.inbox.test',
};

/** The receiving server knows nobody by this local part, and says so at once. */
export const UNKNOWN_USER = 'nobody';

/** For this one it takes the mail, and finds out only then that the mailbox is gone. */
export const GONE_USER = 'gone';

export const LOOPBACK = '127.0.0.1';
