import { request } from 'node:https';
import { isIP } from 'node:net';
import { SECOND } from '../../core/clock.ts';
import type { Resolver } from '../../dns/resolver.ts';

/**
 * Whether a customer's link host answers over HTTPS with a certificate that is valid for its name: what every
 * recipient's browser will ask for. Only that an answer comes counts, not what it says.
 */
const PATIENCE = 5 * SECOND;
/** Answered with an image, whatever its token. */
const PATH = '/o/probe.gif';

/**
 * `port` is that of `public.url`; addresses are looked up by our own resolver. `trusted` are authorities in
 * PEM in place of the usual ones.
 */
export function createHttpsProbe(
  resolver: Resolver,
  port: number,
  trusted?: string,
): (host: string) => Promise<boolean> {
  return async (host) => {
    const address = await firstAddress(resolver, host);
    return address !== null && answers(host, address, port, trusted);
  };
}

async function firstAddress(resolver: Resolver, host: string): Promise<string | null> {
  const asked = await Promise.allSettled([resolver.a(host), resolver.aaaa(host)]);
  // No address, whatever the reason: then nobody's browser gets there either.
  const addresses = asked.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value.records : []));
  return addresses[0] ?? null;
}

function answers(host: string, address: string, port: number, trusted?: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({
      host,
      port,
      path: PATH,
      servername: host,
      agent: false,
      ...(trusted === undefined ? {} : { ca: trusted }),
      signal: AbortSignal.timeout(PATIENCE),
      lookup: (_name, options, done) => {
        const family = isIP(address);
        if (options.all === true) done(null, [{ address, family }]);
        else done(null, address, family);
      },
    });
    asked.on('response', (response) => {
      response.destroy();
      resolve((response.statusCode ?? 500) < 500);
    });
    // Certificate, connection, time: all of them mean that a link would not work.
    asked.on('error', () => resolve(false));
    asked.end();
  });
}
