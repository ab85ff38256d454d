import { errors } from 'undici';
import { errorCode, errorText } from '../core/errors.ts';
import { ForbiddenAddress, ResponseTooLarge } from '../dns/connector.ts';
import { DnsError } from '../dns/dns-error.ts';

/** Why a call got no response. */
export interface CallFailure {
  /** For the account: without addresses except that of its URL, without resolvers and contents of certificates. */
  reason: string;
  /** For the operator's log: the message of the error. */
  detail: string;
  timedOut: boolean;
}

const MAX_DETAIL_LENGTH = 300;
const TIMEOUT = /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/;

/**
 * Describes a failed call. An account must not learn from it what names resolve to in the operator's network: where
 * private networks may not be called, a private address, no address and an unknown name have the same reason.
 */
export function callFailure(error: unknown, hostname: string, allowPrivateNetworks: boolean): CallFailure {
  // Several addresses were tried and each failed: the first error represents all.
  const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const detail = errorText(cause);
  return {
    reason: reasonOf(cause, hostname, allowPrivateNetworks),
    detail: detail.slice(0, MAX_DETAIL_LENGTH),
    timedOut: TIMEOUT.test(errorCode(cause)),
  };
}

function reasonOf(error: unknown, hostname: string, allowPrivateNetworks: boolean): string {
  if (error instanceof DnsError && !error.absent && error.code !== 'EBADNAME')
    return `${hostname} could not be looked up in DNS`;
  if (error instanceof DnsError || error instanceof ForbiddenAddress) {
    if (!allowPrivateNetworks) return `${hostname} has no public address that webhooks may call`;
    if (error instanceof ForbiddenAddress) return `${hostname} has no address that webhooks may call`;
    return error.code === 'ENOTFOUND'
      ? `${hostname} does not exist in DNS`
      : `${hostname} has no address in DNS`;
  }
  if (error instanceof ResponseTooLarge) return 'the response is too large';
  if (error instanceof errors.HTTPParserError) return 'the response is not valid HTTP';
  const code = errorCode(error);
  return REASONS.find(([codes]) => codes.test(code))?.[1] ?? 'the call failed';
}

/** Reasons by error code of Node, OpenSSL or undici; the first match applies. */
const REASONS: readonly [codes: RegExp, reason: string][] = [
  [/^ECONNREFUSED$/, 'the connection was refused'],
  [TIMEOUT, 'the connection timed out'],
  [/^E(HOST|NET)(UNREACH|DOWN)$/, 'the host cannot be reached'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'the connection was closed before a response arrived'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'the certificate is not valid for the host name'],
  [/^CERT_HAS_EXPIRED$/, 'the certificate has expired'],
  [/CERT|SIGNATURE/, 'the certificate is not trusted'],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'the TLS handshake failed'],
  [/HEADER(S)?_OVERFLOW$/, 'the header of the response is too large'],
];
