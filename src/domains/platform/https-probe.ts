import { request } from 'node:https';
import { isIP } from 'node:net';
import { SECOND } from '../../core/clock.ts';
import type { Resolver } from '../../dns/resolver.ts';

const PROBE_TIMEOUT_MS = 5 * SECOND;
/** The path of a tracking pixel: the public pages return an image for any token. */
const PATH = '/o/probe.gif';

/**
 * Returns a function that checks whether a link host answers over HTTPS, on the port of `publicUrl`, with a
 * certificate that is valid for its name, as browsers require. Any response below 500 counts. `trusted` replaces the
 * default certificate authorities (PEM).
 */
export function createHttpsProbe(
  resolver: Resolver,
  publicUrl: string,
  trusted?: string,
): (host: string) => Promise<boolean> {
  const port = Number(new URL(publicUrl).port || 443);
  return async (host) => {
    const address = await firstAddress(resolver, host);
    return address !== null && answers(host, address, port, trusted);
  };
}

async function firstAddress(resolver: Resolver, host: string): Promise<string | null> {
  const results = await Promise.allSettled([resolver.a(host), resolver.aaaa(host)]);
  // A failed lookup counts as no address: browsers cannot connect either.
  const addresses = results.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value.records : []));
  return addresses[0] ?? null;
}

function answers(host: string, address: string, port: number, trusted?: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({
      host,
      port,
      path: PATH,
      servername: host,
      agent: false,
      ...(trusted === undefined ? {} : { ca: trusted }),
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
      lookup: (_name, options, done) => {
        const family = isIP(address);
        if (options.all === true) done(null, [{ address, family }]);
        else done(null, address, family);
      },
    });
    probe.on('response', (response) => {
      response.destroy();
      resolve((response.statusCode ?? 500) < 500);
    });
    // An invalid certificate, a failed connection, a timeout: the link would not work.
    probe.on('error', () => resolve(false));
    probe.end();
  });
}
