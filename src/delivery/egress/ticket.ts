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
  /** Whose refusals of an address count together (`Profiles.receiverOf`). Default: the provider. */
  receiver?: string | undefined;
  priority: QueuePriority;
  hosts: readonly TargetHost[];
}

/** Whose refusals of an address count together; null: addresses are not judged. */
export function receiverOf({ provider, receiver }: EgressMail): string | null {
  return provider === null ? null : (receiver ?? provider);
}

/** The name of the entry in the table `egress_health`. */
export function healthName({ name }: Pick<EgressEntry, 'name'>): string {
  return name ?? '';
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
  /** Absent: no reply decided. */
  phase?: AttemptReport['phase'];
};

/** What a message waits for: a limit, or an address that can be used. */
export interface EgressObstacle {
  kind: 'warmup' | 'unusable' | 'blocked';
  entry: string | null;
  address: string;
  provider: string;
  /** Of an address that is blocked. */
  block?: AddressBlock;
  /** Messages of the day; null: the obstacle is not a limit of messages. */
  limit: { cap: number; used: number } | null;
  /** Epoch ms of the next attempt. */
  until: number;
  /** `waits for tomorrow's warm-up quota of 192.0.2.1 at Google (50 of 50 used)` */
  text: string;
}

/** Where a source address is blocked, and how to end it. */
export interface AddressBlock {
  /** As receivers see it. */
  address: string;
  /** The shaping profile, MX hosts or provider that refuses it. */
  receiver: string;
  /** Epoch ms, like `nextProbeAt`. */
  since: number;
  nextProbeAt: number;
  /** The last refusal, without mail addresses. */
  reply: string;
  /** How to ask for the removal of the block, a sentence. */
  delisting: string;
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
