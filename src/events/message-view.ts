import { iso } from '../core/clock.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { AttemptRow, ListedMessage } from '../store/messages/messages.ts';
import { HELD } from '../store/messages/queue.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { publicEvent } from './feed.ts';

/** It waits for a time: scheduled, or to be tried again. */
function isLater({ status, due_at, created_at }: ListedMessage): boolean {
  return status === 'deferred' || (status === 'queued' && due_at !== null && due_at > created_at);
}

/** A message as callers and operators read it. */
export function publicMessage(row: ListedMessage): Record<string, unknown> {
  return {
    messageId: row.message_id,
    ...(row.job_id === null ? {} : { jobId: row.job_id }),
    ...(row.campaign_id === null ? {} : { campaignId: row.campaign_id }),
    ...(row.subscription_group_id === null ? {} : { subscriptionGroupId: row.subscription_group_id }),
    useCase: row.use_case,
    domainId: row.domain_id,
    from: row.from_address,
    recipient: row.recipient,
    role: row.role,
    subject: row.subject,
    status: row.status,
    attempts: row.attempts,
    ...(row.due_at !== null && row.due_at < HELD && isLater(row) ? { nextAttemptAt: iso(row.due_at) } : {}),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

/** What happened to a message. */
export interface MessageHistory {
  events: EventRow[];
  attempts: AttemptRow[];
}

/** The history of the message with this seq, as reader threads read it. */
export const messageHistory = readQuery(
  'messageHistory',
  (tables: Tables, seq: number): MessageHistory => ({
    events: tables.events.ofMessage(seq),
    attempts: tables.messages.attemptsOf(seq),
  }),
);

/** Every event and every SMTP attempt, in the order in which they happened. */
export function messageTimeline(history: MessageHistory): Record<string, unknown>[] {
  const events = history.events.map((row) => ({
    at: row.at,
    rank: 1,
    entry: { type: 'event', ...publicEvent(row) },
  }));
  const attempts = history.attempts.map((row) => ({ at: row.at, rank: 0, entry: publicAttempt(row) }));
  // Of the same millisecond: the attempt first, then what was concluded from it.
  return [...events, ...attempts].sort((a, b) => a.at - b.at || a.rank - b.rank).map(({ entry }) => entry);
}

function publicAttempt(row: AttemptRow): Record<string, unknown> {
  const { sessions, ...report }: { sessions: { startedAt: number; endedAt: number }[] } = JSON.parse(
    row.report,
  );
  return {
    type: 'attempt',
    timestamp: iso(row.at),
    attempt: row.attempt,
    lane: row.lane,
    ...report,
    sessions: sessions.map((session) => ({
      ...session,
      startedAt: iso(session.startedAt),
      endedAt: iso(session.endedAt),
    })),
  };
}
