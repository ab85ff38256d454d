import { GONE_USER, UNKNOWN_USER } from '../world/names.ts';
import { ORDER } from './order.ts';
import type { Scene } from './scene.ts';

/** Mail that cannot be delivered: refused at once, or sent back after it was taken. */
export async function bounceTwice({ call, tell, receiver, shop }: Scene): Promise<void> {
  const unknown = { ...ORDER, to: `${UNKNOWN_USER}@inbox.test` };
  tell.step(`A mail to ${unknown.to}, whom the receiving server does not know`);
  const bounced = await call('POST', '/transactional/send', 200, unknown, { prefer: 'wait=10' });
  tell.line(
    `the caller asked to wait for the outcome: ${bounced.delivery?.status}, "${bounced.delivery?.smtpReply}"`,
  );
  tell.webhook(await shop.told('email_sent', 'email_bounced'));
  const again = await call('POST', '/transactional/send', 403, unknown);
  tell.line(`sent once more, it is refused at the door: ${again.reasonCode}. ${again.message}`);
  tell.webhook(await shop.told('email_suppressed'));

  const gone = { ...ORDER, to: `${GONE_USER}@inbox.test` };
  tell.step(`A mail to ${gone.to}, which is taken at first and comes back later`);
  const { messageId } = await call('POST', '/transactional/send', 200, gone);
  const { from } = await receiver.next();
  tell.line(`the bounce comes to the mail's own return path, ${from}`);
  tell.webhook(await shop.told('email_sent', 'email_delivered', 'email_bounced'));
  const message = await call('GET', `/web-setup/messages/${messageId}`, 200);
  tell.line(`status ${message.status}`);
}
