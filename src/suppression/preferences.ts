import { leaveGroup, marketingOptOuts, removeOptOuts, returnToGroup } from '../audience/opt-out.ts';
import { changePerson } from '../audience/people.ts';
import type { ConsentInput, ProfileChanges } from '../audience/profile.ts';
import { marketingStanding } from '../audience/standing.ts';
import { changeMembership, joinGroup } from '../audience/subscriptions.ts';
import { DAY } from '../core/clock.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import type { SentMail } from '../mail/sent-mail.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import { type OptOutSource, type Unsubscribing, withoutMessage } from './unsubscribe.ts';

/*
 * What a person may change on the preference page, with the link of any mail: membership in public groups and in the group
 * of the mail, a pause of marketing mail, language and profile, an opt-out from all marketing mail, and a request for
 * erasure. People without a contact, and erased ones, have no preferences.
 */

/** A group of the page, and whether the person gets its mail. */
export interface GroupChoice {
  group: SubscriptionGroupRow;
  isOn: boolean;
}

export interface PreferenceState {
  contact: KnownContact;
  groups: readonly GroupChoice[];
  /** The person opted out of all marketing mail. */
  isStopped: boolean;
  /** Marketing mail is suppressed for another reason, which the page cannot end. */
  isBlocked: boolean;
}

/** What the form with the lists saves. */
export interface PreferenceChanges {
  /** Groups that were shown, and whether they are switched on. Others do not change. */
  groups: ReadonlyMap<string, boolean>;
  profile: Pick<ProfileChanges, 'firstName' | 'lastName' | 'phone' | 'language' | 'customFields'>;
}

/** Days for which a person may pause marketing mail. */
export const PAUSE_DAYS = [30, 90] as const;
export type PauseDays = (typeof PAUSE_DAYS)[number];

/** Groups that a page shows. */
const MAX_GROUPS = 100;
const SOURCE = 'preference_page';

/** Keeps no state; each function but `state` is called in a unit of work, and changes nothing for simulated mail. */
export function createPreferences(
  { clock }: Pick<Context, 'clock'>,
  {
    recorder,
    unsubscribing,
    onSuppressionChange,
  }: { recorder: Recorder; unsubscribing: Unsubscribing; onSuppressionChange: OnSuppressionChange },
) {
  const optOut = ({ ip, userAgent }: OptOutSource) => ({
    method: 'page' as const,
    provenance: { by: 'recipient', ipAddress: ip, userAgent: userAgent || null, at: clock.now() },
  });

  function state(tables: Tables, mail: SentMail): PreferenceState | null {
    const { accountId, recipientHash } = mail;
    const contact = tables.contacts.byIdentifier(accountId, recipientHash);
    if (contact === null) return null;
    const standing = marketingStanding(tables, accountId, recipientHash);
    const isStopped = marketingOptOuts(tables, accountId, recipientHash).length > 0;
    const groups = shownGroups(tables, mail).map((group) => ({
      group,
      isOn: !isStopped && tables.subscriptions.get(group.seq, contact.seq)?.is_active === 1,
    }));
    return { contact, groups, isStopped, isBlocked: standing !== null && standing.status !== 'unsubscribed' };
  }

  /** A membership of which the page does not tell must not return with the end of an opt-out from all mail. */
  function endOptOut(tables: Tables, mail: SentMail, known: PreferenceState, source: OptOutSource): void {
    const { accountId, recipientHash: identifier } = mail;
    for (const { subscription_group_id: id, is_active } of tables.subscriptions.ofContact(
      known.contact.seq,
    )) {
      const group = is_active === 1 ? tables.subscriptionGroups.get(accountId, id) : null;
      if (group !== null) leaveGroup(tables, group, identifier, optOut(source));
    }
    if (removeOptOuts(tables, { accountId, identifier, stream: 'mk' }, optOut(source)))
      onSuppressionChange(tables, accountId, identifier);
  }

  function join(tables: Tables, mail: SentMail, group: SubscriptionGroupRow, source: OptOutSource): void {
    const { provenance, method } = optOut(source);
    const consent: ConsentInput = {
      method: 'web_form',
      details: 'Preference page',
      ipAddress: provenance.ipAddress,
      userAgent: provenance.userAgent,
      consentedAt: provenance.at,
    };
    returnToGroup(tables, group, mail.recipientHash, { method, provenance });
    const contact = tables.contacts.byIdentifier(mail.accountId, mail.recipientHash);
    if (contact === null)
      throw new Error('the contact does not exist after a check in the same unit of work');
    const input = { isActive: true, consent, source: SOURCE };
    if (tables.subscriptions.get(group.seq, contact.seq) === null) {
      joinGroup(tables, group, contact, {
        ...input,
        defaultSource: SOURCE,
        defaultMethod: 'web_form',
        provenance,
      });
    } else changeMembership(tables, group, contact, input, provenance);
  }

  function leave(tables: Tables, mail: SentMail, group: SubscriptionGroupRow, source: OptOutSource): void {
    if (!leaveGroup(tables, group, mail.recipientHash, optOut(source))) return;
    const { ip, userAgent } = source;
    const fields = {
      method: 'page' as const,
      scope: 'group' as const,
      ...(ip === null ? {} : { ip }),
      ...(userAgent === null ? {} : { userAgent }),
    };
    // The event of a message is about the group of the message.
    const ofMail = mail.groupId === group.subscription_group_id;
    const message = ofMail ? tables.messages.byId(mail.messageId) : null;
    if (message !== null) recorder.message(tables, message, { kind: 'email_unsubscribed', fields });
    else recorder.optedOut(tables, withoutMessage({ ...mail, groupId: group.subscription_group_id }, fields));
  }

  function change(tables: Tables, mail: SentMail, columns: Partial<KnownContact>): void {
    const contact = tables.contacts.byIdentifier(mail.accountId, mail.recipientHash);
    if (contact === null || mail.simulated) return;
    tables.contacts.update({ ...contact, ...columns, updated_at: clock.now() });
  }

  const stopAll = (tables: Tables, mail: SentMail, source: OptOutSource) =>
    unsubscribing.optOut(tables, { ...mail, stream: 'mk', groupId: null }, 'all', source);

  return {
    /** Null: the recipient is not a contact. */
    state,
    /** Refused when the number belongs to another contact; nothing is changed then. */
    save: (
      tables: Tables,
      mail: SentMail,
      { groups, profile }: PreferenceChanges,
      source: OptOutSource,
    ): Refusal | null => {
      const known = mail.simulated ? null : state(tables, mail);
      if (known === null) return null;
      const { provenance } = optOut(source);
      const how = { merge: true, defaultMethod: 'web_form', provenance } as const;
      const changed = changePerson(tables, known.contact, profile, how);
      if (isRefusal(changed)) return changed;
      const wanted = known.groups.filter(
        ({ group, isOn }) => (groups.get(group.subscription_group_id) ?? isOn) !== isOn,
      );
      const joined = wanted.filter(({ isOn }) => !isOn);
      if (known.isStopped && joined.length > 0) endOptOut(tables, mail, known, source);
      for (const { group } of joined) join(tables, mail, group, source);
      for (const { group, isOn } of wanted) if (isOn) leave(tables, mail, group, source);
      return null;
    },
    /** Pauses marketing mail from now on; a pause in progress is replaced. */
    pause: (tables: Tables, mail: SentMail, days: PauseDays): void =>
      change(tables, mail, { paused_until: clock.now() + days * DAY }),
    resume: (tables: Tables, mail: SentMail): void => change(tables, mail, { paused_until: null }),
    /** Opts out of all marketing mail of the account. */
    stop: (tables: Tables, mail: SentMail, source: OptOutSource): void => {
      stopAll(tables, mail, source);
    },
    /** Opts out, and records the request; the account's people complete it. A repeated one keeps its time. */
    requestErasure: (tables: Tables, mail: SentMail, source: OptOutSource): void => {
      stopAll(tables, mail, source);
      const contact = tables.contacts.byIdentifier(mail.accountId, mail.recipientHash);
      if (contact?.erasure_requested_at !== null) return;
      if (mail.simulated) return;
      change(tables, mail, { erasure_requested_at: clock.now() });
      const { accountId, recipientHash: contactIdentifier } = mail;
      recorder.account(tables, { accountId }, 'erasure_requested', { contactIdentifier });
    },
    withdrawErasure: (tables: Tables, mail: SentMail): void =>
      change(tables, mail, { erasure_requested_at: null }),
  };
}

export type Preferences = ReturnType<typeof createPreferences>;

/** Public groups and the group of the mail, whose name its unsubscribe page shows anyway. */
function shownGroups(tables: Tables, { accountId, groupId }: SentMail): SubscriptionGroupRow[] {
  const shown = tables.subscriptionGroups.onPages(accountId, MAX_GROUPS);
  const own = groupId === null ? null : tables.subscriptionGroups.get(accountId, groupId);
  const isMissing = own?.is_active === 1 && shown.every(({ seq }) => seq !== own.seq);
  return isMissing ? [own, ...shown] : shown;
}
