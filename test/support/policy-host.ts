import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { Certificate } from './certificates.ts';

/**
 * A real HTTPS server for MTA-STS policies and TLS reports: a certificate and a handler for each host name.
 *
 *     const host = await startPolicyHost();
 *     host.serve('example.test', authority.issue(['mta-sts.example.test']), ENFORCE);
 */
export interface PolicyHost {
  address: string;
  port: number;
  /** `host path` of each request. */
  requests: string[];
  /** Serves the policy of a domain: a text or a handler. */
  serve(domain: string, certificate: Certificate, policy: string | Handler): void;
  /** Handles all requests for a host name. */
  handle(host: string, certificate: Certificate, handler: Handler): void;
  close(): Promise<void>;
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export async function startPolicyHost({ address = '127.0.0.1', port = 0 } = {}): Promise<PolicyHost> {
  const hosts = new Map<string, { certificate: Certificate; handler: Handler }>();
  const requests: string[] = [];
  const server = createServer(
    {
      SNICallback: (name, done) => {
        const host = hosts.get(name);
        if (host === undefined) done(new Error(`no host ${name}`));
        else done(null, createSecureContext(host.certificate));
      },
    },
    (request, response) => {
      const name = (request.headers.host ?? '').replace(/:\d+$/, '');
      requests.push(`${name} ${request.url}`);
      const host = hosts.get(name);
      if (host === undefined) response.writeHead(404).end();
      else host.handler(request, response);
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, resolve);
  });
  const bound = server.address() as AddressInfo;
  return {
    address,
    port: bound.port,
    requests,
    serve: (domain, certificate, policy) =>
      void hosts.set(`mta-sts.${domain}`, {
        certificate,
        handler: typeof policy === 'string' ? textHandler(policy) : policy,
      }),
    handle: (host, certificate, handler) => void hosts.set(host, { certificate, handler }),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function textHandler(policy: string): Handler {
  return ({ url }, response) => {
    if (url !== '/.well-known/mta-sts.txt') response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(policy);
  };
}

/** The text of a policy. */
export function policyText(
  mode: 'enforce' | 'testing' | 'none',
  mx: readonly string[],
  maxAge = 86_400,
): string {
  return [
    'version: STSv1',
    `mode: ${mode}`,
    ...mx.map((name) => `mx: ${name}`),
    `max_age: ${maxAge}`,
    '',
  ].join('\r\n');
}
