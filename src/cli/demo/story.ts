import { isRefusal } from '../../core/refusal.ts';
import type { Daemon } from '../../daemon.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import { createTeller, type Published } from './teller.ts';
import { NAMES, type PrivateDns, type ReceivedMail, type Receiver, UNKNOWN_USER } from './world.ts';

/**
 * The main job, told step by step as it happens: what is asked of the API, what it answers, and what arrives
 * at the other end. Everything goes through the same HTTP interface that a caller uses.
 */
export interface StoryParts {
  daemon: Daemon;
  dns: PrivateDns;
  receiver: Receiver;
  print(text: string): void;
}

export interface Ending {
  accountId: string;
  setupKey: string;
  transactionalKey: string;
}

const SHOP = `Shop of Wonders <orders@${NAMES.sender}>`;
const HTML = [
  '<h1>Thank you, {{name}}!</h1>',
  '<p>Your order <b>{{order}}</b> is on its way: <a href="https://shop.test/orders/{{order}}?from=mail">see where</a>.</p>',
  '<p>{{company_address_html}}<br>{{unsubscribe_email_html}}</p>',
].join('\n');

/** Plays the story; throws when a step does not go as it must. */
export async function tellStory({ daemon, dns, receiver, print }: StoryParts): Promise<Ending> {
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
  const call = createCaller(daemon.apiUrl, accountId, tell);
  const setup = made.keys.setup;

  tell.step(`The domain ${NAMES.sender} is registered`);
  const domain = await call(
    'PUT',
    '/web-setup/domains',
    setup,
    { domain: NAMES.sender, useCaseId: 'tx-local' },
    201,
  );
  tell.line(`status ${domain.status}. These six records are to be published:`);
  tell.records(domain.dnsRecords);
  const before = await call('POST', `/web-setup/domains/${domain.domainId}/verify`, setup, undefined, 200);
  tell.line(
    `verified before they are published: status ${before.status}, DKIM ${before.dkimEnabled}, SPF ${before.spfConfigured}`,
  );

  tell.step('The records are published, and verified over DNS');
  dns.publish([
    ...(await daemon.domains.zone()),
    ...publishable(domain.dnsRecords),
    ...publishable(domain.recommendedDnsRecords),
  ]);
  const after = await call('POST', `/web-setup/domains/${domain.domainId}/verify`, setup, undefined, 200);
  expectThat(after.status === 'SUCCESS', `the domain is ${after.status}: ${JSON.stringify(after.checks)}`);
  tell.line(`status ${after.status}`);

  tell.step('A transactional mail is sent');
  const mail = {
    from: SHOP,
    to: 'Zoë Müller <zoe@inbox.test>',
    subject: 'Your order {{order}} – danke, Zoë!',
    html: HTML,
    templateVariables: { name: 'Zoë', order: 'A-1001' },
    enableClickTracking: true,
  };
  const sent = await call('POST', '/transactional/send', made.keys.transactional, mail, 200);
  const received = await receiver.next();
  tell.line('and this arrived at the receiving server:');
  showMail(received, tell.line);
  expectThat(received.dkim.startsWith('pass'), `DKIM did not pass: ${received.dkim}`);

  tell.step('Zoë follows the link in it');
  await followLink(received, daemon.publicUrl, tell);

  tell.step('What is known about it');
  const message = await untilClicked(() =>
    call('GET', `/web-setup/messages/${sent.messageId}`, setup, undefined, 200),
  );
  tell.line(`status ${message.status} after ${message.attempts} attempt`);
  tell.timeline(message.timeline);

  tell.step(`A mail to ${UNKNOWN_USER}@inbox.test, whom the receiving server does not know`);
  const lost = { ...mail, to: `${UNKNOWN_USER}@inbox.test` };
  const bounced = await call('POST', '/transactional/send', made.keys.transactional, lost, 200, {
    prefer: 'wait=10',
  });
  tell.line(
    `the caller asked to wait for the outcome: ${bounced.delivery?.status}, "${bounced.delivery?.smtpReply}"`,
  );
  const again = await call('POST', '/transactional/send', made.keys.transactional, lost, 403);
  tell.line(`sent once more, it is refused at the door: ${again.reasonCode}. ${again.message}`);

  return { accountId, setupKey: setup, transactionalKey: made.keys.transactional };
}

export function showMail({ from, to, dkim, tls, mail }: ReceivedMail, line: (text: string) => void): void {
  line(`envelope     ${from} -> ${to}${tls === null ? '' : `, encrypted (${tls})`}`);
  line(`From         ${mail.from?.text ?? ''}`);
  line(`Subject      ${mail.subject ?? ''}`);
  line(`DKIM         ${dkim}`);
  line(`Text         ${(mail.text ?? '').replace(/\s+/g, ' ').slice(0, 160)}`);
}

/** What the story reads of the API's answers. */
interface Data {
  status: string;
  message: string;
  domainId: string;
  messageId: string;
  reasonCode: string;
  attempts: number;
  dkimEnabled: boolean;
  spfConfigured: boolean;
  checks: unknown;
  delivery?: { status: string; smtpReply: string };
  dnsRecords: Published[];
  recommendedDnsRecords: Published[];
  timeline: Record<string, unknown>[];
}

type Call = (
  method: string,
  path: string,
  key: string,
  body: object | undefined,
  status: number,
  headers?: Record<string, string>,
) => Promise<Data>;

function createCaller(apiUrl: string, accountId: string, tell: { line(text: string): void }): Call {
  return async (method, path, key, body, status, headers = {}) => {
    const response = await fetch(apiUrl + path, {
      method,
      headers: { 'x-api-key': key, 'x-id': accountId, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { data?: Data; message?: string } & Data;
    tell.line(`${method} ${path} -> ${response.status}`);
    expectThat(
      response.status === status,
      `${method} ${path} answered ${response.status} ${answer.message ?? ''}`,
    );
    return answer.data ?? answer;
  };
}

function publishable(records: readonly Published[]): ZoneRecord[] {
  return records
    .filter(({ value }) => value !== 'Creation in progress')
    .map((record) => ({ ...record, type: record.type as ZoneRecord['type'], ttl: record.ttl ?? 60 }));
}

const PATIENCE_MS = 10_000;

async function untilClicked(read: () => Promise<Data>): Promise<Data> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const message = await read();
    const clicked = message.timeline.some(({ event }) => event === 'email_clicked');
    if ((message.status === 'delivered' && clicked) || Date.now() > deadline) return message;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** As her browser would: the host of the link exists in the demo's private DNS alone, so it is looked up by hand. */
async function followLink(
  { mail }: ReceivedMail,
  publicUrl: string,
  tell: { line(text: string): void },
): Promise<void> {
  const [link = ''] = /http:[^"]+\/c\/[^"]+/.exec(mail.html || '') ?? [];
  expectThat(link !== '', 'the mail has no tracked link');
  const answer = await fetch(publicUrl + new URL(link).pathname, {
    redirect: 'manual',
    headers: { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' },
  });
  tell.line(`GET ${link.slice(0, 60)}… -> ${answer.status} ${answer.headers.get('location') ?? ''}`);
  expectThat(answer.status === 302, `the link answered ${answer.status}`);
}

function expectThat(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
