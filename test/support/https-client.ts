import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { createServer, request, type Server } from 'node:https';
import { isIP } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.ts';

/** A response over HTTPS, with the certificate of the server. */
export interface HttpsResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
  certificate: PeerCertificate;
}

export interface HttpsRequestOptions {
  /** Trusted instead of the system's authorities, PEM. */
  ca: string | string[];
  /** Default: the port of the URL. */
  port?: number;
  method?: string;
  /** Sent as a form. */
  body?: string;
}

/**
 * Requests a URL from this machine, whatever host it names, without cookies and without following redirects.
 * Rejects unless the certificate is valid for the host.
 */
export function requestHttps(url: string, options: HttpsRequestOptions): Promise<HttpsResponse> {
  const { hostname, host, port, pathname, search, protocol } = new URL(url);
  if (protocol !== 'https:') return Promise.reject(new Error(`${url} is not https`));
  const { ca, body, method = 'GET' } = options;
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      servername: isIP(hostname) === 0 ? hostname : '',
      port: options.port ?? (port || 443),
      path: pathname + search,
      method,
      ca,
      agent: false,
      headers: { Host: host, ...(body === undefined ? {} : form) },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      // The socket of an https response is a TLSSocket.
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
    sent.end(body);
  });
}

/** A reverse proxy that terminates TLS and forwards requests to a port of this machine. */
export async function startTlsProxy(certificate: Certificate, targetPort: number): Promise<Server> {
  const server = createServer(certificate, (req, res) => {
    const { method, url, headers } = req;
    const forwarded = httpRequest(
      { host: '127.0.0.1', port: targetPort, method, path: url, headers },
      (response) => {
        res.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(res);
      },
    );
    forwarded.on('error', () => res.destroy());
    req.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

/** Returns the TCP port on which a server listens. */
export function portOf(server: Pick<Server, 'address'>): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
