import { createHash } from 'node:crypto';
import { setImmediate as nextIteration } from 'node:timers/promises';
import PQueue from 'p-queue';
import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import type { Log } from '../../core/log.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import type { UnreportedDay } from '../../store/tls/tls-sessions.ts';
import { dayNumberOf, type TlsCounting } from './counting.ts';
import { composeReport, type OutgoingTlsReport, type Submitter } from './report.ts';
import type { ReportTarget } from './report-record.ts';

/**
 * Sends the TLS reports of past days (RFC 8460 §4.1), each at its own time in the first four hours after midnight UTC, so
 * that receivers are not asked by everyone together. What was counted is removed when the report has reached all of its
 * targets, or after a day of attempts. A restart forgets which targets were reached: these get the report again, with
 * the same id.
 */
export interface ReportSender {
  start(): void;
  stop(): Promise<void>;
}

export interface ReportSenderDeps {
  clock: Clock;
  log: Log;
  tables: Pick<Tables, 'tlsSessions'>;
  writer: Writer;
  counting: Pick<TlsCounting, 'targets'>;
  /** Read at each use: a reload changes them. */
  readonly isOn: boolean;
  readonly submitter: Submitter;
  /** Sends a report to one target; null: it was accepted, else why not. Never rejects. */
  deliver(target: ReportTarget, report: OutgoingTlsReport): Promise<string | null>;
  /** Called with the result for each target, for metrics. */
  observe?: ((result: 'sent' | 'failed') => void) | undefined;
  /** Default: one minute. */
  intervalMs?: number;
}

const SPREAD_MS = 4 * HOUR;
const FIRST_RETRY_MS = 30 * MINUTE;
/** §4.1: delivery is tried for up to a day. */
const GIVE_UP_MS = DAY;
const INTERVAL_MS = MINUTE;
const PARALLEL = 8;
/** Reports of one run, and days of domains that it examines, a few between pauses for other work. */
const MAX_PER_RUN = 200;
const MAX_EXAMINED = 5000;
const PORTION = 100;
const MAX_RETRIES = 10_000;
const REMOVAL_BATCH_SIZE = 500;

interface Retry {
  at: number;
  waitMs: number;
  /** Targets that have accepted the report. */
  reached: Set<string>;
}

const START: UnreportedDay = { day: 0, domain: '' };

/**
 * `start` begins a loop, whose first run follows after `intervalMs`; a run sends at most 200 reports, 8 at a time, and
 * `stop` waits for those in progress. Counts older than two days are removed also while `isOn` is false.
 */
export function createReportSender(deps: ReportSenderDeps): ReportSender {
  const { clock, log, tables, writer, counting } = deps;
  const retries = new Map<string, Retry>();
  const queue = new PQueue({ concurrency: PARALLEL });
  /** Where the next run continues. */
  let cursor = START;
  let stopped = false;
  const loop = createLoop({
    name: 'tls-reports',
    run,
    intervalMs: deps.intervalMs ?? INTERVAL_MS,
    firstMs: deps.intervalMs ?? INTERVAL_MS,
    log,
  });

  async function run(): Promise<number | undefined> {
    const today = dayNumberOf(clock.now());
    const oldest = today - 2;
    const removed = await writer.run((all) => all.tlsSessions.removeBefore(oldest, REMOVAL_BATCH_SIZE));
    if (!deps.isOn) return undefined;
    const due: UnreportedDay[] = [];
    for (let examined = 0; examined < MAX_EXAMINED && due.length < MAX_PER_RUN; examined++) {
      const next = tables.tlsSessions.nextUnreported(cursor, today);
      cursor = next ?? START;
      if (next === null || stopped) break;
      if (dueAt(next) <= clock.now()) due.push(next);
      if (examined % PORTION === PORTION - 1) await nextIteration();
    }
    await queue.addAll(due.map((each) => () => report(each)));
    return removed === REMOVAL_BATCH_SIZE || cursor !== START ? SECOND : undefined;
  }

  function dueAt(unreported: UnreportedDay): number {
    return retries.get(keyOf(unreported))?.at ?? (unreported.day + 1) * DAY + offsetOf(unreported);
  }

  /** Differs between domains, days and senders, and is the same after a restart. */
  function offsetOf({ day, domain }: UnreportedDay): number {
    const hash = createHash('sha256').update(`${deps.submitter.domain} ${domain} ${day}`).digest();
    return hash.readUInt32BE(0) % SPREAD_MS;
  }

  async function report(unreported: UnreportedDay): Promise<void> {
    if (stopped) return;
    const { domain } = unreported;
    const reached = retries.get(keyOf(unreported))?.reached ?? new Set<string>();
    const targets = await counting.targets(domain);
    if (targets === null) return retryLater(unreported, reached, 'the TLSRPT record cannot be looked up');
    const composed = targets.length === 0 ? null : await composeReport(tables, unreported, deps.submitter);
    if (composed === null) return remove(unreported);
    const missing = targets.filter((target) => !reached.has(nameOf(target)));
    const results = await Promise.all(missing.map((target) => send(target, composed)));
    for (const [index, target] of missing.entries()) if (results[index] === null) reached.add(nameOf(target));
    const reason = results.find((result) => result !== null) ?? null;
    if (reason === null) return remove(unreported);
    return retryLater(unreported, reached, reason);
  }

  async function send(target: ReportTarget, composed: OutgoingTlsReport): Promise<string | null> {
    const reason = await deps.deliver(target, composed);
    deps.observe?.(reason === null ? 'sent' : 'failed');
    const fields = { domain: composed.domain, reportId: composed.id, target: nameOf(target) };
    if (reason === null) log.info(fields, 'TLS report sent');
    else log.warn({ ...fields, reason }, 'TLS report could not be sent');
    return reason;
  }

  async function retryLater(unreported: UnreportedDay, reached: Set<string>, reason: string): Promise<void> {
    const waitMs = (retries.get(keyOf(unreported))?.waitMs ?? FIRST_RETRY_MS / 2) * 2;
    const at = clock.now() + waitMs;
    const isOver = at > (unreported.day + 1) * DAY + SPREAD_MS + GIVE_UP_MS;
    if (!isOver && (retries.size < MAX_RETRIES || retries.has(keyOf(unreported)))) {
      retries.set(keyOf(unreported), { at, waitMs, reached });
      return;
    }
    log.warn({ domain: unreported.domain, reason }, 'TLS report dropped');
    await remove(unreported);
  }

  async function remove(unreported: UnreportedDay): Promise<void> {
    await writer.run((all) => all.tlsSessions.remove(unreported));
    retries.delete(keyOf(unreported));
  }

  return {
    start: loop.start,
    stop: async () => {
      stopped = true;
      await loop.stop();
    },
  };
}

function keyOf({ day, domain }: UnreportedDay): string {
  return `${day} ${domain}`;
}

function nameOf(target: ReportTarget): string {
  return target.kind === 'https' ? target.url : target.address;
}
