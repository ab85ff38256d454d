import type { IncomingMessage } from 'node:http';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { fixedLookup } from '../../dns/fixed-lookup.ts';

/** How the public pages answer at one address. */
export type PageAnswer =
  | { kind: 'answered'; status: number; certificate: ServedCertificate | null }
  /** `code`: of the socket or of OpenSSL. */
  | { kind: 'failed'; code: string };

export interface ServedCertificate {
  /** Epoch ms. */
  notAfter: number;
  /** Why browsers reject it (`CERT_HAS_EXPIRED`, `ERR_TLS_CERT_ALTNAME_INVALID`); null: they accept it. */
  fault: string | null;
}

export interface PageOptions {
  url: URL;
  address: string;
  timeoutMs: number;
  signal: AbortSignal;
  /** Certificate authorities, PEM; undefined: the built-in ones. */
  authorities: string | undefined;
}

/** Requests `url` at `address` and accepts every certificate, so that its faults can be reported. Never rejects. */
export function requestPage({
  url,
  address,
  timeoutMs,
  signal,
  authorities,
}: PageOptions): Promise<PageAnswer> {
  const isSecure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const options = {
      host,
      port: Number(url.port || (isSecure ? 443 : 80)),
      path: url.pathname,
      agent: false,
      signal: abortAfter(timeoutMs, signal),
      lookup: fixedLookup(address),
    };
    const outgoing = isSecure
      ? requestHttps({
          ...options,
          rejectUnauthorized: false,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...(authorities === undefined ? {} : { ca: authorities }),
        })
      : requestHttp(options);
    outgoing.on('response', (response) => {
      const certificate = certificateOf(response);
      response.destroy();
      resolve({ kind: 'answered', status: response.statusCode ?? 0, certificate });
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      resolve({
        kind: 'failed',
        code:
          error.name === 'AbortError' || error.name === 'TimeoutError'
            ? 'ETIMEDOUT'
            : (error.code ?? error.message),
      }),
    );
    outgoing.end();
  });
}

function certificateOf({ socket }: IncomingMessage): ServedCertificate | null {
  if (!(socket instanceof TLSSocket)) return null;
  // The type promises an Error, but Node sets the code as a string.
  const error: unknown = socket.authorizationError;
  const fault = error instanceof Error ? error.message : typeof error === 'string' ? error : null;
  return {
    notAfter: Date.parse(socket.getPeerCertificate().valid_to),
    fault: socket.authorized ? null : fault,
  };
}
