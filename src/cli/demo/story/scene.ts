import type { ApiScope } from '../../../accounts/keys.ts';
import type { Receiver } from '../world/receiver.ts';
import type { Shop } from '../world/shop.ts';
import type { Published, Teller } from './teller.ts';

/** What every chapter of the story plays in, and how it calls the API: over HTTP, as any caller does. */
export interface Scene {
  call: Call;
  tell: Teller;
  receiver: Receiver;
  shop: Shop;
  /** Where the public pages really are. */
  publicUrl: string;
}

/** Calls the API and tells of it; throws unless it answers with `status`. */
export type Call = (
  method: string,
  path: string,
  status: number,
  body?: object,
  headers?: Record<string, string>,
) => Promise<Data>;

/** What the story reads of the API's answers. */
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
  dnsRecords: Published[];
  recommendedDnsRecords: Published[];
  timeline: Record<string, unknown>[];
  events: { eventId: string }[];
}

export interface CallerSettings {
  apiUrl: string;
  accountId: string;
  keys: Record<ApiScope, string>;
  tell: Teller;
}

export function createCaller({ apiUrl, accountId, keys, tell }: CallerSettings): Call {
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
    const answer = (await response.json()) as { data?: Data } & Data;
    tell.request(method, path, response.status);
    expectThat(
      response.status === status,
      `${method} ${path} answered ${response.status} ${answer.message ?? ''}`,
    );
    return answer.data ?? answer;
  };
}

/** As a recipient's browser or mail program does it. */
export interface Visit {
  method: 'GET' | 'POST';
  status: number;
  body?: URLSearchParams;
}

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const SHOWN_OF_ADDRESS = 60;

/** Its host exists in the demo's private DNS alone, so it is looked up by hand. Returns where it leads to. */
export async function visit(
  { publicUrl, tell }: Scene,
  address: string,
  { method, status, body }: Visit,
): Promise<string> {
  const answer = await fetch(publicUrl + new URL(address).pathname, {
    method,
    redirect: 'manual',
    headers: { 'user-agent': BROWSER },
    ...(body === undefined ? {} : { body }),
  });
  tell.line(`${method} ${address.slice(0, SHOWN_OF_ADDRESS)}… -> ${answer.status}`);
  expectThat(answer.status === status, `${address} answered ${answer.status}`);
  return answer.headers.get('location') ?? '';
}

/** A step that does not go as it must ends the story. */
export function expectThat(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
