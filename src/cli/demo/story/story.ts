import type { ApiScope } from '../../../accounts/keys.ts';
import { isRefusal } from '../../../core/refusal.ts';
import type { Daemon } from '../../../daemon.ts';
import type { PrivateDns } from '../world/dns.ts';
import type { Receiver } from '../world/receiver.ts';
import type { Shop } from '../world/shop.ts';
import { bounceTwice } from './bounces.ts';
import { verifyDomain } from './domain.ts';
import { sendANewsletter } from './newsletter.ts';
import { sendAnOrder } from './order.ts';
import { createCaller, expectThat, type Scene } from './scene.ts';
import { createTeller } from './teller.ts';

/**
 * The main job, told step by step as it happens: what is asked of the API, what it answers, what arrives at the
 * other end, and what the account's own program is told. Everything goes through the same HTTP interface that a
 * caller uses.
 */
export interface StoryParts {
  daemon: Daemon;
  dns: PrivateDns;
  receiver: Receiver;
  shop: Shop;
  print(text: string): void;
}

/** What there is when the story is told, to go on with. */
export interface Ending {
  accountId: string;
  keys: Record<ApiScope, string>;
  webhookId: string;
  subscriptionGroupId: string;
}

/** Plays the story; throws when a step does not go as it must. */
export async function tellStory({ daemon, dns, receiver, shop, print }: StoryParts): Promise<Ending> {
  const tell = createTeller(print);

  tell.step('An account, with a key for each purpose');
  const made = await daemon.accounts.create({
    name: 'Shop of Wonders',
    companyName: 'Shop of Wonders Ltd',
    companyAddress: { line1: '1 High Street', city: 'Sampletown', postalCode: 'AB1 2CD', country: 'GB' },
  });
  if (isRefusal(made)) throw new Error(made.message);
  const { accountId } = made.account;
  tell.line(`account ${accountId}; its keys are shown once, here and never again`);
  const call = createCaller({ apiUrl: daemon.apiUrl, accountId, keys: made.keys, tell });
  const scene: Scene = { call, tell, receiver, shop, publicUrl: daemon.publicUrl };

  const webhookId = await askToBeTold(scene);
  await verifyDomain(scene, { domains: daemon.domains, dns });
  await sendAnOrder(scene);
  const subscriptionGroupId = await sendANewsletter(scene);
  await bounceTwice(scene);
  await compare(scene);
  return { accountId, keys: made.keys, webhookId, subscriptionGroupId };
}

async function askToBeTold({ call, tell, shop }: Scene): Promise<string> {
  tell.step('The shop asks to be told of everything that happens, by webhook');
  const { webhookId, secret } = await call('POST', '/web-setup/webhooks', 201, {
    url: shop.url,
    events: ['*'],
  });
  shop.trust(secret);
  tell.line(`${shop.url} has the webhook's secret, and believes no call that is not signed with it`);
  return webhookId;
}

/** What happened against what was told. */
async function compare({ call, tell, shop }: Scene): Promise<void> {
  tell.step('What the shop knows in the end');
  const { events } = await call('GET', '/web-setup/events?limit=200', 200);
  const told = shop.known();
  const untold = events.filter(({ eventId }) => !told.has(eventId));
  expectThat(untold.length === 0, `the shop was not told of ${JSON.stringify(untold)}`);
  tell.line(`${events.length} events happened; the shop was told of each, by a call with a good signature`);
}
