/**
 * What is prepared for a campaign that is not sent. The person who sends it sees these values; the send itself uses those of its
 * request, so nothing here is checked against groups, templates and domains.
 */
export interface PreparedSend {
  subscriptionGroupId?: string | undefined;
  templateId?: string | undefined;
  from?: string | undefined;
  subject?: string | undefined;
  perHour?: number | undefined;
  /** ISO 8601. */
  scheduledAt?: string | undefined;
}

/** Reads the stored form. */
export function readPrepared(stored: string | null): PreparedSend | null {
  // Sound: only `writePrepared` and the import of accounts, which checks it, write it.
  return stored === null ? null : (JSON.parse(stored) as PreparedSend);
}

/** The stored form; null: nothing is prepared. */
export function writePrepared(prepared: PreparedSend | null): string | null {
  return prepared === null ? null : JSON.stringify(prepared);
}
