import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ParsedMail } from 'mailparser';
import { loadConfig } from '../../config/load.ts';
import { monotonicClock, systemClock } from '../../core/clock.ts';
import { createLog } from '../../core/log.ts';
import { systemRandom } from '../../core/random.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { type Daemon, startDaemon } from '../../daemon.ts';
import { createResolver } from '../../dns/resolver.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import { linkAddress } from '../../people/links.ts';
import { portState } from '../init/detect.ts';
import { stopSignal } from '../signals.ts';
import {
  type DeliveredMail,
  NAMES,
  type ReceivedCall,
  startPrivateDns,
  startReceiver,
  startWebhookReceiver,
  UNKNOWN_USER,
} from './servers.ts';

/* The main flow, step by step. All requests use the public HTTP interface, as any client does. */

const READER = 'zoe@inbox.test';

/** A transactional message. */
const ORDER = {
  from: `Shop of Wonders <orders@${NAMES.sender}>`,
  to: `Zoë Müller <${READER}>`,
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
  to: READER,
  subject: 'Spring wonders',
  templateVariables: { firstName: 'Zoë' },
};

/** A DNS record of an API response. */
interface DnsRecord extends Omit<ZoneRecord, 'ttl'> {
  ttl?: number;
}

/** Fields of API responses that the demo reads. */
interface Data {
  status: string;
  message: string;
  reasonCode: string;
  attempts: number;
  checks: unknown;
  secret: string;
  domainId: string;
  messageId: string;
  webhookId: string;
  group: { subscriptionGroupId: string };
  delivery?: { status: string; smtpReply: string };
  dnsRecords: DnsRecord[];
  recommendedDnsRecords: DnsRecord[];
  events: { eventId: string }[];
  starters: { starterId: string; name: string; design: object }[];
  template: { templateId: string };
}

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const MAX_PRINTED_URL = 60;

type DemoServers = Awaited<ReturnType<typeof startServers>>;

/**
 * Starts the servers and the daemon, whose API has any free port if `port` is in use. `cleanup` receives the functions that
 * close them.
 */
async function startServers(port: number, cleanup: (() => Promise<unknown> | void)[]) {
  const dataDir = mkdtempSync(join(tmpdir(), 'postrider-demo-'));
  cleanup.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const dns = await startPrivateDns();
  cleanup.push(dns.close);
  const resolvers = [dns.address];
  const options = { timeoutMs: 2000, monotonic: monotonicClock, random: systemRandom };
  const resolver = createResolver({ resolvers, ...options });
  cleanup.push(resolver.close);
  const receiver = await startReceiver(resolver);
  cleanup.push(receiver.close);
  const webhooks = await startWebhookReceiver();
  cleanup.push(webhooks.close);
  const apiPort = (await portState('127.0.0.1', port)) === 'free' ? port : 0;
  const env = {
    POSTRIDER_HOSTNAME: NAMES.platform,
    POSTRIDER_DATA__DIR: dataDir,
    POSTRIDER_PUBLIC__LISTEN: '127.0.0.1:0',
    POSTRIDER_CONSOLE__LISTEN: '127.0.0.1:0',
    POSTRIDER_DNS__RESOLVERS: JSON.stringify(resolvers),
    POSTRIDER_MX__LISTEN: '127.0.0.1:0',
    POSTRIDER_DELIVERY__PORT: String(receiver.port),
    POSTRIDER_DELIVERY__ALLOWPRIVATENETWORKS: 'true',
    POSTRIDER_WEBHOOKS__ALLOWPRIVATENETWORKS: 'true',
    POSTRIDER_LIMITS__FREEDISKBYTES: '0',
    POSTRIDER_API__LISTEN: `127.0.0.1:${apiPort}`,
  };
  const log = createLog({ level: 'warn', hashAddresses: false });
  // Reads no configuration file.
  const config = loadConfig({ file: null, env });
  const daemon = await startDaemon(config, { clock: systemClock, random: systemRandom, log });
  cleanup.push(daemon.stop);
  return { daemon, dns, receiver, webhooks };
}

/** Runs the main flow on servers of this process, then the daemon until a signal, unless `exit`. Prints each step. */
export async function runDemo(
  options: { port: number; exit: boolean },
  print: (text: string) => void,
): Promise<void> {
  /** Called in reverse order. */
  const cleanup: (() => Promise<unknown> | void)[] = [];
  const stopped = stopSignal();
  try {
    const servers = await startServers(options.port, cleanup);
    print('Postrider: the main flow from end to end, on this machine only.');
    let isStopped = false;
    const steps = runSteps(servers, (text) => {
      if (!isStopped) print(text);
    });
    const commands = await Promise.race([steps, stopped.then(() => null)]);
    if (commands === null) {
      isStopped = true;
      // The step in progress fails when the servers close.
      steps.catch(() => {});
      print('\nStopped.');
      return;
    }
    print('\nAll steps succeeded.');
    if (options.exit) return;
    print(await consoleAddress(servers.daemon));
    print(commands);
    servers.receiver.onMail((mail) => print(['\nA message arrived:', ...mailLines(mail)].join('\n   ')));
    servers.webhooks.onCall((call) => print(`   ${callLine([call])}`));
    await stopped;
    print('\nStopped.');
  } finally {
    for (const close of cleanup.toReversed()) await close();
  }
}

/** Runs all steps; throws if one fails. Resolves with commands for the reader to try. */
async function runSteps(
  { daemon, dns, receiver, webhooks }: DemoServers,
  print: (text: string) => void,
): Promise<string> {
  let steps = 0;
  const step = (title: string) => print(`\n${++steps}. ${title}`);
  const line = (text: string) => print(`   ${text}`);
  /** Waits for the calls of these types, in any order. */
  async function showCalls(...types: string[]): Promise<void> {
    const calls: ReceivedCall[] = [];
    while (calls.length < types.length) calls.push(await webhooks.next());
    const received = calls.map(({ type }) => type).toSorted();
    assert(isDeepStrictEqual(received, types.toSorted()), `unexpected webhook calls: ${received.join(', ')}`);
    line(callLine(calls));
  }

  step('Create an account with a key for each purpose');
  const { keys, account } = accepted(
    await daemon.accounts.create({
      name: 'Shop of Wonders',
      companyName: 'Shop of Wonders Ltd',
      companyAddress: { line1: '1 High Street', city: 'Sampletown', postalCode: 'AB1 2CD', country: 'GB' },
    }),
  );
  const { accountId } = account;
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

  async function showMail(): Promise<ParsedMail> {
    const received = await receiver.next();
    mailLines(received).forEach(line);
    assert(received.dkim.startsWith('pass'), `DKIM did not pass: ${received.dkim}`);
    await showCalls('email_sent', 'email_delivered');
    return received.mail;
  }

  step('Create a webhook for all events');
  const { webhookId, secret } = await call('POST', '/web-setup/webhooks', 201, {
    url: webhooks.url,
    events: ['*'],
  });
  webhooks.trust(secret);
  line(`${webhooks.url} accepts only calls that are signed with the webhook's secret`);

  step(`Add the domain ${NAMES.sender} for transactional and marketing mail`);
  const domains = [];
  for (const useCaseId of ['tx-local', 'mk-local'])
    domains.push(await call('PUT', '/web-setup/domains', 201, { domain: NAMES.sender, useCaseId }));
  const required = domains.flatMap(({ dnsRecords }) => dnsRecords);
  const records = new Map(required.map((record) => [`${record.type.padEnd(5)} ${record.name}`, record]));
  line('Records to publish; each stream has its own keys:');
  for (const [title, { value, priority = '' }] of records) {
    line(`  ${title}`);
    line(`        ${shorten(`${priority} ${value}`.trim())}`);
  }

  step('Publish and verify the records');
  dns.publish(await daemon.domains.zone());
  const recommended = domains.flatMap(({ recommendedDnsRecords }) => recommendedDnsRecords);
  for (const record of [...records.values(), ...recommended])
    if (record.value !== 'Creation in progress') dns.publish([{ ...record, ttl: record.ttl ?? 60 }]);
  for (const { domainId } of domains) {
    const { status, checks } = await call('POST', `/web-setup/domains/${domainId}/verify`, 200);
    line(`status ${status}`);
    assert(status === 'SUCCESS', `the domain is ${status}: ${JSON.stringify(checks)}`);
  }
  await showCalls('domain_verified', 'domain_verified');

  step('Send a transactional message');
  const { messageId } = await call('POST', '/transactional/send', 200, ORDER);
  const { html } = await showMail();

  step('Follow the link');
  // Not linear: the text is of a message that the demo has sent.
  const [link = ''] = /http:[^"]+\/c\/[^"]+/.exec(html || '') ?? [];
  assert(link !== '', 'the message has no tracked link');
  line(`redirected to ${await visit('GET', link, 302)}`);
  await showCalls('email_clicked');
  const { status, attempts } = await call('GET', `/web-setup/messages/${messageId}`, 200);
  line(`status ${status} after ${attempts} attempt`);

  step('Create a subscription group with consent');
  const groups = '/web-setup/contacts/subscription-groups';
  const { subscriptionGroupId } = (await call('POST', groups, 201, { name: 'News' })).group;
  const { starters } = await call('GET', '/web-setup/templates/starters', 200);
  const { name, design } = starters.find(({ starterId }) => starterId === 'newsletter') ?? {};
  const { templateId } = (await call('POST', '/web-setup/templates', 201, { name, design })).template;
  const newsletter = { ...NEWSLETTER, templateId, subscriptionGroupId };
  const early = await call('POST', '/marketing/send', 403, newsletter);
  line(`without consent: ${early.reasonCode}. ${early.message}`);
  await showCalls('email_suppressed');
  await call('POST', '/web-setup/contacts', 201, {
    email: READER,
    consentMethod: 'double_opt_in',
    consentDetails: 'Subscribed on the website and confirmed by email',
  });
  await call('POST', `${groups}/${subscriptionGroupId}/subscriptions`, 201, { email: READER });
  line(`${READER} subscribed and confirmed by email (double opt-in)`);

  step('Send a marketing message');
  await call('POST', '/marketing/send', 202, newsletter);
  const { headerLines } = await showMail();

  step('Unsubscribe with one click');
  // RFC 8058 §3.1. The demo's pages use http, so the message has no List-Unsubscribe-Post field.
  const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
  const { line: field = '' } = headerLines.find(({ key }) => key === 'list-unsubscribe') ?? {};
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

  step('Compare events and webhook calls');
  const { events } = await call('GET', '/web-setup/events?limit=200', 200);
  const missing = events.filter(({ eventId }) => !webhooks.eventIds().has(eventId));
  assert(missing.length === 0, `no webhook call for ${JSON.stringify(missing)}`);
  line(`${events.length} events, each with a webhook call with a valid signature`);

  return `
The daemon keeps running at ${daemon.apiUrl}; its documentation is at ${daemon.apiUrl}/docs.
Paste these commands into another terminal; messages and webhook calls that arrive are printed here:

  export BASE=${daemon.apiUrl} ID=${accountId} KEY=${keys.setup}

  curl -s $BASE/transactional/send -H "X-Api-Key: ${keys.transactional}" -H "X-Id: $ID" \\
    -H 'Content-Type: application/json' -d '{
      "from": "orders@${NAMES.sender}", "to": "you@example.com", "subject": "Hello",
      "html": "<p>Hello!</p>{{company_address_html}} {{unsubscribe_email_html}}" }'

  curl -s $BASE/web-setup/messages -H "X-Api-Key: $KEY" -H "X-Id: $ID"
  curl -s $BASE/web-setup/webhooks/${webhookId}/deliveries -H "X-Api-Key: $KEY" -H "X-Id: $ID"

Messages to any address arrive here; ${UNKNOWN_USER}@… bounces. The simulator addresses, such as
bounced@simulator.${NAMES.platform}, produce other results. Press Ctrl-C to end the demo.`;
}

/** The address of the console, with a link that signs in an operator; '' if it does not run. */
async function consoleAddress({ consoleUrl, people }: Daemon): Promise<string> {
  if (consoleUrl === null) return '';
  const operator = { email: 'you@inbox.test', name: 'Operator' };
  const { link } = accepted(await people.createOperator(operator));
  return `
The console is at ${consoleUrl}/console/. This link signs in once, within 15 minutes:

  ${linkAddress(consoleUrl, link)}`;
}

function accepted<Result>(result: Result | Refusal): Result {
  if (isRefusal(result)) throw new Error(result.message);
  return result;
}

/** Ends the demo if a step fails. */
function assert(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}

function mailLines({ envelope, dkim, tls, mail }: DeliveredMail): string[] {
  return [
    `envelope     ${envelope.from} -> ${envelope.to}${tls === null ? '' : `, encrypted (${tls})`}`,
    `From         ${mail.from?.text ?? ''}`,
    `Subject      ${mail.subject ?? ''}`,
    `DKIM         ${dkim}`,
    `Text         ${shorten((mail.text ?? '').replace(/\s+/g, ' '))}`,
  ];
}

/** Webhook calls, with the recipients or domains they concern. */
function callLine(calls: readonly ReceivedCall[]): string {
  const subjects = new Set(calls.map(({ data: { object } }) => object.recipient ?? object.domain));
  return `webhook calls: ${calls.map(({ type }) => type).join(', ')} (${[...subjects].join(', ')})`;
}

const WIDTH = 76;

function shorten(text: string): string {
  return text.length <= WIDTH ? text : `${text.slice(0, WIDTH - 1)}…`;
}
