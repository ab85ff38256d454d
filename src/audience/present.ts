import { iso, isoOrNull } from '../core/clock.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import type { ConsentRow } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Member, Membership } from '../store/contacts/subscriptions.ts';
import { isPublicGroup, signUpFormOf } from './groups.ts';
import type { CustomFields } from './profile.ts';

/* API resources of contacts, groups and memberships. */

/** The identifier of the email address, else that of the phone number. */
export function contactIdentifierOf({ email_hash, phone_hash }: KnownContact): string {
  return email_hash ?? phone_hash ?? '';
}

/**
 * The contact as the API returns it: custom fields parsed, times in ISO 8601. The five fields of consent are absent
 * while no consent is in effect.
 */
export function presentContact(row: KnownContact) {
  return withoutNulls({
    contactIdentifier: contactIdentifierOf(row),
    userId: row.user_id,
    email: row.email,
    phone: row.phone,
    firstName: row.first_name,
    lastName: row.last_name,
    language: row.language,
    customFields: customFieldsOf(row),
    globalStatus: row.global_status,
    pausedUntil: isoOrNull(row.paused_until),
    erasureRequestedAt: isoOrNull(row.erasure_requested_at),
    consentMethod: row.consent_method,
    consentDetails: row.consent_details,
    consentIpAddress: row.consent_ip_address,
    consentUserAgent: row.consent_user_agent,
    consentTimestamp: isoOrNull(row.consented_at),
    source: row.source,
    addedBy: row.added_by,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  });
}

export type Contact = ReturnType<typeof presentContact>;

function customFieldsOf(row: KnownContact): CustomFields {
  // Sound: custom fields are validated before they are stored.
  return JSON.parse(row.custom_fields) as CustomFields;
}

/** A membership as the contact with its memberships shows it; `joinedAt` in ISO 8601. */
export function presentMembership(row: Membership) {
  return {
    subscriptionGroupId: row.subscription_group_id,
    joinedAt: iso(row.joined_at),
    isActive: row.is_active === 1,
    source: row.source,
  };
}

/**
 * An entry of the consent history. `timestamp`: when the person decided, absent if it is unknown; `recordedAt`: when
 * it was stored.
 */
export function presentConsent(row: ConsentRow) {
  return withoutNulls({
    action: row.action,
    subscriptionGroupId: row.subscription_group_id,
    method: row.method,
    details: row.details,
    ipAddress: row.ip_address,
    userAgent: row.user_agent,
    timestamp: isoOrNull(row.said_at),
    recordedAt: iso(row.recorded_at),
    recordedBy: row.recorded_by,
  });
}

/**
 * A membership as add and update return it. `groupId`: the public id, which the rows lack. Columns that are null become
 * ''.
 */
export function presentSubscriber(groupId: string, { contact, subscription }: Member) {
  return {
    subscriptionGroupId: groupId,
    contactIdentifier: contactIdentifierOf(contact),
    email: contact.email ?? '',
    userId: contact.user_id,
    isActive: subscription.is_active === 1,
    joinedAt: iso(subscription.joined_at),
    source: subscription.source,
    consentMethod: subscription.consent_method,
    consentDetails: subscription.consent_details ?? '',
  };
}

/**
 * `presentSubscriber` with the profile of the contact, as lists return it; a name or number that is null becomes ''. The
 * subscription id is `<subscriptionGroupId>:<contactIdentifier>`.
 */
export function presentMember(groupId: string, member: Member) {
  const { contact } = member;
  return {
    subscriptionId: `${groupId}:${contactIdentifierOf(contact)}`,
    ...presentSubscriber(groupId, member),
    firstName: contact.first_name ?? '',
    lastName: contact.last_name ?? '',
    phone: contact.phone ?? '',
    globalStatus: contact.global_status,
    customFields: customFieldsOf(contact),
  };
}

/** One membership with the contact's profile, without the user id. */
export function presentSubscription(groupId: string, member: Member) {
  const { userId: _, ...subscription } = presentMember(groupId, member);
  return subscription;
}

/**
 * The group as the API returns it: `tags` and the form parsed from JSON, times in ISO 8601. Its counts are those of the
 * row, which `subscriptionTable` maintains.
 */
export function presentGroup(row: SubscriptionGroupRow) {
  const signUp = signUpFormOf(row);
  return {
    subscriptionGroupId: row.subscription_group_id,
    // The same id, under the name that other clients of the interface read.
    groupId: row.subscription_group_id,
    name: row.name,
    ...withoutNulls({
      description: row.description,
      unsubscribeTemplateId: row.unsubscribe_template_id,
      reportAbuseTemplateId: row.report_abuse_template_id,
      companyAddressTemplateId: row.company_address_template_id,
    }),
    userId: row.account_id,
    isActive: row.is_active === 1,
    // All groups are created by their account.
    isDefault: false,
    isSystem: false,
    totalSubscribers: row.total_subscribers,
    activeSubscribers: row.active_subscribers,
    // Null: there was no import. Clients of the interface declare it as nullable.
    importStatus: row.import_status,
    tags: JSON.parse(row.tags) as string[],
    // Null: the group has no form.
    signUp: signUp === null ? null : withoutNulls(signUp),
    isPublic: isPublicGroup(row),
    archive: row.archive_key !== null,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}
