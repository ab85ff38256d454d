import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import { SECOND } from '../core/clock.ts';
import { abortAfter } from '../core/concurrency/abort.ts';
import type { Check, DoctorContext, DoctorDeps, DoctorOptions } from './context.ts';
import { createContext } from './create-context.ts';
import { AS_DAEMON, type Finding, type Result, unknown } from './finding.ts';

/** Checks that run at the same time. */
const CONCURRENCY = 8;
const CHECK_TIMEOUT_MS = 20 * SECOND;

export interface Progress {
  done: number;
  total: number;
  /** Title of the check that has just ended. */
  title: string;
}

/**
 * Runs the checks and returns their findings in the order of the table. Each check has a time limit; the exception or
 * timeout of one becomes an `unknown` finding and does not affect the others. Rejects only when `signal` is aborted.
 */
export async function runChecks(
  checks: readonly Check[],
  deps: DoctorDeps,
  options: DoctorOptions,
  { signal, onProgress }: { signal: AbortSignal; onProgress?: (progress: Progress) => void },
): Promise<Finding[]> {
  setMaxListeners(0, signal);
  const { context, close } = createContext(deps, options, signal);
  const queue = new PQueue({ concurrency: CONCURRENCY });
  let done = 0;
  try {
    const findings = await Promise.all(
      checks.map((check) =>
        queue.add(async () => {
          const found = await findingsOf(check, context, signal);
          onProgress?.({ done: ++done, total: checks.length, title: check.title });
          return found;
        }),
      ),
    );
    signal.throwIfAborted();
    return findings.flat();
  } finally {
    close();
  }
}

async function findingsOf(check: Check, shared: DoctorContext, signal: AbortSignal): Promise<Finding[]> {
  if (signal.aborted) return [];
  const timeoutMs = check.timeoutMs ?? CHECK_TIMEOUT_MS;
  // Ends with the check, so that neither its timer nor its listener on `signal` remains.
  const ended = new AbortController();
  signal.addEventListener('abort', () => ended.abort(signal.reason), { once: true, signal: ended.signal });
  const limit = abortAfter(timeoutMs, ended.signal);
  // Every connection in progress adds a listener: that is not a leak.
  setMaxListeners(0, limit);
  const withId = (result: Result): Finding => printable({ check: check.id, ...result });
  try {
    const missing = await missingPart(check, shared);
    if (missing !== null) return [withId(unknown(check.title, missing))];
    const results = await unlessAborted(check.run({ ...shared, signal: limit }), limit);
    return results.map(withId);
  } catch (error) {
    if (isDenied(error)) return [withId(unknown(check.title, `Not permitted: ${error.message}.`, AS_DAEMON))];
    const reason = limit.aborted
      ? `The check did not end within ${timeoutMs / SECOND} s.`
      : `The check itself failed: ${error instanceof Error ? error.message : String(error)}`;
    return [withId(unknown(check.title, reason))];
  } finally {
    ended.abort();
  }
}

function isDenied(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM');
}

const MAX_TEXT = 2000;

/** Removes control characters, which a terminal would interpret: findings quote DNS records and replies of other servers. */
function printable(finding: Finding): Finding {
  const clean = (text: string) =>
    text
      .replaceAll(/(?!\n)\p{Cc}/gu, ' ')
      .slice(0, MAX_TEXT)
      .toWellFormed();
  const { subject, reason, fix } = finding;
  const texts = {
    subject: clean(subject).replaceAll('\n', ' '),
    reason: clean(reason).replaceAll('\n', ' '),
  };
  return { ...finding, ...texts, ...(fix === undefined ? {} : { fix: clean(fix) }) };
}

/** Why the check cannot run; null: it can. */
async function missingPart({ needs = [] }: Check, context: DoctorContext): Promise<string | null> {
  if (needs.includes('database') && context.database.kind === 'closed')
    return 'Not checked: the database is not open.';
  if (needs.includes('daemon') && (await context.daemon()).kind !== 'running')
    return 'Not checked: the daemon is not running or does not respond.';
  return null;
}

/** Rejects when `signal` is aborted, also if `work` ignores it. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
