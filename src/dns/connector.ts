import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { literalAddress } from './address-kinds.ts';
import type { Resolver } from './resolver.ts';

export interface ConnectorOptions {
  resolver: Resolver;
  /** Called for each connection: a reload may change it. */
  mayConnect(address: string): boolean;
  /** Limit for the connection and its TLS handshake. */
  timeoutMs: number;
  /**
   * Bytes that the host may send in response to one request, with everything that is no content: further ones end the
   * connection. Default: 256 KiB.
   */
  maxResponseBytes?: number | undefined;
  /** Certificate authorities in PEM; default: those of Node. */
  trusted?: string | readonly string[] | undefined;
}

/** The address is not permitted. The message contains it and must only be logged, never returned to an account. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
}

/** The host sent more than `maxResponseBytes`. */
export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';
}

const MAX_RESPONSE_BYTES = 256 * 1024;

/** Names of this machine (RFC 6761 §6.3): they are not in DNS, and our resolver reads no hosts file. */
const LOCALHOST = /^(.+\.)?localhost\.?$/i;

/**
 * Connects HTTP requests to hosts that others choose, only to permitted addresses. The address is checked when the
 * connection is made, and the connection uses that address, so an attacker gains nothing by changing the DNS answer
 * afterwards (DNS rebinding). Addresses in URLs are checked too, in every notation: they are never looked up, and
 * `http://2130706433/` is 127.0.0.1. The HTTP client limits header and content, but reads interim responses, chunk
 * extensions and empty lines without end, so the bytes of each response are limited here.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { resolver, mayConnect, timeoutMs, trusted, maxResponseBytes = MAX_RESPONSE_BYTES } = options;

  async function addressesOf(host: string): Promise<string[]> {
    if (LOCALHOST.test(host)) return ['127.0.0.1', '::1'];
    const lookups = await Promise.allSettled([resolver.a(host), resolver.aaaa(host)]);
    const found = lookups.flatMap((lookup) => (lookup.status === 'fulfilled' ? lookup.value.records : []));
    if (found.length > 0) return found;
    throw lookups[0].status === 'rejected' ? lookups[0].reason : new Error(`${host} has no address`);
  }

  const lookup: LookupFunction = (host, { all }, report) => {
    addressesOf(host).then(
      (found) => {
        const allowed = found.filter(mayConnect);
        const [first] = allowed;
        if (first === undefined)
          report(
            new ForbiddenAddress(`${host} has the address ${found.join(', ')}, which may not be called`),
            '',
          );
        else if (all === true)
          report(
            null,
            allowed.map((address) => ({ address, family: isIP(address) })),
          );
        else report(null, first, isIP(first));
      },
      (error: NodeJS.ErrnoException) => report(error, ''),
    );
  };
  const connect = buildConnector({
    lookup,
    timeout: timeoutMs,
    ...(trusted === undefined ? {} : { ca: typeof trusted === 'string' ? trusted : [...trusted] }),
  });

  return (target, callback) => {
    const address = literalAddress(target.hostname);
    if (address !== null && !mayConnect(address)) {
      callback(new ForbiddenAddress(`${address} may not be called`), null);
      return;
    }
    connect(target, (...result) => {
      if (result[0] === null) limitResponses(result[1], maxResponseBytes);
      callback(...result);
    });
  };
}

/** Destroys the connection when it has received more than `maxBytes` since the last bytes were sent. */
function limitResponses(socket: Socket, maxBytes: number): void {
  let written = socket.bytesWritten;
  let before = socket.bytesRead;
  let read = before;
  socket.on('readable', () => {
    if (socket.bytesWritten !== written) {
      written = socket.bytesWritten;
      before = read;
    }
    read = socket.bytesRead;
    if (read - before > maxBytes)
      socket.destroy(new ResponseTooLarge(`the host sent more than ${maxBytes} bytes`));
  });
}
