import { isRefusal } from '../../core/refusal.ts';
import type { Daemon } from '../../daemon.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import {
  type DeliveredMail,
  GONE_USER,
  NAMES,
  type PrivateDns,
  type ReceivedCall,
  type Receiver,
  UNKNOWN_USER,
  type WebhookReceiver,
} from './servers.ts';

/*
 * The main flow, step by step: requests to the API, its responses, the messages that the receiving server accepts, and the
 * webhook calls that the account's application receives. All requests use the public HTTP interface, as any client does.
 */

/** A transactional message. */
const ORDER = {
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

/** A marketing message, which requires consent; the recipient withdraws it with one click. */
const NEWSLETTER = {
  from: `Shop of Wonders <news@${NAMES.sender}>`,
  to: 'zoe@inbox.test',
  subject: 'Spring wonders',
  html: '<p>The flying teapots are back!</p>{{company_address_html}} {{unsubscribe_email_html}}',
};

/** A second subscriber, for the printed commands. */
export const READER = 'you@example.com';

/** A DNS record of an API response. */
interface DnsRecord {
  type: ZoneRecord['type'];
  name: string;
  value: string;
  ttl?: number;
  priority?: number;
}

/** Fields of API responses that the demo reads. */
interface Data {
  status: string;
  message: string;
  reasonCode: string;
  attempts: number;
  dkimEnabled: boolean;
  spfConfigured: boolean;
  checks: unknown;
  secret: string;
  domainId: string;
  messageId: string;
  webhookId: string;
  group: { subscriptionGroupId: string };
  delivery?: { status: string; smtpReply: string };
  dnsRecords: DnsRecord[];
  recommendedDnsRecords: DnsRecord[];
  timeline: Record<string, unknown>[];
  events: { eventId: string }[];
}

export interface DemoServers {
  daemon: Daemon;
  dns: PrivateDns;
  receiver: Receiver;
  webhooks: WebhookReceiver;
}

/** Objects that the demo created, for the printed commands. */
export type DemoResult = Awaited<ReturnType<typeof runSteps>>;

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const MAX_PRINTED_URL = 60;

/** Runs all steps; throws if one fails. */
export async function runSteps(
  { daemon, dns, receiver, webhooks }: DemoServers,
  print: (text: string) => void,
) {
  const { step, line, lines } = createOutput(print);
  const showCalls = async (...types: string[]) => lines(callLines(await webhooks.received(...types)));

  step('Create an account with a key for each purpose');
  const created = await daemon.accounts.create({
    name: 'Shop of Wonders',
    companyName: 'Shop of Wonders Ltd',
    companyAddress: { line1: '1 High Street', city: 'Sampletown', postalCode: 'AB1 2CD', country: 'GB' },
  });
  if (isRefusal(created)) throw new Error(created.message);
  const { keys } = created;
  const { accountId } = created.account;
  line(`account ${accountId}; its keys are shown only once`);

  /** Calls the API with the key for the path; returns `data`, or the body of an expected error. */
  async function call(
    method: string,
    path: string,
    status: number,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<Data> {
    const [, purpose = ''] = path.split('/');
    const key = purpose === 'transactional' || purpose === 'marketing' ? keys[purpose] : keys.setup;
    const response = await fetch(daemon.apiUrl + path, {
      method,
      headers: { 'x-api-key': key, 'x-id': accountId, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const result = (await response.json()) as { data?: Data } & Data;
    // Without the unique part of ids.
    line(`${method} ${path.replaceAll(/_\d{13}_[0-9a-z]{12}/g, '_…')} -> ${response.status}`);
    assert(
      response.status === status,
      `${method} ${path} returned status ${response.status} ${result.message ?? ''}`,
    );
    return result.data ?? result;
  }

  /** Requests a public page, as a browser or mail client; returns the target of a redirect. Its host is in the private DNS only. */
  async function visit(method: string, address: string, status: number, body?: URLSearchParams) {
    const response = await fetch(daemon.publicUrl + new URL(address).pathname, {
      method,
      redirect: 'manual',
      headers: { 'user-agent': BROWSER },
      ...(body === undefined ? {} : { body }),
    });
    line(`${method} ${address.slice(0, MAX_PRINTED_URL)}… -> ${response.status}`);
    assert(response.status === status, `${address} returned status ${response.status}`);
    return response.headers.get('location') ?? '';
  }

  async function showMail(): Promise<DeliveredMail> {
    const received = await receiver.next();
    lines(mailLines(received));
    assert(received.dkim.startsWith('pass'), `DKIM did not pass: ${received.dkim}`);
    return received;
  }

  step('Create a webhook for all events');
  const { webhookId, secret } = await call('POST', '/web-setup/webhooks', 201, {
    url: webhooks.url,
    events: ['*'],
  });
  webhooks.trust(secret);
  line(`${webhooks.url} accepts only calls that are signed with the webhook's secret`);

  step(`Add the domain ${NAMES.sender} for transactional and marketing mail`);
  const register = (useCaseId: string) =>
    call('PUT', '/web-setup/domains', 201, { domain: NAMES.sender, useCaseId });
  const verify = (domainId: string) => call('POST', `/web-setup/domains/${domainId}/verify`, 200);
  const both = [await register('tx-local'), await register('mk-local')] as const;
  const records = [
    ...new Map(
      both.flatMap(({ dnsRecords }) => dnsRecords).map((record) => [`${record.type} ${record.name}`, record]),
    ).values(),
  ];
  line('Records to publish; each stream has its own keys:');
  for (const { type, name, value, priority } of records)
    lines([
      `  ${type.padEnd(5)} ${name}`,
      `        ${shorten(priority === undefined ? value : `${priority} ${value}`)}`,
    ]);
  const before = await verify(both[0].domainId);
  line(
    `verified before publication: status ${before.status}, DKIM ${before.dkimEnabled}, SPF ${before.spfConfigured}`,
  );

  step('Publish and verify the records');
  dns.publish(await daemon.domains.zone());
  for (const record of [...records, ...both.flatMap((domain) => domain.recommendedDnsRecords)])
    if (record.value !== 'Creation in progress') dns.publish([{ ...record, ttl: record.ttl ?? 60 }]);
  for (const { domainId } of both) {
    const { status, checks } = await verify(domainId);
    line(`status ${status}`);
    assert(status === 'SUCCESS', `the domain is ${status}: ${JSON.stringify(checks)}`);
  }
  await showCalls('domain_verified', 'domain_verified');

  step('Send a transactional message');
  const order = await call('POST', '/transactional/send', 200, ORDER);
  line('received:');
  const { mail } = await showMail();
  await showCalls('email_sent', 'email_delivered');

  step('Follow the link');
  // Not linear: the text is of a message that the demo has sent.
  const [link = ''] = /http:[^"]+\/c\/[^"]+/.exec(mail.html || '') ?? [];
  assert(link !== '', 'the message has no tracked link');
  line(`redirected to ${await visit('GET', link, 302)}`);
  await showCalls('email_clicked');

  step('Show the message');
  const message = await call('GET', `/web-setup/messages/${order.messageId}`, 200);
  line(`status ${message.status} after ${message.attempts} attempt`);
  lines(message.timeline.map((entry) => `  ${String(entry['timestamp']).slice(11, 23)}  ${describe(entry)}`));

  step('Create a subscription group with consent');
  const groups = '/web-setup/contacts/subscription-groups';
  const { subscriptionGroupId } = (await call('POST', groups, 201, { name: 'News' })).group;
  const newsletter = { ...NEWSLETTER, subscriptionGroupId };
  const early = await call('POST', '/marketing/send', 403, newsletter);
  line(`without consent: ${early.reasonCode}. ${early.message}`);
  await showCalls('email_suppressed');
  for (const email of [NEWSLETTER.to, READER]) {
    await call('POST', '/web-setup/contacts', 201, {
      email,
      consentMethod: 'double_opt_in',
      consentDetails: 'Subscribed on the website and confirmed by email',
    });
    await call('POST', `${groups}/${subscriptionGroupId}/subscriptions`, 201, { email });
  }
  line(`${NEWSLETTER.to} and ${READER} subscribed and confirmed by email (double opt-in)`);

  step('Send a marketing message');
  await call('POST', '/marketing/send', 202, newsletter);
  const { mail: news } = await showMail();
  await showCalls('email_sent', 'email_delivered');

  step('Unsubscribe with one click');
  // RFC 8058 §3.1. The demo's pages use http, so the message has no List-Unsubscribe-Post field.
  const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
  const field = news.headerLines.find(({ key }) => key === 'list-unsubscribe')?.line ?? '';
  // Not linear: the field is of a message that the demo has sent.
  const [, address = ''] = /<(https?:[^>]+)>/.exec(field.replaceAll(/\s/g, '')) ?? [];
  assert(address !== '', 'the message has no List-Unsubscribe link');
  line(`the mail client sends ${body.toString()}:`);
  await visit('POST', address, 200, body);
  await showCalls('email_unsubscribed');
  const late = await call('POST', '/marketing/send', 403, newsletter);
  line(`the next newsletter is refused: ${late.reasonCode}. ${late.message}`);
  await showCalls('email_suppressed');

  const unknown = { ...ORDER, to: `${UNKNOWN_USER}@inbox.test` };
  step(`Send to ${unknown.to}, an unknown user`);
  const { delivery } = await call('POST', '/transactional/send', 200, unknown, { prefer: 'wait=10' });
  line(`with Prefer: wait the response has the result: ${delivery?.status}, "${delivery?.smtpReply}"`);
  await showCalls('email_sent', 'email_bounced');
  const again = await call('POST', '/transactional/send', 403, unknown);
  line(`the next message to this address is refused: ${again.reasonCode}. ${again.message}`);
  await showCalls('email_suppressed');

  const gone = { ...ORDER, to: `${GONE_USER}@inbox.test` };
  step(`Send to ${gone.to}, accepted first and bounced later`);
  const { messageId } = await call('POST', '/transactional/send', 200, gone);
  const { from } = await receiver.next();
  line(`the bounce arrives at the return path of the message, ${from}`);
  await showCalls('email_sent', 'email_delivered', 'email_bounced');
  line(`status ${(await call('GET', `/web-setup/messages/${messageId}`, 200)).status}`);

  step('Compare events and webhook calls');
  const { events } = await call('GET', '/web-setup/events?limit=200', 200);
  const missing = events.filter(({ eventId }) => !webhooks.eventIds().has(eventId));
  assert(missing.length === 0, `no webhook call for ${JSON.stringify(missing)}`);
  line(`${events.length} events, each with a webhook call with a valid signature`);
  return { accountId, keys, webhookId, subscriptionGroupId };
}

/** Ends the demo if a step fails. */
function assert(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}

/** Numbers steps from 1, and indents everything else by three spaces. */
export function createOutput(print: (text: string) => void) {
  let steps = 0;
  const line = (text: string) => print(`   ${text}`);
  return {
    step: (title: string) => print(`\n${++steps}. ${title}`),
    line,
    lines: (texts: readonly string[]) => {
      for (const text of texts) line(text);
    },
  };
}

export function mailLines({ from, to, dkim, tls, mail }: DeliveredMail): string[] {
  return [
    `envelope     ${from} -> ${to}${tls === null ? '' : `, encrypted (${tls})`}`,
    `From         ${mail.from?.text ?? ''}`,
    `Subject      ${mail.subject ?? ''}`,
    `DKIM         ${dkim}`,
    `Text         ${shorten((mail.text ?? '').replace(/\s+/g, ' '))}`,
  ];
}

/** Webhook calls in order of arrival, with the recipients or domains they concern. */
export function callLines(calls: readonly ReceivedCall[]): string[] {
  const subjects = new Set(calls.map(({ data: { object } }) => object.recipient ?? object.domain));
  return [`webhook calls: ${calls.map(({ type }) => type).join(', ')} (${[...subjects].join(', ')})`];
}

function describe(entry: Record<string, unknown>): string {
  if (entry['type'] === 'event') return String(entry['event']);
  const sessions = entry['sessions'] as {
    host: string;
    address: string;
    reply: { code: number; text: string } | null;
    tls: { protocol: string } | null;
  }[];
  const last = sessions.at(-1);
  if (last === undefined) return 'attempt';
  const how = last.tls === null ? 'in plain text' : last.tls.protocol;
  return shorten(
    `SMTP to ${last.host} [${last.address}], ${how}: ${last.reply?.code ?? ''} ${last.reply?.text ?? 'no reply'}`,
  );
}

const WIDTH = 76;

function shorten(text: string): string {
  return text.length <= WIDTH ? text : `${text.slice(0, WIDTH - 1)}…`;
}
