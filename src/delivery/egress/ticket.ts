import type { QueuePriority } from '../../store/messages/queue.ts';
import type { EgressEntry } from '../routing/egress.ts';
import type { AttemptReport, TargetHost } from '../worker/protocol.ts';

/** What the choice of the address depends on. */
export interface EgressMail {
  /**
   * Provider that `providerOfHosts` returns; null: mail over a fixed route, for which addresses are neither limited
   * nor judged.
   */
  provider: string | null;
  priority: QueuePriority;
  hosts: readonly TargetHost[];
}

/** The source address of one attempt, and what the attempt counts toward. `Egress` describes how it ends. */
export interface EgressTicket {
  entry: EgressEntry;
  /** Provider of the recipient; null: mail over a fixed route. */
  provider: string | null;
  /** The provider to which the message counts. */
  countedAs: string;
  /** Epoch ms at which the day of the count begins. */
  day: number;
  pool: string;
  mail: EgressMail;
  /** Whether the provider refuses the address, and the attempt tests whether it still does. */
  isProbe: boolean;
}

export type SettledReport = Pick<AttemptReport, 'sessions'> & {
  conclusion: AttemptReport['conclusion'] | 'worker-lost';
};

/** A limit that a message waits for. */
export interface EgressObstacle {
  kind: 'warmup' | 'unusable';
  entry: string | null;
  address: string;
  provider: string;
  /** Messages of the day; null: the obstacle is not a limit of messages. */
  limit: { cap: number; used: number } | null;
  /** Epoch ms of the next attempt. */
  until: number;
  /** `waits for tomorrow's warm-up quota of 192.0.2.1 at Google (50 of 50 used)` */
  text: string;
}

export interface EgressProblem {
  entry: string;
  /** Null: at all providers. */
  provider: string | null;
  reason: string;
}

/** Use of a warm-up on the current day. */
export interface WarmupUse {
  entry: string;
  provider: string;
  used: number;
  cap: number;
}
