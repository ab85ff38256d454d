import type { AccountScope } from '../../accounts/keys.ts';
import type { DnsRecordOutput, Output } from './output.ts';
import type { Receiver } from './servers/receiver.ts';
import type { WebhookReceiver } from './servers/webhook-receiver.ts';

/** Servers and output of the demo; all steps call the API over HTTP, as any client does. */
export interface DemoEnv {
  call: ApiCall;
  output: Output;
  receiver: Receiver;
  webhooks: WebhookReceiver;
  /** Actual address of the public pages. */
  publicUrl: string;
}

/** Calls the API and prints the request; throws if the status differs from `status`. */
export type ApiCall = (
  method: string,
  path: string,
  status: number,
  body?: object,
  headers?: Record<string, string>,
) => Promise<Data>;

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
  dnsRecords: DnsRecordOutput[];
  recommendedDnsRecords: DnsRecordOutput[];
  timeline: Record<string, unknown>[];
  events: { eventId: string }[];
}

export interface ApiClientOptions {
  apiUrl: string;
  accountId: string;
  keys: Record<AccountScope, string>;
  output: Output;
}

/**
 * Sends each request with the key for its path: `/transactional/`, `/marketing/`, else setup. Returns `data` of the
 * envelope; for an error that was expected, the whole body.
 */
export function createClient({ apiUrl, accountId, keys, output }: ApiClientOptions): ApiCall {
  const keyFor = (path: string) => {
    if (path.startsWith('/transactional/')) return keys.transactional;
    return path.startsWith('/marketing/') ? keys.marketing : keys.setup;
  };
  return async (method, path, status, body, headers = {}) => {
    const response = await fetch(apiUrl + path, {
      method,
      headers: {
        'x-api-key': keyFor(path),
        'x-id': accountId,
        'content-type': 'application/json',
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const result = (await response.json()) as { data?: Data } & Data;
    output.request(method, path, response.status);
    assertStep(
      response.status === status,
      `${method} ${path} returned status ${response.status} ${result.message ?? ''}`,
    );
    return result.data ?? result;
  };
}

/** A request of a recipient's browser or mail client. */
export interface Visit {
  method: 'GET' | 'POST';
  status: number;
  body?: URLSearchParams;
}

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const MAX_PRINTED_URL = 60;

/** Requests a public page; returns its redirect target. Its host exists only in the private DNS, so it is replaced. */
export async function visit(
  { publicUrl, output }: DemoEnv,
  address: string,
  { method, status, body }: Visit,
): Promise<string> {
  const response = await fetch(publicUrl + new URL(address).pathname, {
    method,
    redirect: 'manual',
    headers: { 'user-agent': BROWSER },
    ...(body === undefined ? {} : { body }),
  });
  output.line(`${method} ${address.slice(0, MAX_PRINTED_URL)}… -> ${response.status}`);
  assertStep(response.status === status, `${address} returned status ${response.status}`);
  return response.headers.get('location') ?? '';
}

/** Ends the demo if a step fails. */
export function assertStep(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}
