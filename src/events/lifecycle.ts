import type { MessageStatus } from '../store/messages.ts';

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
const EVERY: readonly MessageStatus[] = [...WAITING, 'delivered', 'bounced', 'failed', 'complained'];

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

/** The state an event leads to from `status`, null when it may not happen there. */
export function move(
  status: MessageStatus,
  kind: MessageEventKind,
): { to: MessageStatus; final: boolean } | null {
  const rule = LIFECYCLE[kind];
  if (!rule.from.includes(status)) return null;
  return { to: rule.to === 'same' ? status : rule.to, final: rule.final };
}
