import type { DemoEnv } from '../client.ts';
import { GONE_USER, UNKNOWN_USER } from '../servers/names.ts';
import { ORDER } from './order.ts';

/** Messages that cannot be delivered: rejected immediately, and bounced after acceptance. */
export async function sendBounces({ call, output, receiver, webhooks }: DemoEnv): Promise<void> {
  const unknown = { ...ORDER, to: `${UNKNOWN_USER}@inbox.test` };
  output.step(`Send to ${unknown.to}, an unknown user`);
  const bounced = await call('POST', '/transactional/send', 200, unknown, { prefer: 'wait=10' });
  output.line(
    `with Prefer: wait the response has the result: ${bounced.delivery?.status}, "${bounced.delivery?.smtpReply}"`,
  );
  output.webhook(await webhooks.received('email_sent', 'email_bounced'));
  const again = await call('POST', '/transactional/send', 403, unknown);
  output.line(`the next message to this address is refused: ${again.reasonCode}. ${again.message}`);
  output.webhook(await webhooks.received('email_suppressed'));

  const gone = { ...ORDER, to: `${GONE_USER}@inbox.test` };
  output.step(`Send to ${gone.to}, accepted first and bounced later`);
  const { messageId } = await call('POST', '/transactional/send', 200, gone);
  const { from } = await receiver.next();
  output.line(`the bounce arrives at the return path of the message, ${from}`);
  output.webhook(await webhooks.received('email_sent', 'email_delivered', 'email_bounced'));
  const message = await call('GET', `/web-setup/messages/${messageId}`, 200);
  output.line(`status ${message.status}`);
}
