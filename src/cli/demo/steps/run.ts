import type { AccountScope } from '../../../accounts/keys.ts';
import { isRefusal } from '../../../core/refusal.ts';
import type { Daemon } from '../../../daemon.ts';
import { assertStep, createClient, type DemoEnv } from '../client.ts';
import { createOutput } from '../output.ts';
import type { PrivateDns } from '../servers/dns.ts';
import type { Receiver } from '../servers/receiver.ts';
import type { WebhookReceiver } from '../servers/webhook-receiver.ts';
import { sendBounces } from './bounces.ts';
import { verifyDomain } from './domain.ts';
import { sendNewsletter } from './newsletter.ts';
import { sendOrder } from './order.ts';

/*
 * The main flow, step by step: requests to the API, its responses, the messages that the receiving server accepts, and the
 * webhook calls that the account's application receives. All requests use the public HTTP interface.
 */

export interface DemoDeps {
  daemon: Daemon;
  dns: PrivateDns;
  receiver: Receiver;
  webhooks: WebhookReceiver;
  print(text: string): void;
}

/** Objects that the demo created, for the printed commands. */
export interface DemoResult {
  accountId: string;
  keys: Record<AccountScope, string>;
  webhookId: string;
  subscriptionGroupId: string;
}

/** Runs all steps; throws if one fails. */
export async function runSteps({ daemon, dns, receiver, webhooks, print }: DemoDeps): Promise<DemoResult> {
  const output = createOutput(print);

  output.step('Create an account with a key for each purpose');
  const created = await daemon.accounts.create({
    name: 'Shop of Wonders',
    companyName: 'Shop of Wonders Ltd',
    companyAddress: { line1: '1 High Street', city: 'Sampletown', postalCode: 'AB1 2CD', country: 'GB' },
  });
  if (isRefusal(created)) throw new Error(created.message);
  const { accountId } = created.account;
  output.line(`account ${accountId}; its keys are shown only once`);
  const call = createClient({ apiUrl: daemon.apiUrl, accountId, keys: created.keys, output });
  const env: DemoEnv = { call, output, receiver, webhooks, publicUrl: daemon.publicUrl };

  const webhookId = await createWebhook(env);
  await verifyDomain(env, { domains: daemon.domains, dns });
  await sendOrder(env);
  const subscriptionGroupId = await sendNewsletter(env);
  await sendBounces(env);
  await compareEvents(env);
  return { accountId, keys: created.keys, webhookId, subscriptionGroupId };
}

async function createWebhook({ call, output, webhooks }: DemoEnv): Promise<string> {
  output.step('Create a webhook for all events');
  const { webhookId, secret } = await call('POST', '/web-setup/webhooks', 201, {
    url: webhooks.url,
    events: ['*'],
  });
  webhooks.trust(secret);
  output.line(`${webhooks.url} accepts only calls that are signed with the webhook's secret`);
  return webhookId;
}

/** Compares the event feed with the received webhook calls. */
async function compareEvents({ call, output, webhooks }: DemoEnv): Promise<void> {
  output.step('Compare events and webhook calls');
  const { events } = await call('GET', '/web-setup/events?limit=200', 200);
  const received = webhooks.eventIds();
  const missing = events.filter(({ eventId }) => !received.has(eventId));
  assertStep(missing.length === 0, `no webhook call for ${JSON.stringify(missing)}`);
  output.line(`${events.length} events, each with a webhook call with a valid signature`);
}
