import { expect } from 'vitest';
import type { ApiAnswer, ApiClient, CreatedDomain } from './api-client.ts';
import { HOSTNAME, type RunningDaemon, startDaemon } from './daemon.ts';
import { type DnsServer, startDnsServer } from './dns-server.ts';
import { eventually } from './eventually.ts';
import { publishMailHost } from './recipients.ts';
import { type Sink, startSink } from './smtp-sink.ts';
import { verifiedDomain } from './verified-domain.ts';

/**
 * A world in which everything could be stored or sent, for tests in which nothing may be: two accounts with
 * verified domains, one that never said who it is, and a willing sink.
 */
export interface TemptingWorld {
  daemon: RunningDaemon;
  /** kunde.example for transactional mail, werbung.example for marketing, neu.example not verified. */
  api: ApiClient;
  own: CreatedDomain;
  /** Another account, with nachbar.example, a group and a message of its own. */
  neighbour: { api: ApiClient; domain: CreatedDomain; groupId: string; messageId: string };
  /** Without a company's name and address, with niemand.example. */
  nameless: ApiClient;
  /** Fails when anything was stored since the start, or sent, or looked up in order to send. */
  expectNoTrace(): Promise<void>;
  stop(): Promise<void>;
}

export const VALIDATION = [400, 'VALIDATION_ERROR'] as const;

export const COMPLIANT = '<p>Hello.</p>{{company_address_html}}{{unsubscribe_email_html}}';

/** Takes everything, and sends it nowhere. */
export const SIMULATED = `delivered@simulator.${HOSTNAME}`;

/** A send with which nothing is wrong, and what is to be changed of it. */
export function mail(change: object = {}): Record<string, unknown> {
  return { to: 'ada@empfang.example', from: 'a@kunde.example', subject: 'Hello', html: COMPLIANT, ...change };
}

/** What every refusal has, whatever it is about; `field` is among the fields of its details. */
export function expectRefusal(
  answer: ApiAnswer<unknown>,
  status: number,
  code: string,
  field?: string,
): void {
  expect([answer.status, answer.error.code]).toEqual([status, code]);
  const body: { message: string; reasonCode: string; requestId: string } = JSON.parse(answer.text);
  expect(body).toMatchObject({ reasonCode: code, message: answer.error.message });
  expect(body.requestId).toBe(answer.headers.get('X-Request-Id'));
  expect(answer.headers.get('Cache-Control')).toBe('no-store');
  // Never a stack, SQL or a path of the server.
  expect(answer.text).not.toMatch(/SQLITE|node_modules|\bat \S+ \(|\/dist\/|file:\/\//);
  if (field !== undefined) expect(answer.error.details?.map((detail) => detail.field)).toContain(field);
}

export async function startTemptingWorld(): Promise<TemptingWorld> {
  const dns = await startDnsServer();
  const sink = await startSink();
  const daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
  });
  publishMailHost(dns, 'empfang.example');
  const { api } = daemon;
  const own = await verifiedDomain(daemon, dns, 'kunde.example');
  await verifiedDomain(daemon, dns, 'werbung.example', { useCaseId: 'mk-local' });
  await api.put('/web-setup/domains', { domain: 'neu.example', useCaseId: 'tx-local' });
  const neighbour = await makeNeighbour(daemon, dns);
  const nameless = await daemon.account('Niemand', { company: false });
  await verifiedDomain(daemon, dns, 'niemand.example', { api: nameless });

  const clients = [api, neighbour.api, nameless];
  const before = await eventually('all to be settled', () => settledState(clients));
  return {
    daemon,
    api,
    own,
    neighbour,
    nameless,
    expectNoTrace: async () => {
      expect(await stored(clients)).toEqual(before);
      expect(await daemon.metric('postrider_queue_messages')).toBe(0);
      expectNothingSent(sink, dns);
      expect(daemon.log()).not.toMatch(/INTERNAL_ERROR|"level":(50|60)/);
    },
    stop: async () => {
      await daemon.stop();
      await sink.close();
      await dns.close();
    },
  };
}

async function makeNeighbour(daemon: RunningDaemon, dns: DnsServer): Promise<TemptingWorld['neighbour']> {
  const api = await daemon.account('Nachbar AG');
  const domain = await verifiedDomain(daemon, dns, 'nachbar.example', { api });
  const made = await api.post<{ domainGroup: { groupId: string } }>('/web-setup/domain-groups', {
    name: 'Theirs',
  });
  const sent = await api.send(mail({ from: 'a@nachbar.example', to: SIMULATED }));
  return { api, domain, groupId: made.data.domainGroup.groupId, messageId: sent.data.messageId };
}

function expectNothingSent(sink: Sink, dns: DnsServer): void {
  expect(sink.sessions).toEqual([]);
  expect(dns.questions.filter(({ name }) => name === 'empfang.example')).toEqual([]);
}

/** What the accounts have, once the neighbour's own message has come to its end. */
async function settledState(clients: ApiClient[]): Promise<object | null> {
  const state = await stored(clients);
  return JSON.stringify(state).includes('email_delivered') ? state : null;
}

/** What all accounts have, as they see it. */
async function stored(clients: ApiClient[]): Promise<object> {
  const paths = ['messages', 'events', 'domains', 'domain-groups', 'account'];
  const entries = clients.flatMap((api) =>
    paths.map(async (path) => [
      `${api.accountId} ${path}`,
      withoutTheClock((await api.get(`/web-setup/${path}`)).text),
    ]),
  );
  return Object.fromEntries(await Promise.all(entries));
}

/** The background looks at domains by itself, and notes when it did. */
function withoutTheClock(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) =>
    ['lastCheckedAt', 'updatedAt'].includes(key) ? undefined : value,
  );
}
