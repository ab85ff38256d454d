import { assertStep, type DemoEnv, visit } from '../client.ts';
import { NAMES } from '../servers/names.ts';

/** A marketing message, which requires consent; the recipient withdraws it with one click. */
const NEWSLETTER = {
  from: `Shop of Wonders <news@${NAMES.sender}>`,
  to: 'zoe@inbox.test',
  subject: 'Spring wonders',
  html: '<p>The flying teapots are back!</p>{{company_address_html}} {{unsubscribe_email_html}}',
};

/** A second subscriber, for the printed commands. */
export const READER = 'you@example.com';

/** Sends a newsletter and unsubscribes from it; returns the id of the group. */
export async function sendNewsletter(env: DemoEnv): Promise<string> {
  const { call, output, receiver, webhooks } = env;

  output.step('Create a subscription group with consent');
  const { group } = await call('POST', '/web-setup/contacts/subscription-groups', 201, { name: 'News' });
  const { subscriptionGroupId } = group;
  const newsletter = { ...NEWSLETTER, subscriptionGroupId };
  const early = await call('POST', '/marketing/send', 403, newsletter);
  output.line(`without consent: ${early.reasonCode}. ${early.message}`);
  output.webhook(await webhooks.received('email_suppressed'));
  for (const email of [NEWSLETTER.to, READER]) {
    await call('POST', '/web-setup/contacts', 201, {
      email,
      consentMethod: 'double_opt_in',
      consentDetails: 'Subscribed on the website and confirmed by email',
    });
    const path = `/web-setup/contacts/subscription-groups/${subscriptionGroupId}/subscriptions`;
    await call('POST', path, 201, { email });
  }
  output.line(`${NEWSLETTER.to} and ${READER} subscribed and confirmed by email (double opt-in)`);

  output.step('Send a marketing message');
  await call('POST', '/marketing/send', 202, newsletter);
  const received = await receiver.next();
  output.mail(received);
  assertStep(received.dkim.startsWith('pass'), `DKIM did not pass: ${received.dkim}`);
  output.webhook(await webhooks.received('email_sent', 'email_delivered'));

  output.step('Unsubscribe with one click');
  const { address, body } = oneClick(received.mail.headerLines);
  output.line(`the mail client sends ${body.toString()}:`);
  await visit(env, address, { method: 'POST', body, status: 200 });
  output.webhook(await webhooks.received('email_unsubscribed'));
  const late = await call('POST', '/marketing/send', 403, newsletter);
  output.line(`the next newsletter is refused: ${late.reasonCode}. ${late.message}`);
  output.webhook(await webhooks.received('email_suppressed'));
  return subscriptionGroupId;
}

/**
 * The one-click request of a mail client (RFC 8058 §3.1). The demo's pages use http, so the message has no
 * List-Unsubscribe-Post field.
 */
function oneClick(headers: readonly { key: string; line: string }[]): {
  address: string;
  body: URLSearchParams;
} {
  const value = (name: string) =>
    (headers.find(({ key }) => key === name)?.line ?? '').replace(/^[^:]*:/, '').replace(/\s/g, '');
  // Not linear: the field is of a message that the demo has sent.
  const [, address = ''] = /<(https?:[^>]+)>/.exec(value('list-unsubscribe')) ?? [];
  const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
  assertStep(address !== '', 'the message has no List-Unsubscribe link');
  return { address, body };
}
