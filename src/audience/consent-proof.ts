import { iso, isoOrNull } from '../core/clock.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import { type ConsentRow, MAX_CONSENT_ENTRIES, type SignUpEvidence } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { Tables } from '../store/tables.ts';
import { identifiersOf } from './people.ts';
import { contactIdentifierOf, presentConsent, presentMembership } from './present.ts';

/** Why the contact has consent, or not: `opted_out`: consent is on record, but mail is suppressed by an opt-out. */
export const CONSENT_STANDINGS = ['given', 'opted_out', 'withdrawn', 'none'] as const;
export type ConsentStanding = (typeof CONSENT_STANDINGS)[number];

/**
 * The evidence of a contact's consent: who consented when, how, from where and to what, the form and the confirmation
 * mail of each double opt-in, and every later change. Reads at most MAX_CONSENT_ENTRIES entries of the history.
 */
export function consentProof(tables: Tables, contact: KnownContact, now: number) {
  const history = tables.consents.history(contact.seq, null, MAX_CONSENT_ENTRIES).toReversed();
  const current = history.find(({ n }) => n === contact.consent_n) ?? null;
  const groups = tables.subscriptions.ofContact(contact.seq);
  const nameOf = (groupId: string) =>
    tables.subscriptionGroups.get(contact.account_id, groupId)?.name ?? null;
  return {
    contactIdentifier: contactIdentifierOf(contact),
    userId: contact.user_id,
    ...withoutNulls({
      email: contact.email,
      phone: contact.phone,
      firstName: contact.first_name,
      lastName: contact.last_name,
    }),
    source: contact.source,
    addedBy: contact.added_by,
    createdAt: iso(contact.created_at),
    generatedAt: iso(now),
    status: standingOf(tables, contact, history),
    consent: current === null ? null : presentConsent(current),
    doubleOptIn: history.flatMap((entry) => doubleOptInOf(tables, contact.account_id, entry)),
    memberships: groups.map((row) => ({
      ...presentMembership(row),
      ...withoutNulls({ groupName: nameOf(row.subscription_group_id) }),
    })),
    history: history.map((entry) => ({
      ...presentConsent(entry),
      ...withoutNulls({
        groupName: entry.subscription_group_id === null ? null : nameOf(entry.subscription_group_id),
      }),
    })),
  };
}

export type ConsentProof = ReturnType<typeof consentProof>;

function standingOf(tables: Tables, contact: KnownContact, history: readonly ConsentRow[]): ConsentStanding {
  if (contact.consent_n === null) return history.length === 0 ? 'none' : 'withdrawn';
  const isOptedOut = identifiersOf(contact).some((identifier) =>
    tables.suppressions
      .of(contact.account_id, identifier)
      .some(({ reason, stream }) => reason === 'unsubscribe' && stream !== 'tx'),
  );
  return isOptedOut ? 'opted_out' : 'given';
}

/** The steps of a double opt-in; none for another consent, and for one that an earlier version recorded. */
export function doubleOptInOf(tables: Tables, accountId: string, entry: ConsentRow) {
  if (entry.evidence === null) return [];
  // Sound: only `audience/sign-ups` writes the column, and transfers copy it.
  const { subscriptionGroupId, formSentAt, form, mail } = JSON.parse(entry.evidence) as SignUpEvidence;
  return [
    {
      subscriptionGroupId,
      form: { group: form.group, ...withoutNulls({ description: form.description }) },
      formSentAt: iso(formSentAt),
      confirmationMail: mail === null ? null : presentMail(tables, accountId, mail),
      ...withoutNulls({
        confirmedAt: isoOrNull(entry.said_at),
        ipAddress: entry.ip_address,
        userAgent: entry.user_agent,
      }),
    },
  ];
}

/** The confirmation mail as it was recorded, and its delivery while the message is stored. */
function presentMail(
  tables: Tables,
  accountId: string,
  { acceptedAt, intro, ...mail }: NonNullable<SignUpEvidence['mail']>,
) {
  const message = tables.messages.byId(mail.messageId);
  const isKnown = message !== null && message.account_id === accountId;
  const deliveredAt = isKnown && message.status === 'delivered' ? message.final_at : null;
  return {
    ...mail,
    ...withoutNulls({ intro }),
    acceptedAt: iso(acceptedAt),
    ...withoutNulls({ status: isKnown ? message.status : null, deliveredAt: isoOrNull(deliveredAt) }),
  };
}
