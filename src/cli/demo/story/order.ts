import { NAMES } from '../world/names.ts';
import { expectThat, type Scene, visit } from './scene.ts';

/** A mail about an order, which answers something that its recipient did: transactional. */
export const ORDER = {
  from: `Shop of Wonders <orders@${NAMES.sender}>`,
  to: 'Zoë Müller <zoe@inbox.test>',
  subject: 'Your order {{order}} – danke, Zoë!',
  html: [
    '<h1>Thank you, {{name}}!</h1>',
    '<p>Your order <b>{{order}}</b> is on its way: <a href="https://shop.test/orders/{{order}}?from=mail">see where</a>.</p>',
    '<p>{{company_address_html}}<br>{{unsubscribe_email_html}}</p>',
  ].join('\n'),
  templateVariables: { name: 'Zoë', order: 'A-1001' },
  enableClickTracking: true,
};

/** It arrives, its link is followed, and all of that is known. */
export async function sendAnOrder(scene: Scene): Promise<void> {
  const { call, tell, receiver, shop } = scene;

  tell.step('A transactional mail is sent');
  const { messageId } = await call('POST', '/transactional/send', 200, ORDER);
  const received = await receiver.next();
  tell.line('and this arrived at the receiving server:');
  tell.mail(received);
  expectThat(received.dkim.startsWith('pass'), `DKIM did not pass: ${received.dkim}`);
  tell.webhook(await shop.told('email_sent', 'email_delivered'));

  tell.step('Zoë follows the link in it');
  const [link = ''] = /http:[^"]+\/c\/[^"]+/.exec(received.mail.html || '') ?? [];
  expectThat(link !== '', 'the mail has no tracked link');
  tell.line(`and is led to ${await visit(scene, link, { method: 'GET', status: 302 })}`);
  tell.webhook(await shop.told('email_clicked'));

  tell.step('What is known about it');
  const message = await call('GET', `/web-setup/messages/${messageId}`, 200);
  tell.line(`status ${message.status} after ${message.attempts} attempt`);
  tell.timeline(message.timeline);
}
