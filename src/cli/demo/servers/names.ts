/** Host names of the demo. `.test` is reserved (RFC 6761 §6.2). */
export const NAMES = {
  platform: 'mail.postrider.test',
  sender: 'shop.test',
  receiver: 'mx.inbox.test',
};

/** A local part that the receiving server rejects at RCPT. */
export const UNKNOWN_USER = 'unknown';

/** A local part for which the receiving server accepts messages and bounces them afterwards. */
export const GONE_USER = 'gone';

export const LOOPBACK = '127.0.0.1';
