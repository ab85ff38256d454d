import type { BounceClass, BounceScope, BounceType, SuppressWhen } from '../classify/classify.ts';

/** What a bounce, complaint or automatic reply reports about one recipient. */
export interface IncomingReport {
  recipient: string;
  /** failed, delayed, delivered, relayed, expanded; `complained` and `replied` for the other kinds. */
  action: string;
  /** RFC 3463; '' when the mail is not about a delivery. */
  status: string;
  /** Null when nothing bounced. */
  bounceType: BounceType | null;
  classification: BounceClass;
  /** `550`, null when no reply is quoted. */
  replyCode: string | null;
  diagnostic: string;
  remoteMta: string | null;
  /** What the report is about, and whether it may suppress the address; see `Classification`. */
  scope: BounceScope;
  suppress: SuppressWhen;
  /** Complaints only (RFC 5965 §3.1): abuse, fraud, opt-out, ... */
  feedbackType?: string;
}

/** The fields of a report that are equal whenever nothing bounced. */
export const NO_BOUNCE = {
  status: '',
  bounceType: null,
  classification: 'unclassified',
  replyCode: null,
  remoteMta: null,
  scope: 'recipient',
  suppress: 'never',
} as const satisfies Partial<IncomingReport>;
