import { iso, isoOrNull } from '../core/clock.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import type { EventRow } from '../store/messages/events.ts';
import { readLabels } from '../store/messages/labels.ts';
import type { MessageFilter, MessagePage } from '../store/messages/message-list.ts';
import type { AttemptRow, ListedMessage, MessageStatus, ShownStatus } from '../store/messages/messages.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { presentEvent } from './feed.ts';

/** The statuses of messages for which an event states why. */
const FAILED: ReadonlySet<MessageStatus> = new Set(['deferred', 'bounced', 'failed']);

/**
 * A message as the API and the CLI present it. `reason`: why it was deferred, bounced or dropped; null: unknown, or it was
 * not.
 */
export function presentMessage(row: ListedMessage, reason: string | null = null) {
  const { due_at: dueAt, scheduled_at: scheduledAt } = row;
  const status = shownStatus(row);
  const isPutOff = status === 'queued' && dueAt !== null && dueAt > row.created_at;
  const isLater = row.hold_reason === null && (status === 'deferred' || status === 'scheduled' || isPutOff);
  return withoutNulls({
    messageId: row.message_id,
    jobId: row.job_id,
    campaignId: row.campaign_id,
    subscriptionGroupId: row.subscription_group_id,
    useCase: row.use_case,
    domainId: row.domain_id,
    from: row.from_address,
    recipient: row.recipient,
    role: row.role,
    subject: row.subject,
    status,
    attempts: row.attempts,
    reason,
    livemode: row.simulated === 0,
    simulated: row.simulated === 1 ? true : null,
    heldBecause: row.hold_reason,
    scheduledAt: isoOrNull(scheduledAt),
    nextAttemptAt: isLater ? isoOrNull(dueAt) : null,
    ...readLabels(row.labels),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  });
}

/** The status of a message as callers see it. */
export function shownStatus({ status, scheduled_at: scheduledAt }: ListedMessage): ShownStatus {
  return status === 'queued' && scheduledAt !== null ? 'scheduled' : status;
}

/** A page of messages, and for each why it was deferred, bounced or dropped. */
export interface ExplainedPage extends MessagePage {
  reasons: (string | null)[];
}

/** Reads a page of messages. */
export const messagePage = readQuery(
  'messagePage',
  (tables: Tables, filter: MessageFilter): ExplainedPage => {
    const page = tables.messages.list(filter);
    return { ...page, reasons: page.rows.map((row) => failureOf(tables, row)) };
  },
);

/** Why a message was deferred, bounced or dropped, by its last event that states it; null: unknown, or it was not. */
function failureOf(tables: Tables, { seq, status }: ListedMessage): string | null {
  const fields = FAILED.has(status) ? tables.events.lastFailure(seq) : null;
  if (fields === null) return null;
  const { classification, reasonCode, reason }: Record<string, unknown> = JSON.parse(fields);
  return [classification, reasonCode, reason].find((each) => typeof each === 'string') ?? null;
}

/** A message with its events and attempts, oldest first. */
export interface MessageHistory {
  message: ListedMessage;
  /** Why it was deferred, bounced or dropped; null: unknown, or it was not. */
  reason: string | null;
  events: EventRow[];
  attempts: AttemptRow[];
}

/**
 * Reads a message and its history; null: there is none with this id. One read, as the status and the events must be of the
 * same state of the database.
 */
export const messageHistory = readQuery(
  'messageHistory',
  (tables: Tables, messageId: string): MessageHistory | null => {
    const message = tables.messages.byId(messageId);
    if (message === null) return null;
    const { seq } = message;
    const reason = failureOf(tables, message);
    return {
      message,
      reason,
      events: tables.events.ofMessage(seq),
      attempts: tables.messages.attemptsOf(seq),
    };
  },
);

/** Every event and every SMTP attempt, in the order in which they happened. */
export function presentTimeline(history: MessageHistory): Record<string, unknown>[] {
  const events = history.events.map((row) => ({
    at: row.at,
    rank: row.kind === 'email_sent' ? 0 : 2,
    entry: { type: 'event', ...presentEvent(row) },
  }));
  const attempts = history.attempts.map((row) => ({ at: row.at, rank: 1, entry: presentAttempt(row) }));
  // Within one millisecond `email_sent` precedes the first attempt, and each attempt the events that follow from it.
  return [...events, ...attempts].sort((a, b) => a.at - b.at || a.rank - b.rank).map(({ entry }) => entry);
}

function presentAttempt(row: AttemptRow): Record<string, unknown> {
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
