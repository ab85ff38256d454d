import type { Stage } from './stage.ts';

/** One fault or abuse, and what must be true of the mail that was accepted meanwhile. */
export interface Scenario {
  name: string;
  /** One line for `--list`. */
  summary: string;
  /** Part of the short variant that runs with `npm test`. */
  short?: true;
  /** What the machine must offer; the scenario is skipped, with the reason, where it does not. */
  needs?: readonly Need[];
  /** Hard limit, default 90 s. */
  limitSeconds?: number;
  run(stage: Stage): Promise<Result>;
}

/** mounts: root and a mount namespace. loop: loop devices and mkfs.ext4. faketime: Debian's libfaketime. */
export type Need = 'mounts' | 'loop' | 'faketime';

/** The ledger of one scenario. Every accepted message is delivered, returned, lost or stuck. */
export interface Result {
  /** Sends answered with 200. */
  accepted: number;
  /** Accepted messages that the destination took and that the API calls delivered. */
  delivered: number;
  /** Accepted messages that the API calls bounced or failed, where the scenario expects that. */
  returned: number;
  /** Accepted messages that the destination never took although nothing will be tried any more. */
  lost: number;
  /** Messages that the destination took again after it had taken them. */
  duplicated: number;
  duplicatesAtMost: number;
  /** What the bound is made of: `3 kills: 14 messages taken, not yet recorded`. */
  duplicatesBecause: string;
  /** Accepted messages without a final state within the bound after healing. */
  stuck: number;
  /** From healing until the backlog was gone and new mail was delivered; null when that never happened. */
  recoveryMs: number | null;
  /** Figures worth seeing in the table. */
  notes: string[];
  /** Everything else that was not as it must be; each makes the scenario fail. */
  faults: string[];
}

export type Outcome =
  | { scenario: Scenario; kind: 'ran'; result: Result; seconds: number }
  | { scenario: Scenario; kind: 'broke'; error: unknown; seconds: number }
  | { scenario: Scenario; kind: 'skipped'; reason: string };

/** Of an error's message in the report. */
const LONGEST = 600;

/** Why an outcome is a failure; empty: it passed. */
export function failuresOf(outcome: Outcome): string[] {
  if (outcome.kind === 'skipped') return [];
  if (outcome.kind === 'broke') {
    const { error } = outcome;
    const message = error instanceof Error ? error.message : String(error);
    return [`the scenario did not complete: ${message.slice(0, LONGEST)}`];
  }
  const { accepted, lost, stuck, duplicated, duplicatesAtMost, duplicatesBecause, faults } = outcome.result;
  return [
    ...(accepted === 0 ? ['nothing was accepted: the scenario proves nothing'] : []),
    ...(lost > 0 ? [`${lost} lost`] : []),
    ...(stuck > 0 ? [`${stuck} stuck`] : []),
    ...(duplicated > duplicatesAtMost
      ? [`${duplicated} duplicated, at most ${duplicatesAtMost} allowed (${duplicatesBecause})`]
      : []),
    ...faults,
  ];
}
