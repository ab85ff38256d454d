import type { BounceType, Classification, Scope, Suppress } from '../classify/classify.ts';

/** What a mail that came back says of one recipient. */
export interface IncomingReport {
  recipient: string;
  /** failed, delayed, delivered, relayed, expanded; `complained` and `replied` for the other kinds. */
  action: string;
  /** RFC 3463; '' where no delivery is spoken of. */
  status: string;
  /** Null when nothing bounced. */
  bounceType: BounceType | null;
  classification: Classification;
  /** `550`, null when no reply is quoted. */
  replyCode: string | null;
  diagnostic: string;
  remoteMta: string | null;
  /** Whom it is about, and whether it may suppress the address; as in the classifier's verdict. */
  scope: Scope;
  suppress: Suppress;
  /** Complaints only (RFC 5965 §3.1): abuse, fraud, opt-out, ... */
  feedbackType?: string;
}

/** The part of a report that is the same whenever nothing bounced. */
export const NO_BOUNCE = {
  status: '',
  bounceType: null,
  classification: 'unclassified',
  replyCode: null,
  remoteMta: null,
  scope: 'recipient',
  suppress: 'never',
} as const satisfies Partial<IncomingReport>;
