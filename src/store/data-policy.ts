/**
 * What a table stores about people, how an erasure clears it and when rows are deleted by age. Each table module declares
 * the policies of its tables; `data-policies.ts` lists them, and erasure (audience/erasure) and retention
 * (events/retention) are derived from the list. test/store/data-policies.test.ts compares them with the schema.
 */
export interface DataPolicy {
  table: string;
  /** Columns that identify a recipient or contact, or contain text about one. */
  personal: readonly string[];
  /** Steps of an erasure that clear the personal columns, or why they stay. Required with personal columns. */
  erasure?: readonly ErasureStep[] | { stays: string };
  /** Required with personal columns. */
  retention?: RetentionRule | { until: string };
}

/** Steps of an erasure in their order: queued mail is cancelled before the traces of mail are cleared. */
export const ERASURE_STEPS = [
  /** Rows of the contact, removed in the unit of work that begins the erasure. */
  'contact',
  'queued mail',
  'messages',
  'events',
  'stored responses',
  'suppressions',
  'kept mail',
  'inbound mail',
] as const;
export type ErasureStep = (typeof ERASURE_STEPS)[number];

/** Deletion by age. `kind`: in metrics and log records. `period`: `limits.bodyDays`, `limits.eventDays` or `limits.inboundDays`. */
export type RetentionRule =
  | AgedRule
  | TimedRule
  /** Contents whose messages are all final, and contents that nothing refers to. */
  | { kind: 'bodies'; rows: 'contents'; period: 'bodies' }
  | { kind: 'sharedBodies'; rows: 'shared contents'; period: 'bodies' }
  /** Deliveries of events that were deleted. */
  | { kind: 'webhookDeliveries'; rows: 'deliveries'; period: 'events' }
  /** What was noted for moves of accounts that have ended, or that began long ago. */
  | { kind: 'accountChanges'; rows: 'changes of moves' };

/** Rows whose numbers rise with time, without an index on the time (maintenance/aged-rows). */
export interface AgedRule {
  kind: string;
  rows: 'aged';
  period: 'events' | 'inbound';
  /** INTEGER PRIMARY KEY. */
  number: string;
  /** Column with epoch ms. */
  time: string;
  /** A condition that rows must meet to be deleted; others are skipped. */
  only?: string;
  /** A table whose rows are deleted first: those whose column `number` has the number of a deleted row. */
  children?: { table: string; number: string };
}

/** Rows that an index has in the order of their time. */
export interface TimedRule {
  kind: string;
  rows: 'timed';
  /** `expiry`: rows are deleted at `time`, not a period after it. */
  period: 'events' | 'expiry';
  /** Columns of the primary key. */
  key: string;
  /** Column with epoch ms. */
  time: string;
}
