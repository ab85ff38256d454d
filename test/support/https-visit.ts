import { type IncomingHttpHeaders, request as plainRequest } from 'node:http';
import { createServer, request, type Server } from 'node:https';
import { isIP } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.ts';

/**
 * How a stranger meets the public pages over HTTPS, by any name that leads there, with no cookies, following
 * nothing: and what an operator may put before them to end TLS.
 */
export interface Visit {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
  certificate: PeerCertificate;
}

export interface VisitOptions {
  /** Trusted in place of the usual authorities, PEM. */
  ca: string | string[];
  /** Default: the port of the URL. */
  port?: number;
  method?: string;
  /** Sent as a form. */
  body?: string;
}

/** Asks this machine for a URL, whatever host it names; rejects unless the certificate is good for that name. */
export function visitHttps(url: string, options: VisitOptions): Promise<Visit> {
  const { hostname, host, port, pathname, search, protocol } = new URL(url);
  if (protocol !== 'https:') return Promise.reject(new Error(`${url} is not https`));
  const { ca, body, method = 'GET' } = options;
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      servername: isIP(hostname) === 0 ? hostname : '',
      port: options.port ?? (port || 443),
      path: pathname + search,
      method,
      ca,
      agent: false,
      headers: { Host: host, ...(body === undefined ? {} : form) },
    });
    asked.on('error', reject);
    asked.on('response', (response) => {
      // Sound: this is what https gives.
      const certificate = (response.socket as TLSSocket).getPeerCertificate();
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text, certificate }),
      );
    });
    asked.end(body);
  });
}

/** Ends TLS and hands everything on to a port of this machine. */
export async function startTlsProxy(certificate: Certificate, to: number): Promise<Server> {
  const server = createServer(certificate, (req, res) => {
    const { method, url, headers } = req;
    const onward = plainRequest({ host: '127.0.0.1', port: to, method, path: url, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    req.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
