import { assertStep, type DemoEnv, visit } from '../client.ts';
import { NAMES } from '../servers/names.ts';

/** A transactional message. */
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

/** Sends it, follows its link, and prints its timeline. */
export async function sendOrder(env: DemoEnv): Promise<void> {
  const { call, output, receiver, webhooks } = env;

  output.step('Send a transactional message');
  const { messageId } = await call('POST', '/transactional/send', 200, ORDER);
  const received = await receiver.next();
  output.line('received:');
  output.mail(received);
  assertStep(received.dkim.startsWith('pass'), `DKIM did not pass: ${received.dkim}`);
  output.webhook(await webhooks.received('email_sent', 'email_delivered'));

  output.step('Follow the link');
  // Not linear: the text is of a message that the demo has sent.
  const [link = ''] = /http:[^"]+\/c\/[^"]+/.exec(received.mail.html || '') ?? [];
  assertStep(link !== '', 'the message has no tracked link');
  output.line(`redirected to ${await visit(env, link, { method: 'GET', status: 302 })}`);
  output.webhook(await webhooks.received('email_clicked'));

  output.step('Show the message');
  const message = await call('GET', `/web-setup/messages/${messageId}`, 200);
  output.line(`status ${message.status} after ${message.attempts} attempt`);
  output.timeline(message.timeline);
}
