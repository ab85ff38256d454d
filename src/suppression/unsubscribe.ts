import { addOptOut, leaveGroup, optOutsOf, removeOptOuts, returnToGroup } from '../audience/opt-out.ts';
import type { AbuseReportReason, EventFields, MessageEventKind } from '../events/event-types.ts';
import type { EventWithoutMessage, OnSuppressionChange, Recorder } from '../events/record.ts';
import type { SentMail } from '../mail/sent-mail.ts';
import type { OptOutMethod } from '../store/contacts/consent.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Opt-outs of recipients, by one click, the page or mail. An opt-out of mail to a subscription group stops mail to that
 * group; an opt-out of other mail stops its stream. The choice `all` stops the whole stream, and for transactional mail
 * both streams. Opt-outs are stored by the hash of the recipient, so that they work after the message and the contact
 * were deleted. A repeated opt-out changes nothing and records no event.
 */

/** What a recipient opts out of. */
export type Choice = 'list' | 'all';

/** What an opt-out can stop. */
export type OptOutPart = 'group' | 'mk' | 'tx';

/** How and from where the recipient opted out. */
export interface OptOutSource {
  method: OptOutMethod;
  ip: string | null;
  userAgent: string | null;
}

export interface OptOutState {
  /** The name of the group that the mail was sent to; null: there is none, or it was deleted. */
  groupName: string | null;
  /** What each choice would stop. */
  choices: Record<Choice, readonly OptOutPart[]>;
  /** What is stopped by an opt-out of the recipient. */
  stopped: readonly OptOutPart[];
}

/**
 * Keeps no state. `state` only reads. `undo` records no event and leaves suppressions of other reasons;
 * `onSuppressionChange` is called for a stream, not for a group.
 */
export function createUnsubscribing(
  { clock }: Pick<Context, 'clock'>,
  { recorder, onSuppressionChange }: { recorder: Recorder; onSuppressionChange: OnSuppressionChange },
) {
  function state(tables: Tables, mail: SentMail): OptOutState {
    const group = groupOf(tables, mail);
    const choices = {
      list: partsOf(mail, group, 'list'),
      all: partsOf(mail, group, 'all'),
    };
    const parts = [...new Set([...choices.list, ...choices.all])];
    return {
      groupName: group?.name ?? null,
      choices,
      stopped: parts.filter((part) => isStopped(tables, mail, group, part)),
    };
  }

  function stop(tables: Tables, mail: SentMail, part: OptOutPart, source: OptOutSource): boolean {
    if (part === 'group') {
      const group = groupOf(tables, mail);
      return group !== null && leaveGroup(tables, group, mail.recipientHash, evidence(source));
    }
    const message = tables.messages.byId(mail.messageId);
    const suppression = {
      account_id: mail.accountId,
      recipient_hash: mail.recipientHash,
      stream: part,
      email: message?.recipient ?? null,
      message_seq: message?.seq ?? null,
      created_at: clock.now(),
    };
    const added = addOptOut(tables, suppression, evidence(source));
    if (added) onSuppressionChange(tables, mail.accountId, mail.recipientHash);
    return added;
  }

  function restore(tables: Tables, mail: SentMail, part: OptOutPart, source: OptOutSource): boolean {
    if (part === 'group') {
      const group = groupOf(tables, mail);
      return group !== null && returnToGroup(tables, group, mail.recipientHash, evidence(source));
    }
    const { accountId, recipientHash: identifier } = mail;
    const removed = removeOptOuts(tables, { accountId, identifier, stream: part }, evidence(source));
    if (removed) onSuppressionChange(tables, accountId, identifier);
    return removed;
  }

  function recordOptOut(
    tables: Tables,
    mail: SentMail,
    stopped: readonly OptOutPart[],
    { method, ip, userAgent }: OptOutSource,
  ): void {
    const fields = {
      method,
      scope: scopeOf(stopped),
      ...(ip === null ? {} : { ip }),
      ...(userAgent === null ? {} : { userAgent }),
    };
    const message = tables.messages.byId(mail.messageId);
    if (message !== null) recorder.message(tables, message, { kind: 'email_unsubscribed', fields });
    else recorder.optedOut(tables, withoutMessage(mail, fields));
  }

  const evidence = ({ method, ip, userAgent }: OptOutSource) => ({
    method,
    provenance: { by: 'recipient', ipAddress: ip, userAgent, at: clock.now() },
  });

  return {
    state,
    /** In a unit of work; returns what was not stopped before. */
    optOut: (tables: Tables, mail: SentMail, choice: Choice, source: OptOutSource): OptOutPart[] => {
      // Simulated mail has no recipient.
      if (mail.simulated) return [];
      const stopped = partsOf(mail, groupOf(tables, mail), choice).filter((part) =>
        stop(tables, mail, part, source),
      );
      if (stopped.length > 0) recordOptOut(tables, mail, stopped, source);
      return stopped;
    },
    /** Removes opt-outs in a unit of work: those of `parts` that this mail can stop. Returns what was stopped. */
    undo: (
      tables: Tables,
      mail: SentMail,
      parts: readonly OptOutPart[],
      source: OptOutSource,
    ): OptOutPart[] => {
      const { stopped } = state(tables, mail);
      return stopped.filter((part) => parts.includes(part) && restore(tables, mail, part, source));
    },
  };
}

export type Unsubscribing = ReturnType<typeof createUnsubscribing>;

/** An event about a mail whose message was deleted. */
export function withoutMessage<Kind extends MessageEventKind>(
  mail: SentMail,
  fields: EventFields[Kind],
): EventWithoutMessage<Kind> {
  return {
    accountId: mail.accountId,
    domainId: null,
    fields: {
      contactIdentifier: mail.recipientHash,
      useCase: mail.stream,
      ...(mail.groupId === null ? {} : { subscriptionGroupId: mail.groupId }),
      ...fields,
    },
  };
}

function groupOf(tables: Tables, mail: SentMail): SubscriptionGroupRow | null {
  return mail.groupId === null ? null : tables.subscriptionGroups.get(mail.accountId, mail.groupId);
}

/** When the group was deleted, the choice `list` stops the stream. */
function partsOf(mail: SentMail, group: SubscriptionGroupRow | null, choice: Choice): OptOutPart[] {
  if (mail.stream === 'tx') return choice === 'all' ? ['tx', 'mk'] : ['tx'];
  return choice === 'list' && group !== null ? ['group'] : ['mk'];
}

function isStopped(
  tables: Tables,
  mail: SentMail,
  group: SubscriptionGroupRow | null,
  part: OptOutPart,
): boolean {
  if (part === 'group') return group !== null && tables.groupOptOuts.has(group.seq, mail.recipientHash);
  return optOutsOf(tables, mail.accountId, mail.recipientHash).some(({ stream }) => stream === part);
}

function scopeOf(stopped: readonly OptOutPart[]): NonNullable<EventFields['email_unsubscribed']['scope']> {
  if (stopped.length > 1) return 'all';
  const names = { group: 'group', mk: 'marketing', tx: 'transactional' } as const;
  return names[stopped[0] ?? 'mk'];
}

/** A report that a recipient sends with the link in a mail. */
interface AbuseReport {
  reason: AbuseReportReason;
  ip: string;
  userAgent: string;
}

/**
 * Records a complaint and ends the account's marketing mail to the recipient; transactional mail continues. Called in a
 * unit of work. Returns false, and records nothing, when the mail was reported before.
 */
export type ReportAbuse = (tables: Tables, mail: SentMail, report: AbuseReport) => boolean;

/**
 * Keeps no state. For a message that was purged, the suppression of the stream `mk` with reason `complaint` shows
 * whether it was reported before; simulated mail is then ignored.
 */
export function createReportAbuse(
  { clock }: Pick<Context, 'clock'>,
  { recorder, onSuppressionChange }: { recorder: Recorder; onSuppressionChange: OnSuppressionChange },
): ReportAbuse {
  return (tables, mail, { reason, ip, userAgent }) => {
    const fields: EventFields['email_complained'] = {
      source: 'report_link',
      feedbackType: 'abuse',
      reportReason: reason,
      ip,
      userAgent,
    };
    const message = tables.messages.byId(mail.messageId);
    if (message !== null) {
      // The recipient has the mail, even if the connection was lost before its delivery was confirmed.
      const event = { kind: 'email_complained', fields } as const;
      return recorder.message(tables, message, event, { reported: true });
    }
    if (mail.simulated) return false;
    const added = tables.suppressions.add({
      account_id: mail.accountId,
      recipient_hash: mail.recipientHash,
      stream: 'mk',
      reason: 'complaint',
      email: null,
      message_seq: null,
      created_at: clock.now(),
    });
    if (!added) return false;
    onSuppressionChange(tables, mail.accountId, mail.recipientHash);
    recorder.complained(tables, withoutMessage(mail, { ...fields, suppressed: true }));
    return true;
  };
}
