import type { ConsentMethod } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Member } from '../store/contacts/subscriptions.ts';
import type { Tables } from '../store/tables.ts';
import { giveConsent, type Provenance } from './consent.ts';
import { apiOptOut, describesOptOut, hasLeft, leaveGroup } from './opt-out.ts';
import { identifiersOf, reread } from './people.ts';
import type { ConsentInput, ProfileChanges } from './profile.ts';

/** A membership of a contact in a subscription group as a caller sets it. */
export interface MembershipInput {
  isActive?: boolean | undefined;
  consent?: ConsentInput | undefined;
  /** Origin of the membership. */
  source?: string | undefined;
  /** Changes of the contact's profile; custom fields are merged. */
  profile?: MemberProfile | undefined;
}

export type MemberProfile = Pick<ProfileChanges, 'firstName' | 'lastName' | 'phone' | 'customFields'>;

/**
 * Creates a membership in a unit of work; there must be none yet. It is inactive when the contact has opted out. Returns
 * whether it is active.
 */
export function joinGroup(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  input: MembershipInput & { defaultSource: string; defaultMethod: ConsentMethod; provenance: Provenance },
): boolean {
  const { provenance, consent = {} } = input;
  const isActive = input.isActive !== false && !hasLeft(tables, group, contact);
  tables.subscriptions.insert({
    group_seq: group.seq,
    contact_seq: contact.seq,
    is_active: isActive ? 1 : 0,
    source: input.source ?? input.defaultSource,
    consent_method: consent.method ?? input.defaultMethod,
    consent_details: consent.details ?? null,
    joined_at: provenance.at,
    updated_at: provenance.at,
  });
  const isOptOut = input.isActive === false;
  if (!isOptOut || !describesOptOut(consent)) syncConsent(tables, group, contact, consent, provenance);
  const identifier = identifiersOf(contact)[0];
  if (isOptOut && identifier !== undefined)
    leaveGroup(tables, group, identifier, apiOptOut(consent, provenance));
  return isActive;
}

/**
 * Changes source and consent of a membership in a unit of work. The contact's consent is unchanged by one that repeats
 * the membership's without evidence, and by one that describes an opt-out.
 */
export function changeMembership(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  input: MembershipInput,
  provenance: Provenance,
): void {
  const { consent = {} } = input;
  const membership = currentMember(tables, group, contact.seq).subscription;
  const source = input.source ?? membership.source;
  const consent_method = consent.method ?? membership.consent_method;
  const currentDetails = consent_method === membership.consent_method ? membership.consent_details : null;
  const consent_details = consent.details === undefined ? currentDetails : consent.details;
  const isNew =
    consent_method !== membership.consent_method || consent_details !== membership.consent_details;
  if (isNew || source !== membership.source) {
    const after = { ...membership, source, consent_method, consent_details, updated_at: provenance.at };
    tables.subscriptions.update(after);
  }
  const hasEvidence = [consent.ipAddress, consent.userAgent, consent.consentedAt].some(
    (value) => value !== undefined,
  );
  if (input.isActive === false && describesOptOut(consent)) return;
  if (isNew || hasEvidence) syncConsent(tables, group, contact, consent, provenance, consent_method);
}

/**
 * Applies the consent of a membership to the contact; absent fields change nothing. `defaultMethod` is that of a contact
 * without consent.
 */
function syncConsent(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  consent: ConsentInput,
  provenance: Provenance,
  defaultMethod: ConsentMethod = 'implicit_api',
): void {
  if (Object.values(consent).every((value) => value === undefined)) return;
  giveConsent(tables, contact, consent, {
    method: defaultMethod,
    groupId: group.subscription_group_id,
    provenance,
  });
}

/** The membership after a change in this unit of work. */
export function currentMember(tables: Tables, group: SubscriptionGroupRow, contactSeq: number): Member {
  const subscription = tables.subscriptions.get(group.seq, contactSeq);
  if (subscription === null)
    throw new Error('the membership does not exist after a change in the same unit of work');
  return { contact: reread(tables, contactSeq), subscription };
}
