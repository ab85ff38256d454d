import { expect } from 'vitest';
import type { ApiClient, ApiResponse, CreatedDomain } from './api-client.ts';
import { HOSTNAME, type RunningDaemon, startDaemon } from './daemon.ts';
import { type DnsServer, startDnsServer } from './dns-server.ts';
import { eventually } from './eventually.ts';
import { publishMailHost } from './recipients.ts';
import { type Sink, startSink } from './smtp-sink.ts';
import { verifiedDomain } from './verified-domain.ts';

/**
 * A setup for tests of invalid requests, in which every valid request would succeed: two accounts with verified
 * domains, an account without a company address, and a sink that accepts everything.
 */
export interface RejectionSetup {
  daemon: RunningDaemon;
  /** kunde.example is for transactional mail, werbung.example for marketing; neu.example is not verified. */
  api: ApiClient;
  /** kunde.example. */
  domain: CreatedDomain;
  /** Another account, with nachbar.example, a domain group and a message. */
  other: { api: ApiClient; domain: CreatedDomain; groupId: string; messageId: string };
  /** An account without a company name and address, with niemand.example. */
  withoutCompany: ApiClient;
  /** Fails when anything was stored or sent since the start, or a recipient's domain was queried. */
  expectUnchanged(): Promise<void>;
  stop(): Promise<void>;
}

export const VALIDATION = [400, 'VALIDATION_ERROR'] as const;

export const COMPLIANT = '<p>Hello.</p>{{company_address_html}}{{unsubscribe_email_html}}';

/** A simulator address: the message is delivered without leaving the machine. */
export const SIMULATED = `delivered@simulator.${HOSTNAME}`;

/** The body of a valid send with some fields changed. */
export function mail(change: object = {}): Record<string, unknown> {
  return { to: 'ada@empfang.example', from: 'a@kunde.example', subject: 'Hello', html: COMPLIANT, ...change };
}

/** `field`: one of the fields in `details`. */
export type ExpectedError = readonly [status: number, code: string, field?: string | undefined];

export type ErrorCase = readonly [
  what: string,
  send: () => Promise<ApiResponse<unknown>>,
  expected: ExpectedError,
];

/** Sends the requests one after the other and compares the errors with the expected ones as one table. */
export async function expectErrors(cases: readonly ErrorCase[]): Promise<void> {
  const actual: unknown[][] = [];
  for (const [what, send, [, , field]] of cases) {
    const response = await send();
    if (response.status < 400) {
      actual.push([what, response.status, 'succeeded']);
      continue;
    }
    expectErrorFormat(what, response);
    const fields = response.error.details?.map((detail) => detail.field) ?? [];
    const found = field === undefined || fields.includes(field) ? field : fields.join(', ');
    actual.push([what, response.status, response.error.code, found]);
  }
  expect(actual).toEqual(cases.map(([what, , [status, code, field]]) => [what, status, code, field]));
}

export function expectError(response: ApiResponse<unknown>, ...expected: ExpectedError): Promise<void> {
  return expectErrors([['the request', () => Promise.resolve(response), expected]]);
}

/** What all error responses have in common. */
function expectErrorFormat(what: string, { text, headers, error }: ApiResponse<unknown>): void {
  const body: { message: string; reasonCode: string; requestId: string } = JSON.parse(text);
  expect(body, what).toMatchObject({ reasonCode: error.code, message: error.message });
  expect(body.requestId, what).toBe(headers.get('X-Request-Id'));
  expect(headers.get('Cache-Control'), what).toBe('no-store');
  // No stack trace, SQL or path of the server.
  expect(text, what).not.toMatch(/SQLITE|node_modules|\bat \S+ \(|\/dist\/|file:\/\//);
}

export async function startRejectionSetup(): Promise<RejectionSetup> {
  const dns = await startDnsServer();
  const sink = await startSink();
  const daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
  });
  publishMailHost(dns, 'empfang.example');
  const { api } = daemon;
  const domain = await verifiedDomain(daemon, dns, 'kunde.example');
  await verifiedDomain(daemon, dns, 'werbung.example', { useCaseId: 'mk-local' });
  await api.put('/web-setup/domains', { domain: 'neu.example', useCaseId: 'tx-local' });
  const other = await createOtherAccount(daemon, dns);
  const withoutCompany = await daemon.account('Niemand', { company: false });
  await verifiedDomain(daemon, dns, 'niemand.example', { api: withoutCompany });

  const clients = [api, other.api, withoutCompany];
  const before = await eventually("the other account's message to be delivered", async () => {
    const state = await readState(clients);
    return JSON.stringify(state).includes('email_delivered') ? state : null;
  });
  return {
    daemon,
    api,
    domain,
    other,
    withoutCompany,
    expectUnchanged: async () => {
      expect(await readState(clients)).toEqual(before);
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

async function createOtherAccount(daemon: RunningDaemon, dns: DnsServer): Promise<RejectionSetup['other']> {
  const api = await daemon.account('Nachbar AG');
  const domain = await verifiedDomain(daemon, dns, 'nachbar.example', { api });
  const group = await api.post<{ domainGroup: { groupId: string } }>('/web-setup/domain-groups', {
    name: 'Theirs',
  });
  const sent = await api.send(mail({ from: 'a@nachbar.example', to: SIMULATED }));
  return { api, domain, groupId: group.data.domainGroup.groupId, messageId: sent.data.messageId };
}

function expectNothingSent(sink: Sink, dns: DnsServer): void {
  expect(sink.sessions).toEqual([]);
  expect(dns.questions.filter(({ name }) => name === 'empfang.example')).toEqual([]);
}

/** Everything that the accounts own, as the API returns it to them. */
async function readState(clients: ApiClient[]): Promise<object> {
  const paths = ['messages', 'events', 'domains', 'domain-groups', 'account'];
  const entries = clients.flatMap((api) =>
    paths.map(async (path) => [
      `${api.accountId} ${path}`,
      withoutCheckTimes((await api.get(`/web-setup/${path}`)).text),
    ]),
  );
  return Object.fromEntries(await Promise.all(entries));
}

/** Leaves out the fields that the periodic verification of domains updates. */
function withoutCheckTimes(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) =>
    ['lastCheckedAt', 'updatedAt'].includes(key) ? undefined : value,
  );
}
