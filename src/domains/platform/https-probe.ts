import { request } from 'node:https';
import { SECOND } from '../../core/clock.ts';
import { fixedLookup } from '../../dns/fixed-lookup.ts';

const PROBE_TIMEOUT_MS = 5 * SECOND;
/** The path of a tracking pixel: the public pages return an image for any token. */
const PATH = '/o/probe.gif';

/**
 * Whether a link host answers over HTTPS at an address of this platform. The addresses of the host are not connected to: its
 * owner could name any address of the network of this machine.
 */
export type HttpsProbe = (host: string, address: string) => Promise<boolean>;

/**
 * The probe uses the port of `publicUrl` and requires a certificate that is valid for the name of the host, as browsers do.
 * Any response below 500 counts. `trusted` replaces the default certificate authorities (PEM).
 */
export function createHttpsProbe(publicUrl: string, trusted?: string): HttpsProbe {
  const port = Number(new URL(publicUrl).port || 443);
  return (host, address) => answers(host, address, port, trusted);
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
      lookup: fixedLookup(address),
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
