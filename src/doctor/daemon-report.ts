import { parseListen } from '../config/setting-types.ts';
import { SECOND } from '../core/clock.ts';
import { abortAfter } from '../core/concurrency/abort.ts';
import { daemonProcess } from '../store/daemon-process.ts';
import type { DaemonReport, DaemonState } from './context.ts';

/** How to reach the API of a daemon in another process on this machine. */
export interface DaemonReportOptions {
  /** `api.listen` */
  listen: string;
  metricsKey: string | undefined;
  dataDir: string;
}

const TIMEOUT_MS = 5 * SECOND;
const MAX_RESPONSE_BYTES = 8 * 2 ** 20;

/** Never rejects. */
export async function findDaemon(options: DaemonReportOptions, signal: AbortSignal): Promise<DaemonState> {
  const process = await processOf(options.dataDir);
  if (process.pid === null && process.reason === null) return { kind: 'stopped' };
  const address = parseListen(options.listen);
  if (address === null || address.port === 0)
    return { kind: 'unknown', reason: 'The port of the API is not known: api.listen has port 0.' };
  const { pid } = process;
  try {
    const host = reachableHost(address.host);
    const base = `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
    return { kind: 'running', pid, report: await requestReport(base, options.metricsKey, signal) };
  } catch (error) {
    const reason = reasonOf(error);
    if (pid === null)
      return {
        kind: 'unknown',
        reason: `It is unknown whether the daemon is running (${process.reason}); its API does not respond: ${reason}.`,
      };
    return { kind: 'unreachable', pid, reason: `${options.listen}: ${reason}` };
  }
}

async function processOf(dataDir: string): Promise<{ pid: number | null; reason: string | null }> {
  try {
    return { pid: await daemonProcess(dataDir), reason: null };
  } catch (error) {
    return { pid: null, reason: reasonOf(error) };
  }
}

/** The address under which this machine reaches a listener; loopback for a listener on all addresses. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

async function requestReport(
  base: string,
  metricsKey: string | undefined,
  signal: AbortSignal,
): Promise<DaemonReport> {
  const headers: Record<string, string> =
    metricsKey === undefined ? {} : { Authorization: `Bearer ${metricsKey}` };
  const limit = abortAfter(TIMEOUT_MS, signal);
  const [ready, metrics] = await Promise.all(
    ['/readyz', '/metrics'].map(async (path) =>
      readBody(await fetch(`${base}${path}`, { headers, signal: limit })),
    ),
  );
  return { checks: readyChecks(ready ?? ''), metrics: parseMetrics(metrics ?? '') };
}

async function readBody(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`the response exceeds ${MAX_RESPONSE_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** The checks in a response of /readyz, 200 or 503. Throws when it is another program's. */
function readyChecks(body: string): DaemonReport['checks'] {
  const parsed: unknown = JSON.parse(body);
  const checks = field(field(parsed, 'data'), 'checks');
  if (!Array.isArray(checks)) throw new Error('another program answers');
  return checks.map((entry: unknown) => {
    const message = field(entry, 'message');
    const details = field(entry, 'details');
    return {
      check: String(field(entry, 'check')),
      ok: field(entry, 'ok') === true,
      ...(typeof message === 'string' ? { message } : {}),
      ...(isRecord(details) ? { details } : {}),
    };
  });
}

function field(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Values by name with labels, from the Prometheus text format. */
export function parseMetrics(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)/.exec(line);
    if (match?.[1] !== undefined) values.set(match[1], Number(match[2]));
  }
  return values;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // fetch throws "fetch failed" with the error of the socket as its cause.
  const cause = error.cause instanceof Error ? error.cause : error;
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message;
}
