import type { MessageStatus } from '../store/messages/messages.ts';

/**
 * The life of a message as a table: which event may happen in which state, and which state it leads to. A
 * move that is not here does not happen: a DSN that comes twice, or a click on a mail long bounced, changes
 * nothing it must not change.
 */
export const MESSAGE_EVENTS = [
  'email_sent',
  'email_delivered',
  'email_delayed',
  'email_bounced',
  'email_suppressed',
  'email_rejected',
  'email_failed',
  'email_complained',
  'email_opened',
  'email_clicked',
  'email_unsubscribed',
] as const;
export type MessageEventKind = (typeof MESSAGE_EVENTS)[number];

export const DOMAIN_EVENTS = ['domain_verified', 'domain_failing', 'domain_failed'] as const;
export type DomainEventKind = (typeof DOMAIN_EVENTS)[number];

interface Move {
  from: readonly MessageStatus[];
  /** 'same': the event is recorded, the state stays. */
  to: MessageStatus | 'same';
  /** The message leaves the queue. */
  final: boolean;
}

const WAITING: readonly MessageStatus[] = ['queued', 'deferred', 'sending'];
const EVERY: readonly MessageStatus[] = [
  ...WAITING,
  'delivered',
  'bounced',
  'failed',
  'complained',
  'cancelled',
];

export const LIFECYCLE: Record<MessageEventKind, Move> = {
  // From `sending` too: a daemon that died held it, and its successor takes it again.
  email_sent: { from: WAITING, to: 'sending', final: false },
  email_delivered: { from: ['sending'], to: 'delivered', final: true },
  email_delayed: { from: ['sending'], to: 'deferred', final: false },
  // After delivery: a DSN of a server behind the one that took it.
  email_bounced: { from: ['sending', 'delivered'], to: 'bounced', final: true },
  email_rejected: { from: ['sending', 'delivered'], to: 'bounced', final: true },
  email_suppressed: { from: WAITING, to: 'failed', final: true },
  email_failed: { from: WAITING, to: 'failed', final: true },
  email_complained: { from: ['sending', 'delivered', 'bounced'], to: 'complained', final: true },
  email_opened: { from: EVERY, to: 'same', final: false },
  email_clicked: { from: EVERY, to: 'same', final: false },
  email_unsubscribed: { from: EVERY, to: 'same', final: false },
};

/**
 * The same where others tell of it, in reports that come in by mail: they may know of a message that we have
 * lost sight of, because its connection broke after the final dot.
 */
export const REPORTED: Partial<Record<MessageEventKind, Move>> = {
  email_delivered: { from: ['sending', 'deferred'], to: 'delivered', final: true },
  // Somebody behind the server that took it goes on trying: we are done with it all the same.
  email_delayed: { from: ['sending', 'deferred', 'delivered'], to: 'same', final: false },
  email_bounced: { from: ['sending', 'deferred', 'delivered'], to: 'bounced', final: true },
  email_complained: { from: ['sending', 'deferred', 'delivered', 'bounced'], to: 'complained', final: true },
};

/**
 * The state an event leads to from `status`, null when it may not happen there; `reported` when it is known
 * from somebody's report only.
 */
export function move(
  status: MessageStatus,
  kind: MessageEventKind,
  reported = false,
): { to: MessageStatus; final: boolean } | null {
  const rule = (reported ? REPORTED[kind] : undefined) ?? LIFECYCLE[kind];
  if (!rule.from.includes(status)) return null;
  return { to: rule.to === 'same' ? status : rule.to, final: rule.final };
}
