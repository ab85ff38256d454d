import { iso } from '../core/clock.ts';
import { type WithoutNulls, withoutNulls } from '../core/without-nulls.ts';
import type { ConsentAction, ConsentMethod, ConsentRow, OptOutMethod } from '../store/contacts/consent.ts';
import type { GlobalStatus, KnownContact } from '../store/contacts/contacts.ts';
import type { ImportStatus, SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Member, Membership } from '../store/contacts/subscriptions.ts';
import { type SignUpForm, signUpFormOf } from './groups.ts';
import type { CustomFields } from './profile.ts';

/* API resources of contacts, groups and memberships. */

/** A contact as the API returns it. Fields without a value are absent. */
export interface Contact {
  contactIdentifier: string;
  userId: string;
  email?: string;
  phone?: string;
  firstName?: string;
  lastName?: string;
  customFields: CustomFields;
  globalStatus: GlobalStatus;
  consentMethod?: ConsentMethod;
  consentDetails?: string;
  consentIpAddress?: string;
  consentUserAgent?: string;
  consentTimestamp?: string;
  source: string;
  addedBy: string;
  createdAt: string;
  updatedAt: string;
}

/** The identifier of the email address, else that of the phone number. */
export function contactIdentifierOf({ email_hash, phone_hash }: KnownContact): string {
  return email_hash ?? phone_hash ?? '';
}

/**
 * The contact as the API returns it: custom fields parsed, times in ISO 8601. The five fields of consent are absent
 * while no consent is in effect.
 */
export function presentContact(row: KnownContact): Contact {
  return withoutNulls({
    contactIdentifier: contactIdentifierOf(row),
    userId: row.user_id,
    email: row.email,
    phone: row.phone,
    firstName: row.first_name,
    lastName: row.last_name,
    customFields: customFieldsOf(row),
    globalStatus: row.global_status,
    consentMethod: row.consent_method,
    consentDetails: row.consent_details,
    consentIpAddress: row.consent_ip_address,
    consentUserAgent: row.consent_user_agent,
    consentTimestamp: row.consented_at === null ? null : iso(row.consented_at),
    source: row.source,
    addedBy: row.added_by,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  });
}

function customFieldsOf(row: KnownContact): CustomFields {
  // Sound: custom fields are validated before they are stored.
  return JSON.parse(row.custom_fields) as CustomFields;
}

export interface ContactMembership {
  subscriptionGroupId: string;
  joinedAt: string;
  isActive: boolean;
  source: string;
}

/** A membership as the contact with its memberships shows it; `joinedAt` in ISO 8601. */
export function presentMembership(row: Membership): ContactMembership {
  return {
    subscriptionGroupId: row.subscription_group_id,
    joinedAt: iso(row.joined_at),
    isActive: row.is_active === 1,
    source: row.source,
  };
}

export interface ConsentRecord {
  action: ConsentAction;
  subscriptionGroupId?: string;
  method?: ConsentMethod | OptOutMethod;
  details?: string;
  ipAddress?: string;
  userAgent?: string;
  timestamp?: string;
  recordedAt: string;
  recordedBy: string;
}

/**
 * An entry of the consent history. `timestamp`: when the person decided, absent if it is unknown; `recordedAt`: when
 * it was stored.
 */
export function presentConsent(row: ConsentRow): ConsentRecord {
  return withoutNulls({
    action: row.action,
    subscriptionGroupId: row.subscription_group_id,
    method: row.method,
    details: row.details,
    ipAddress: row.ip_address,
    userAgent: row.user_agent,
    timestamp: row.said_at === null ? null : iso(row.said_at),
    recordedAt: iso(row.recorded_at),
    recordedBy: row.recorded_by,
  });
}

/** A membership as add and update return it. Strings are never null. */
export interface Subscriber {
  subscriptionGroupId: string;
  contactIdentifier: string;
  email: string;
  userId: string;
  isActive: boolean;
  joinedAt: string;
  source: string;
  consentMethod: ConsentMethod;
  consentDetails: string;
}

/** `groupId`: the public id, which the rows lack. Columns that are null become ''. */
export function presentSubscriber(groupId: string, { contact, subscription }: Member): Subscriber {
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

/** A membership with the contact's profile, as lists return it. */
export interface SubscriberDetail extends Subscriber {
  /** `<subscriptionGroupId>:<contactIdentifier>` */
  subscriptionId: string;
  firstName: string;
  lastName: string;
  phone: string;
  globalStatus: GlobalStatus;
  customFields: CustomFields;
}

/** `presentSubscriber` with the profile of the contact; a name or number that is null becomes ''. */
export function presentMember(groupId: string, member: Member): SubscriberDetail {
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
export function presentSubscription(groupId: string, member: Member): Omit<SubscriberDetail, 'userId'> {
  const { userId: _, ...subscription } = presentMember(groupId, member);
  return subscription;
}

export interface SubscriptionGroup {
  subscriptionGroupId: string;
  /** The same id, under the name that other clients of the interface read. */
  groupId: string;
  name: string;
  description?: string;
  /** The account. */
  userId: string;
  isActive: boolean;
  isDefault: boolean;
  isSystem: boolean;
  totalSubscribers: number;
  activeSubscribers: number;
  /** Null: there was no import. Clients of the interface declare it as nullable. */
  importStatus: ImportStatus | null;
  tags: string[];
  unsubscribeTemplateId?: string;
  reportAbuseTemplateId?: string;
  companyAddressTemplateId?: string;
  /** Null: the group has no form. */
  signUp: WithoutNulls<SignUpForm> | null;
  createdAt: string;
  updatedAt: string;
}

/**
 * The group as the API returns it: `tags` and the form parsed from JSON, times in ISO 8601. Its counts are those of the
 * row, which `subscriptionTable` maintains.
 */
export function presentGroup(row: SubscriptionGroupRow): SubscriptionGroup {
  const signUp = signUpFormOf(row);
  return {
    subscriptionGroupId: row.subscription_group_id,
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
    importStatus: row.import_status,
    tags: JSON.parse(row.tags) as string[],
    signUp: signUp === null ? null : withoutNulls(signUp),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}
