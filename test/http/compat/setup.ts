import { afterAll } from 'vitest';
import type { ApiClient, CreatedDomain, VerifiedDomain } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';

/** An address of each stream's verified domain. */
export const TX_FROM = 'Shop <shop@kunde.example>';
export const MK_FROM = 'News <news@neues.example>';

export interface CompatSetup {
  daemon: InProcess;
  api: ApiClient;
  /** Sends a request to an endpoint of the provider. */
  call(
    path: string,
    options: {
      method?: string;
      headers?: Record<string, string>;
      body?: unknown;
      raw?: string | FormData | URLSearchParams;
    },
  ): Promise<CompatResponse>;
  /** The mail as its recipient gets it. */
  source(messageId: string): Promise<string>;
}

export interface CompatResponse {
  status: number;
  headers: Headers;
  text: string;
  /** The body, if it is JSON. */
  json: unknown;
}

/**
 * A daemon with the endpoints of a provider, and of `others`, and an account with a verified domain of each stream. `call` sends to
 * the first one.
 */
export async function startCompat(provider: string, ...others: string[]): Promise<CompatSetup> {
  const daemon = await startInProcess({ 'compat.enable': [provider, ...others] });
  afterAll(() => daemon.stop());
  const api = await daemon.account('A');
  await verify(daemon, api, 'kunde.example', 'tx-local');
  await verify(daemon, api, 'neues.example', 'mk-local');
  return {
    daemon,
    api,
    call: async (path, { method = 'POST', headers = {}, body, raw }) => {
      const isJson = body !== undefined;
      const response = await fetch(`${daemon.url}/compat/${provider}${path}`, {
        method,
        headers: { ...(isJson ? { 'Content-Type': 'application/json' } : {}), ...headers },
        ...(isJson ? { body: JSON.stringify(body) } : raw === undefined ? {} : { body: raw }),
      });
      const text = await response.text();
      const json = response.headers.get('content-type')?.includes('json') === true ? JSON.parse(text) : null;
      return { status: response.status, headers: response.headers, text, json };
    },
    source: async (messageId) =>
      (await api.get<{ source: string }>(`/web-setup/messages/${messageId}/source`)).data.source,
  };
}

async function verify(daemon: InProcess, api: ApiClient, domain: string, useCaseId: string): Promise<void> {
  const { data } = await api.put<CreatedDomain>('/web-setup/domains', { domain, useCaseId });
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  const { data: verified } = await api.post<VerifiedDomain>(`/web-setup/domains/${data.domainId}/verify`);
  if (verified.status !== 'SUCCESS') throw new Error(`${domain}: ${JSON.stringify(verified.checks)}`);
}

/** Values that no field expects. */
const WRONG: unknown[] = [7, true, 'x'.repeat(3000), [], [null], [[]], { a: { b: 1 } }];

/**
 * Bodies that are not valid for an endpoint: each field of a valid body replaced by values of other types, deeply nested
 * values, long lists, and names of object prototypes.
 */
export function hostileBodies(valid: Record<string, unknown>, fields: readonly string[]): unknown[] {
  const replaced = [...Object.keys(valid), ...fields].flatMap((field) =>
    WRONG.map((value) => ({ ...valid, [field]: value })),
  );
  const prototypes = ['__proto__', 'constructor'].flatMap((name) =>
    [...Object.keys(valid), ...fields, ''].map((field): unknown =>
      JSON.parse(
        field === ''
          ? `{"${name}":{"from":"x"}}`
          : JSON.stringify({ ...valid, [field]: '@' }).replace('"@"', `{"${name}":{"${name}":"x"}}`),
      ),
    ),
  );
  const deep = JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`);
  const long = Array.from({ length: 3000 }, () => 'x@y.example');
  const large = [...Object.keys(valid), ...fields].flatMap((field) => [
    { ...valid, [field]: deep },
    { ...valid, [field]: long },
    { ...valid, [field]: Array.from({ length: 600 }, () => ({})) },
  ]);
  return [...WRONG, [valid], ...replaced, ...prototypes, ...large];
}
