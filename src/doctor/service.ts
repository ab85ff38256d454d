import { SECOND } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { CHECKS } from './checks.ts';
import type { DoctorParts } from './context.ts';
import { FINDING_STATUSES, type Finding, type FindingStatus } from './finding.ts';
import { runChecks } from './run.ts';

export type Doctor = ReturnType<typeof createDoctor>;

export interface DoctorReport {
  /** When the run began, epoch ms. */
  checkedAt: number;
  durationMs: number;
  counts: Record<FindingStatus, number>;
  findings: Finding[];
}

const CACHE_MS = 30 * SECOND;
/** The request waits for the run. */
const MAX_DOMAINS = 20;
const INTEGRITY_MS = 10 * SECOND;

/**
 * The checks in the daemon, for its API: one run at a time, with its result cached. Runs no check until `examine`. A run
 * examines 20 domains and reads the database for up to 10 s (integrity); its result is cached for 30 s after its end, an
 * error is not cached.
 */
export function createDoctor(parts: DoctorParts) {
  const { clock, monotonic } = parts;
  const stopping = new AbortController();
  let last: { report: DoctorReport; endedAt: number } | null = null;
  let running: Promise<DoctorReport | Refusal> | null = null;

  async function run(): Promise<DoctorReport> {
    const checkedAt = clock.now();
    const began = monotonic.now();
    const options = { domain: null, maxDomains: MAX_DOMAINS, integrityMs: INTEGRITY_MS };
    const findings = await runChecks(CHECKS, parts, options, { signal: stopping.signal });
    const endedAt = monotonic.now();
    const report = {
      checkedAt,
      durationMs: Math.round(endedAt - began),
      counts: countsOf(findings),
      findings,
    };
    last = { report, endedAt };
    return report;
  }

  return {
    /**
     * The result of the run in progress, or one that is at most CACHE_MS old, else of a new one. Refuses (`UNAVAILABLE`) after
     * `stop`.
     */
    examine: (): Promise<DoctorReport | Refusal> => {
      if (running !== null) return running;
      if (last !== null && monotonic.now() - last.endedAt < CACHE_MS) return Promise.resolve(last.report);
      running = run()
        .catch((error: unknown) => {
          if (stopping.signal.aborted)
            return refuse('UNAVAILABLE', 'The daemon is stopping: try again after its restart');
          throw error;
        })
        .finally(() => {
          running = null;
        });
      return running;
    },
    /** Cancels the run in progress. */
    stop: (): void => stopping.abort(),
  };
}

/** How many findings have each status. */
export function countsOf(findings: readonly Finding[]): Record<FindingStatus, number> {
  const counts: Record<FindingStatus, number> = { failure: 0, warning: 0, unknown: 0, ok: 0 };
  for (const status of FINDING_STATUSES)
    counts[status] = findings.filter((finding) => finding.status === status).length;
  return counts;
}
