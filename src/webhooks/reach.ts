import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import type { Resolver } from '../dns/resolver.ts';
import { literalAddress, mayBeCalled } from './form.ts';

/**
 * Where a webhook's call may go. Addresses are judged when a connection is made, and the connection goes to
 * the very address that was judged: a name that answers differently a moment later gains nothing. Literals
 * are judged as well, since they are never looked up; `http://2130706433/` is one.
 */
export interface ReachSettings {
  resolver: Resolver;
  allowPrivateNetworks: boolean;
  /** Ms for a connection, handshake included. */
  timeoutMs: number;
  /** Authorities in PEM in place of the usual ones. */
  trusted?: string | undefined;
}

/** The address must not be called. The message names it, and so is for the operator alone. */
export class OutOfReach extends Error {
  override readonly name = 'OutOfReach';
}

/** The machine itself (RFC 6761 §6.3): in no DNS, and our resolver reads no hosts file. */
const LOCALHOST = /^(.+\.)?localhost\.?$/i;

export function createReach(settings: ReachSettings): buildConnector.connector {
  const { resolver, allowPrivateNetworks, timeoutMs, trusted } = settings;

  async function addressesOf(host: string): Promise<string[]> {
    if (LOCALHOST.test(host)) return ['127.0.0.1', '::1'];
    const asked = await Promise.allSettled([resolver.a(host), resolver.aaaa(host)]);
    const found = asked.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value.records : []));
    if (found.length > 0) return found;
    // The name has neither; why, the first says as well as the second.
    throw asked[0].status === 'rejected' ? asked[0].reason : new Error(`${host} has no address`);
  }

  const lookup: LookupFunction = (host, options, answer) => {
    addressesOf(host).then(
      (found) => {
        const allowed = found.filter((address) => mayBeCalled(address, allowPrivateNetworks));
        const [first] = allowed;
        if (first === undefined)
          answer(new OutOfReach(`${host} leads to ${found.join(', ')}, which may not be called`), '');
        else if (options.all === true)
          answer(
            null,
            allowed.map((address) => ({ address, family: isIP(address) })),
          );
        else answer(null, first, isIP(first));
      },
      (error: NodeJS.ErrnoException) => answer(error, ''),
    );
  };
  const connect = buildConnector({
    lookup,
    timeout: timeoutMs,
    ...(trusted === undefined ? {} : { ca: trusted }),
  });

  return (options, callback) => {
    const address = literalAddress(options.hostname);
    if (address === null || mayBeCalled(address, allowPrivateNetworks)) connect(options, callback);
    else callback(new OutOfReach(`${address} may not be called`), null);
  };
}
