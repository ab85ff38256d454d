import type { ApiClient } from './api-client.ts';

/** Number of accepted messages by state, as the API presents it. */
export interface Ledger {
  accepted: number;
  delivered: number;
  bounced: number;
  /** Expired or cancelled. */
  failed: number;
  /** Waiting, in progress, or deferred. */
  queued: number;
}

export async function readLedger(api: ApiClient): Promise<Ledger> {
  const ledger: Ledger = { accepted: 0, delivered: 0, bounced: 0, failed: 0, queued: 0 };
  for (const { status } of await api.allMessages()) {
    ledger.accepted++;
    ledger[COLUMN[status] ?? 'queued']++;
  }
  return ledger;
}

const COLUMN: Record<string, keyof Ledger> = {
  delivered: 'delivered',
  complained: 'delivered',
  bounced: 'bounced',
  failed: 'failed',
  cancelled: 'failed',
};

/** Messages whose events are out of order: `email_sent` not exactly once, an outcome before it, or two deliveries. */
export async function faultsInEvents(api: ApiClient): Promise<string[]> {
  const kinds = new Map<string, string[]>();
  for (const { messageId, event } of await api.allEvents()) {
    if (typeof messageId !== 'string') continue;
    kinds.set(messageId, [...(kinds.get(messageId) ?? []), event]);
  }
  return [...kinds].flatMap(([messageId, events]) => {
    const sent = events.filter((event) => event === 'email_sent').length;
    const delivered = events.filter((event) => event === 'email_delivered').length;
    const valid = sent === 1 && events[0] === 'email_sent' && delivered <= 1;
    return valid ? [] : [`${messageId}: ${events.join(', ')}`];
  });
}
