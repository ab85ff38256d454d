import type { ScenarioContext } from './context.ts';

/** One kind of fault or abuse; all mail that is accepted meanwhile must be delivered or returned. */
export interface Scenario {
  name: string;
  /** One line for `--list`. */
  summary: string;
  /** Part of the short variant that CI runs (`npm run test:all`). */
  short?: true;
  /** Features of the machine; without them the scenario is skipped with the reason. */
  needs?: readonly Need[];
  /** Hard limit, default 90 s. */
  limitSeconds?: number;
  run(context: ScenarioContext): Promise<Result>;
}

/** mounts: root and a mount namespace. loop: loop devices and mkfs.ext4. faketime: Debian's libfaketime. */
export type Need = 'mounts' | 'loop' | 'faketime';

/** The ledger of one scenario. Every accepted message is delivered, returned, lost or stuck. */
export interface Result {
  /** Sends answered with 200. */
  accepted: number;
  /** Accepted messages that the destination accepted and whose status is delivered. */
  delivered: number;
  /** Accepted messages whose status is bounced or failed, where the scenario expects it. */
  returned: number;
  /** Accepted messages that the destination never accepted although their status is final. */
  lost: number;
  /** Messages that the destination accepted more than once. */
  duplicated: number;
  duplicatesAtMost: number;
  /** The causes of the allowed duplicates: `14 accepted but not recorded at a kill`. */
  duplicatesBecause: string;
  /** Accepted messages without a final status within the time limit after healing. */
  stuck: number;
  /** From healing until the backlog and new mail were delivered; null: never. */
  recoveryMs: number | null;
  /** What a well-behaved account noticed of an abuse. */
  isolation?: Isolation;
  /** Figures for the report. */
  notes: string[];
  /** Other faults; each fails the scenario. */
  faults: string[];
}

/** p99 of the sends of a well-behaved account, ms. */
export interface Isolation {
  quietMs: number;
  abusedMs: number;
  /** Why `abusedMs` says nothing about the abuse; null: it must be at most `MAX_ABUSED_MS`. */
  unjudged: string | null;
}

/** The p99 of a send while others abuse the service. */
export const MAX_ABUSED_MS = 150;

export type ScenarioOutcome =
  | { scenario: Scenario; kind: 'ran'; result: Result; seconds: number }
  | { scenario: Scenario; kind: 'broke'; error: unknown; seconds: number }
  | { scenario: Scenario; kind: 'skipped'; reason: string };

/** Characters of an error message in the report. */
const MAX_ERROR_TEXT = 600;

/** The failures of a scenario; empty: it passed. */
export function failuresOf(outcome: ScenarioOutcome): string[] {
  if (outcome.kind === 'skipped') return [];
  if (outcome.kind === 'broke') {
    const { error } = outcome;
    const message = error instanceof Error ? error.message : String(error);
    return [`the scenario did not complete: ${message.slice(0, MAX_ERROR_TEXT)}`];
  }
  const { accepted, lost, stuck, duplicated, duplicatesAtMost, duplicatesBecause, isolation, faults } =
    outcome.result;
  return [
    ...(isolation !== undefined && isolation.unjudged === null && isolation.abusedMs > MAX_ABUSED_MS
      ? [`p99 of the well-behaved account is ${isolation.abusedMs.toFixed(0)} ms, above ${MAX_ABUSED_MS} ms`]
      : []),
    ...(accepted === 0 ? ['nothing was accepted: the scenario proves nothing'] : []),
    ...(lost > 0 ? [`${lost} lost`] : []),
    ...(stuck > 0 ? [`${stuck} stuck`] : []),
    ...(duplicated > duplicatesAtMost
      ? [`${duplicated} duplicated, at most ${duplicatesAtMost} allowed (${duplicatesBecause})`]
      : []),
    ...faults,
  ];
}
