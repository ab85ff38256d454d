import { Client } from 'undici';
import { parseListen } from '../config/setting-types.ts';
import { SECOND } from '../core/clock.ts';
import { OperatorFault } from '../core/operator-fault.ts';

/** Where a daemon listens. */
export interface DaemonAddress {
  /** `http://127.0.0.1:8080` */
  origin: string;
  /** Its operator socket, instead of the host and port of `origin`. */
  socketPath?: string;
}

export const RESPONSE_TIMEOUT_MS = 10 * SECOND;
/** With all bounded labels in use, the metrics have about 300 KB. */
const MAX_RESPONSE_BYTES = 8 * 2 ** 20;

/**
 * Requests a path of a daemon in another process. Rejects when the response is longer than MAX_RESPONSE_BYTES or not complete
 * within RESPONSE_TIMEOUT_MS.
 */
export async function requestDaemon(
  { origin, socketPath }: DaemonAddress,
  path: string,
  { bearer, signal }: { bearer?: string | undefined; signal?: AbortSignal | undefined } = {},
): Promise<{ status: number; text: string }> {
  const options = { maxResponseSize: MAX_RESPONSE_BYTES };
  const client = new Client(origin, socketPath === undefined ? options : { ...options, socketPath });
  const timeout = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  try {
    const { statusCode, body } = await client.request({
      method: 'GET',
      path,
      headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
      signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
    });
    return { status: statusCode, text: await body.text() };
  } finally {
    await client.destroy();
  }
}

/** The base URL of a listener on this machine. Throws OperatorFault. */
export function localUrl(setting: string, listen: string): string {
  const address = parseListen(listen);
  if (address === null) throw new OperatorFault(`${setting} ${listen} is not an address and port`);
  const host = reachableHost(address.host);
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}

/** The address under which this machine reaches a listener; loopback for a listener on all addresses. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}
