import { leaveGroup, returnToGroup } from '../audience/opt-out.ts';
import type { Clock } from '../core/clock.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import type { SentMail } from '../mail/sent-mail.ts';
import type { OptOutMethod } from '../store/contacts/consent.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Tables } from '../store/tables.ts';

/**
 * What it means when somebody who got a mail wants no more of it, by whatever way that is said (one click, the
 * page, mail). Mail to a subscription group stops that group; other mail stops its stream; `all` on the page
 * stops the whole stream, and of a transactional mail both streams. Acts by the recipient's hash, so that it
 * holds when message and contact are long gone. Saying it again changes nothing and tells nobody.
 */
export type Choice = 'list' | 'all';

/** What can be stopped and taken up again. */
export type OptOutPart = 'group' | 'mk' | 'tx';

/** How it was said, and from where. */
export interface Word {
  method: OptOutMethod;
  ip: string | null;
  userAgent: string | null;
}

export interface Standing {
  /** Of the group that the mail was sent to; null: of none, or it was deleted. */
  groupName: string | null;
  /** What each choice would stop. */
  choices: Record<Choice, readonly OptOutPart[]>;
  /** What is stopped now by the person's own word. */
  stopped: readonly OptOutPart[];
}

export interface Unsubscribing {
  standing(tables: Tables, mail: SentMail): Standing;
  /** In a unit of work; returns what it stopped that was not stopped before. */
  optOut(tables: Tables, mail: SentMail, choice: Choice, word: Word): OptOutPart[];
  /** Takes an opt-out back, in a unit of work: of `parts`, what the mail could stop and is stopped. */
  undo(tables: Tables, mail: SentMail, parts: readonly OptOutPart[], word: Word): OptOutPart[];
}

export interface UnsubscribingSettings {
  clock: Clock;
  recorder: Recorder;
  onSuppressionChange: OnSuppressionChange;
}

export function createUnsubscribing(settings: UnsubscribingSettings): Unsubscribing {
  const { clock, recorder, onSuppressionChange } = settings;

  function standing(tables: Tables, mail: SentMail): Standing {
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

  function stop(tables: Tables, mail: SentMail, part: OptOutPart, word: Word): boolean {
    if (part === 'group') {
      const group = groupOf(tables, mail);
      return group !== null && leaveGroup(tables, group, mail.recipientHash, consentWord(word));
    }
    const message = tables.messages.byId(mail.messageId);
    const added = tables.suppressions.add({
      account_id: mail.accountId,
      recipient_hash: mail.recipientHash,
      stream: part,
      reason: 'unsubscribe',
      email: message?.recipient ?? null,
      message_seq: message?.seq ?? null,
      created_at: clock.now(),
    });
    if (added) onSuppressionChange(tables, mail.accountId, mail.recipientHash);
    return added;
  }

  function takeUpAgain(tables: Tables, mail: SentMail, part: OptOutPart, word: Word): boolean {
    if (part === 'group') {
      const group = groupOf(tables, mail);
      return group !== null && returnToGroup(tables, group, mail.recipientHash, consentWord(word));
    }
    const own = ownSuppressions(tables, mail, part);
    for (const { seq } of own) tables.suppressions.remove(seq);
    if (own.length > 0) onSuppressionChange(tables, mail.accountId, mail.recipientHash);
    return own.length > 0;
  }

  function tell(tables: Tables, mail: SentMail, stopped: readonly OptOutPart[], word: Word): void {
    const fields = {
      method: word.method,
      scope: scopeOf(stopped),
      ...(word.ip === null ? {} : { ip: word.ip }),
      ...(word.userAgent === null ? {} : { userAgent: word.userAgent }),
    };
    const message = tables.messages.byId(mail.messageId);
    if (message !== null) recorder.message(tables, message, 'email_unsubscribed', { fields });
    else recorder.optedOut(tables, withoutMessage(mail, fields));
  }

  const consentWord = ({ method, ip, userAgent }: Word) => ({
    method,
    provenance: { by: 'recipient', ipAddress: ip, userAgent, at: clock.now() },
  });

  return {
    standing,
    optOut: (tables, mail, choice, word) => {
      // Simulated mail was to nobody: whoever answers it changes nothing.
      if (mail.simulated) return [];
      const stopped = partsOf(mail, groupOf(tables, mail), choice).filter((part) =>
        stop(tables, mail, part, word),
      );
      if (stopped.length > 0) tell(tables, mail, stopped, word);
      return stopped;
    },
    undo: (tables, mail, parts, word) => {
      const { stopped } = standing(tables, mail);
      return stopped.filter((part) => parts.includes(part) && takeUpAgain(tables, mail, part, word));
    },
  };
}

/** The fields of an event that no message lends its own to. */
export function withoutMessage(mail: SentMail, fields: Record<string, unknown>) {
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

/** Where the group is gone, what is left of the choice is the stream. */
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
  return ownSuppressions(tables, mail, part).length > 0;
}

/** Those that came of the person's own word: what bounced or was complained about is not for them to lift. */
function ownSuppressions(tables: Tables, mail: SentMail, stream: 'mk' | 'tx') {
  return tables.suppressions
    .of(mail.accountId, mail.recipientHash)
    .filter((row) => row.reason === 'unsubscribe' && row.stream === stream);
}

function scopeOf(stopped: readonly OptOutPart[]): string {
  if (stopped.length > 1) return 'all';
  const names = { group: 'group', mk: 'marketing', tx: 'transactional' } as const;
  return names[stopped[0] ?? 'mk'];
}
