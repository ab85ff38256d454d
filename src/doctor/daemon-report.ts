import { parseListen } from '../config/setting-types.ts';
import { SECOND } from '../core/clock.ts';
import { abortAfter } from '../core/concurrency/abort.ts';
import { errorCode, errorText } from '../core/errors.ts';
import { daemonProcess } from '../store/daemon-process.ts';
import type { DaemonReport, DaemonState } from './context.ts';
import { localUrl, requestDaemon } from './daemon-client.ts';
import { parseExposition } from './exposition.ts';

/** How to reach the API of a daemon in another process on this machine. */
export interface DaemonReportOptions {
  /** `api.listen` */
  listen: string;
  metricsKey: string | undefined;
  dataDir: string;
}

const TIMEOUT_MS = 5 * SECOND;

/** Never rejects. */
export async function findDaemon(options: DaemonReportOptions, signal: AbortSignal): Promise<DaemonState> {
  const process = await processOf(options.dataDir);
  if (process.pid === null && process.reason === null) return { kind: 'stopped' };
  const address = parseListen(options.listen);
  if (address === null || address.port === 0)
    return { kind: 'unknown', reason: 'The port of the API is not known: api.listen has port 0.' };
  const { pid } = process;
  try {
    const origin = localUrl('api.listen', options.listen);
    return { kind: 'running', pid, report: await requestReport(origin, options.metricsKey, signal) };
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

async function requestReport(
  origin: string,
  bearer: string | undefined,
  signal: AbortSignal,
): Promise<DaemonReport> {
  const limit = abortAfter(TIMEOUT_MS, signal);
  const [ready, metrics] = await Promise.all([
    requestDaemon({ origin }, '/readyz', { bearer, signal: limit }),
    requestDaemon({ origin }, '/metrics', { bearer, signal: limit }),
  ]);
  return { checks: readyChecks(ready.text), metrics: firstValues(metrics.text) };
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

/** The first value of each metric in a response of `/metrics`. */
export function firstValues(text: string): Map<string, number> {
  return new Map(Array.from(parseExposition(text), ([name, [first]]) => [name, first.value]));
}

function reasonOf(error: unknown): string {
  return errorCode(error) || errorText(error);
}
