import { errors } from 'undici';
import { DnsError } from '../dns/dns-error.ts';
import { OutOfReach } from './reach.ts';

/** Why a call got no response. */
export interface Failure {
  /** For the account: names no address but its own, no resolver, and nothing that a certificate holds. */
  why: string;
  /** For the operator's log: the error's own words. */
  detail: string;
}

const MAX_DETAIL = 300;

/**
 * What a failed call says. An account must not learn from it what a name leads to inside of the operator's
 * network: where private networks may not be called, a private address, no address and no such name are all one.
 */
export function failureOf(error: unknown, hostname: string, allowPrivateNetworks: boolean): Failure {
  // Several addresses were tried, and each failed: the first stands for all.
  const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const detail = cause instanceof Error ? cause.message : String(cause);
  return { why: reasonOf(cause, hostname, allowPrivateNetworks), detail: detail.slice(0, MAX_DETAIL) };
}

function reasonOf(error: unknown, hostname: string, allowPrivateNetworks: boolean): string {
  if (error instanceof DnsError && !error.absent && error.code !== 'EBADNAME')
    return `${hostname} could not be looked up in DNS`;
  if (error instanceof DnsError || error instanceof OutOfReach) {
    if (!allowPrivateNetworks) return `${hostname} has no public address that webhooks may call`;
    if (error instanceof OutOfReach) return `${hostname} has no address that webhooks may call`;
    return error.code === 'ENOTFOUND'
      ? `${hostname} does not exist in DNS`
      : `${hostname} has no address in DNS`;
  }
  if (error instanceof errors.HTTPParserError) return 'the response is not valid HTTP';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return REASONS.find(([codes]) => codes.test(code))?.[1] ?? 'the call failed';
}

/** By error code of Node, OpenSSL or undici; the first match counts. */
const REASONS: readonly [codes: RegExp, why: string][] = [
  [/^ECONNREFUSED$/, 'the connection was refused'],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'the connection timed out'],
  [/^E(HOST|NET)(UNREACH|DOWN)$/, 'the host cannot be reached'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'the connection was closed before a response came'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'the certificate is not valid for the host name'],
  [/^CERT_HAS_EXPIRED$/, 'the certificate has expired'],
  [/CERT|SIGNATURE/, 'the certificate is not trusted'],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'the TLS handshake failed'],
  [/HEADER(S)?_OVERFLOW$/, 'the header of the response is too large'],
];
