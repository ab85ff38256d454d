import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type ListenAddress, parseListen } from '../../config/setting-types.ts';
import { SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { normalizeAddress } from '../../dns/address-kinds.ts';
import { addressesOf, type LookupResult } from '../../dns/dns-view.ts';
import { fixedLookup } from '../../dns/fixed-lookup.ts';
import {
  type HostWarning,
  isLocalUrl,
  isLoopbackListener,
  loopbackWarnings,
} from '../../domains/platform/host-checks.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning } from '../finding.ts';
import { connectionProblem, type Greeting, readGreeting } from '../probes/smtp.ts';

/* Checks whether other machines can reach the listeners under their public names. */

const TIMEOUT_MS = 5 * SECOND;
/** Maximum number of addresses of a name. */
const MAX_ADDRESSES = 4;
/** The response is an image for any token. */
const PAGE_PATH = '/o/probe.gif';

interface Attempt<Answer> {
  address: string;
  port: number;
  /**
   * Whether a failure proves that connections from other machines fail, too: a network interface has the address, so that no
   * NAT is involved, and our listener uses the port, so that no redirection is needed. Both often do not apply to connections
   * from this machine.
   */
  isDecisive: boolean;
  answer: Answer;
}

/**
 * Results on MX, submission, the public pages and the API, in this order. A failed connection is a failure if it is
 * decisive (`Attempt`), else unknown. If none succeeds and the listener is on loopback, that is the failure.
 */
export async function examineListeners(context: DoctorContext): Promise<Result[]> {
  const { config, machine, signal, view } = context;
  const { hostname, mx, submission, api } = config;
  const host = await addressesOf(view, hostname);
  const addresses = host.kind === 'records' ? host.records.slice(0, MAX_ADDRESSES) : [];
  const own = new Set(machine.addresses());
  const greetings = (port: number, listen: string) =>
    Promise.all(
      addresses.map(async (address): Promise<Attempt<Greeting>> => {
        const answer = await readGreeting({ address, port, timeoutMs: TIMEOUT_MS, signal });
        const isDecisive = own.has(normalizeAddress(address)) && parseListen(listen)?.port === port;
        return { address, port, isDecisive, answer };
      }),
    );
  const listen = parseListen(api.listen) ?? { host: '', port: 0 };
  const isApiLocal = isLoopbackListener(api.listen);
  const submissionPort = parseListen(submission.listen)?.port;
  // Behind a proxy the public port is not known, and with implicit TLS there is no greeting before the handshake.
  const isProbed =
    submissionPort !== undefined && !submission.implicitTls && !isLoopbackListener(submission.listen);
  const [incoming, submitted, pages, reachedApi] = await Promise.all([
    mx.listen === 'off' ? null : greetings(machine.mxPort, mx.listen),
    isProbed ? greetings(submissionPort, submission.listen) : null,
    examinePages(context, own),
    isApiLocal || listen.port === 0 ? [] : greetings(listen.port, api.listen),
  ]);
  const off = warning(
    'mx.listen',
    'The listener is off: bounces, complaints and reports are not received.',
    '[mx]\nlisten = "0.0.0.0:25"',
  );
  // Listeners that only this machine reaches although the host name leads here.
  const local = loopbackWarnings(config, addresses);
  const name = { hostname, lookupFault: faultOf(host) };
  return [
    ...(incoming === null ? [off] : unlessLocal('mx', judgeSmtp('MX', name, incoming), local)),
    ...(submitted === null ? [] : judgeSmtp('submission', name, submitted)),
    ...unlessLocal('public', pages, local),
    judgeApi(listen, isApiLocal, reachedApi),
  ];
}

async function examinePages(
  { config, platform, view, signal, machine }: DoctorContext,
  own: ReadonlySet<string>,
): Promise<Result[]> {
  const { publicUrl } = platform;
  if (isLocalUrl(publicUrl)) return [];
  const url = new URL(`${publicUrl}${PAGE_PATH}`);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const found =
    isIP(host) === 0 ? await addressesOf(view, host) : { kind: 'records' as const, records: [host] };
  if (found.kind === 'unknown')
    return [
      unknown(publicUrl, `Not tested: DNS did not answer for the host of public.url (${found.reason}).`),
    ];
  if (found.kind === 'absent')
    return [
      failure(
        publicUrl,
        'The host of public.url has no address in DNS: links in mail lead nowhere.',
        'postrider zone',
      ),
    ];
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const listening = [config.public.listen, config.public.tls.listen].map((each) => parseListen(each)?.port);
  return Promise.all(
    found.records.slice(0, MAX_ADDRESSES).map(async (address) => {
      const { authorities } = machine;
      const answer = await requestPage({ url, address, timeoutMs: TIMEOUT_MS, signal, authorities });
      const isDecisive = own.has(normalizeAddress(address)) && listening.includes(port);
      return judgePage(`${publicUrl} at ${address}`, { address, port, isDecisive, answer });
    }),
  );
}

function faultOf(found: LookupResult<string>): string | null {
  return found.kind === 'unknown' ? found.reason : null;
}

/** Reports a listener on loopback as the cause, unless connections reach it through a proxy or a redirection. */
function unlessLocal(section: 'mx' | 'public', results: Result[], local: readonly HostWarning[]): Result[] {
  const own = local.filter(({ key }) => key.startsWith(`${section}.`));
  const isReached = results.some(({ status }) => status === 'ok');
  if (own.length === 0 || isReached) return results;
  return own.map(({ key, message }) => failure(key, message, fixOfLocal(key)));
}

function fixOfLocal(key: string): string {
  if (key === 'public.url') return '[public]\nurl = "https://track.<hostname>"';
  return `${key} = "0.0.0.0:${key === 'mx.listen' ? 25 : key === 'public.tls.listen' ? 443 : 80}"`;
}

function judgeSmtp(
  what: string,
  { hostname, lookupFault }: { hostname: string; lookupFault: string | null },
  attempts: readonly Attempt<Greeting>[],
): Result[] {
  if (attempts.length === 0)
    return [
      unknown(
        `${what} ${hostname}`,
        lookupFault === null
          ? `${hostname} has no address in DNS, so others cannot reach the listener.`
          : `Not tested: DNS did not answer for ${hostname} (${lookupFault}).`,
      ),
    ];
  return attempts.map(({ address, port, isDecisive, answer }) => {
    const subject = `${what} ${address}:${port}`;
    if (answer.kind === 'failed') return unreachable(subject, address, port, isDecisive, answer.code);
    if (answer.kind === 'silent')
      return warning(
        subject,
        'Something accepts connections but does not answer as a mail server.',
        `ss -ltnp 'sport = :${port}'`,
      );
    return isOwnGreeting(answer, hostname)
      ? ok(subject, 'The listener accepts connections from this machine.')
      : failure(
          subject,
          `Another mail server answers, so bounces do not reach Postrider: ${quoted(answer.text)}`,
          `ss -ltnp 'sport = :${port}'; stop the other mail server or change mx.listen`,
        );
  });
}

/**
 * Whether the listener of Postrider sent the greeting: "220 mail.example.net ESMTP". Another mail server on this machine
 * greets with the same host name, and names its program after it (RFC 5321 §4.2). A listener that is busy answers with 4xx.
 */
function isOwnGreeting({ code, text }: Greeting & { kind: 'greeting' }, hostname: string): boolean {
  const line = text.toLowerCase();
  return code === 220 ? line === `220 ${hostname} esmtp` : line.includes(hostname);
}

/** A machine behind NAT often cannot connect to its own public address. */
function unreachable(
  subject: string,
  address: string,
  port: number,
  isDecisive: boolean,
  code: string,
): Result {
  const problem = connectionProblem(code);
  const test = `nc -vz -w 5 ${address} ${port}`;
  return isDecisive
    ? failure(
        subject,
        `The listener cannot be reached: ${problem}.`,
        `ss -ltn 'sport = :${port}'; nft list ruleset`,
      )
    : unknown(
        subject,
        `Not reachable from this machine (${problem}), possibly because of NAT or a redirection of the port: test from another machine.`,
        test,
      );
}

function judgePage(subject: string, { address, port, isDecisive, answer }: Attempt<PageAnswer>): Result {
  if (answer.kind === 'failed') return unreachable(subject, address, port, isDecisive, answer.code);
  const fault = answer.certificate?.fault ?? null;
  if (fault !== null)
    return failure(
      subject,
      `Browsers reject the certificate of the public pages: ${fault}.`,
      'Renew the certificate of the reverse proxy, or let postrider obtain it: public.tls.listen',
    );
  return answer.status >= 500
    ? failure(
        subject,
        `The public pages answer with status ${answer.status}.`,
        'Check the upstream of the reverse proxy: it must be public.listen',
      )
    : ok(subject, `Answers with status ${answer.status}${expiry(answer.certificate)}.`);
}

function expiry(certificate: ServedCertificate | null): string {
  return certificate === null
    ? ''
    : `, certificate valid until ${new Date(certificate.notAfter).toISOString().slice(0, 10)}`;
}

function judgeApi(
  listen: ListenAddress,
  isLoopback: boolean,
  attempts: readonly Attempt<Greeting>[],
): Result {
  const subject = `API ${listen.host}:${listen.port}`;
  if (isLoopback) return ok(subject, 'Only this machine reaches the API.');
  const reached = attempts.filter(({ answer }) => answer.kind !== 'failed').map(({ address }) => address);
  if (reached.length > 0)
    return warning(
      subject,
      `The API listens at ${reached.join(', ')} without encryption: unless a firewall blocks the port, API keys can be intercepted.`,
      '[api]\nlisten = "127.0.0.1:8080"   # and a reverse proxy with TLS in front of it',
    );
  return ok(subject, 'The API listens on the network, but not at the public address.');
}

/** How the public pages answer at one address. */
type PageAnswer =
  | { kind: 'answered'; status: number; certificate: ServedCertificate | null }
  /** `code`: of the socket or of OpenSSL. */
  | { kind: 'failed'; code: string };

interface ServedCertificate {
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
