import { NAMES } from '../world/names.ts';
import { expectThat, type Scene, visit } from './scene.ts';

/** Mail that nobody waits for: marketing. Only who agreed gets it, and one click ends it. */
const NEWSLETTER = {
  from: `Shop of Wonders <news@${NAMES.sender}>`,
  to: 'zoe@inbox.test',
  subject: 'Spring wonders',
  html: '<p>The flying teapots are back!</p>{{company_address_html}} {{unsubscribe_email_html}}',
};

/** Whoever tries the demo out is on the list as well, for the commands printed at its end. */
export const READER = 'you@example.com';

/** Returns the group's id. */
export async function sendANewsletter(scene: Scene): Promise<string> {
  const { call, tell, receiver, shop } = scene;

  tell.step('A newsletter needs people who agreed');
  const { group } = await call('POST', '/web-setup/contacts/subscription-groups', 201, { name: 'News' });
  const { subscriptionGroupId } = group;
  const newsletter = { ...NEWSLETTER, subscriptionGroupId };
  const early = await call('POST', '/marketing/send', 403, newsletter);
  tell.line(`nobody has agreed yet: ${early.reasonCode}. ${early.message}`);
  tell.webhook(await shop.told('email_suppressed'));
  for (const email of [NEWSLETTER.to, READER]) {
    await call('POST', '/web-setup/contacts', 201, {
      email,
      consentMethod: 'double_opt_in',
      consentDetails: 'Asked for it on the website, and confirmed by mail',
    });
    const path = `/web-setup/contacts/subscription-groups/${subscriptionGroupId}/subscriptions`;
    await call('POST', path, 201, { email });
  }
  tell.line(
    `${NEWSLETTER.to} and ${READER} asked for it and confirmed by mail: a double opt-in, kept as that`,
  );

  tell.step('A marketing mail is sent');
  await call('POST', '/marketing/send', 202, newsletter);
  const received = await receiver.next();
  tell.mail(received);
  expectThat(received.dkim.startsWith('pass'), `DKIM did not pass: ${received.dkim}`);
  tell.webhook(await shop.told('email_sent', 'email_delivered'));

  tell.step('Zoë presses "Unsubscribe" in her mail program');
  const { address, body } = oneClick(received.mail.headerLines);
  tell.line(`it sends ${body.toString()}, as it would with the https address of a server on the Internet:`);
  await visit(scene, address, { method: 'POST', body, status: 200 });
  tell.webhook(await shop.told('email_unsubscribed'));
  const late = await call('POST', '/marketing/send', 403, newsletter);
  tell.line(`sent once more, it is refused: ${late.reasonCode}. ${late.message}`);
  tell.webhook(await shop.told('email_suppressed'));
  return subscriptionGroupId;
}

/**
 * What a mail program sends, and where to (RFC 8058 §3.1). The demo's pages are http, so its mail has no
 * List-Unsubscribe-Post field.
 */
function oneClick(headers: readonly { key: string; line: string }[]): {
  address: string;
  body: URLSearchParams;
} {
  const value = (name: string) =>
    (headers.find(({ key }) => key === name)?.line ?? '').replace(/^[^:]*:/, '').replace(/\s/g, '');
  const [, address = ''] = /<(https?:[^>]+)>/.exec(value('list-unsubscribe')) ?? [];
  const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
  expectThat(address !== '', 'the mail has no button to unsubscribe');
  return { address, body };
}
