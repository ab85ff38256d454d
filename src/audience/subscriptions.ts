import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { emailIdentifier, phoneIdentifier } from '../mail/identifier.ts';
import type { ConsentMethod } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Member } from '../store/contacts/subscriptions.ts';
import type { Context } from '../store/context.ts';
import type { Page } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';
import { giveConsent, type Provenance } from './consent.ts';
import type { Actor } from './contacts.ts';
import { findSubscriptionGroup } from './groups.ts';
import { apiOptOut, describesOptOut, hasLeft, leaveGroup, leftAt, returnToGroup } from './opt-out.ts';
import { changePerson, findPerson, futureConsent, identifiersOf, reread } from './people.ts';
import type { ConsentInput, ProfileChanges } from './profile.ts';
import { contactSearch, type SearchFilter, type SearchPage } from './search.ts';
import { groupJoined } from './sequences/entries.ts';

export interface MemberListFilter {
  isActive?: boolean;
  beforeSeq: number | null;
  limit: number;
}

/**
 * Identifiers as `readEmail` and `readPhone` return them; all present ones must identify the same contact. A phone that
 * belongs to no contact becomes that of a contact without one.
 */
export interface AddMemberInput extends MembershipInput {
  email?: string | undefined;
  phone?: string | undefined;
  contactIdentifier?: string | undefined;
}

export interface MembershipResult {
  member: Member;
  /** The membership was created by this request. */
  created: boolean;
  /** The time of the contact's opt-out; null: none. */
  leftAt: number | null;
}

/**
 * Memberships of contacts in subscription groups, one for each contact and group. An unknown group is refused before
 * the contact is checked. Consent of a membership applies to the contact, too. Stateless: lists and searches run
 * through `reader`, and each change is one unit of work with its consent, opt-out and event. `remove` deletes the
 * membership without an opt-out.
 */
export function createSubscriptions(
  { tables, reader, writer, clock }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock'>,
  recorder: Pick<Recorder, 'optedOut'>,
) {
  const provenance = (actor: Actor): Provenance => ({ ...actor, at: clock.now() });

  /** Runs `work` with the group and the contact in a unit of work; refuses an unknown group first. */
  function inGroup(
    accountId: string,
    groupId: string,
    contactOf: (all: Tables) => KnownContact | Refusal,
    work: (all: Tables, group: SubscriptionGroupRow, contact: KnownContact) => MembershipResult | Refusal,
  ): Promise<MembershipResult | Refusal> {
    return writer.run((tx): MembershipResult | Refusal => {
      const group = findSubscriptionGroup(tx, accountId, groupId);
      if (isRefusal(group)) return group;
      const contact = contactOf(tx);
      return isRefusal(contact) ? contact : work(tx, group, contact);
    }, accountId);
  }

  function recordOptOut(tx: Tables, group: SubscriptionGroupRow, contact: KnownContact): void {
    recorder.optedOut(tx, {
      accountId: group.account_id,
      domainId: null,
      fields: {
        method: 'api',
        subscriptionGroupId: group.subscription_group_id,
        ...(contact.email === null ? {} : { recipient: contact.email }),
        contactIdentifier: identifiersOf(contact)[0],
      },
    });
  }

  return {
    /** The newest contacts first. */
    list: async (
      accountId: string,
      groupId: string,
      filter: MemberListFilter,
    ): Promise<Page<Member> | Refusal> => {
      const group = findSubscriptionGroup(tables, accountId, groupId);
      return isRefusal(group)
        ? group
        : reader.table(accountId, 'subscriptions', 'list', { groupSeq: group.seq, ...filter });
    },
    search: async (
      accountId: string,
      groupId: string,
      filter: Omit<SearchFilter, 'accountId' | 'groupSeq'>,
    ): Promise<SearchPage | Refusal> => {
      const group = findSubscriptionGroup(tables, accountId, groupId);
      if (isRefusal(group)) return group;
      return reader.query(accountId, contactSearch, { ...filter, accountId, groupSeq: group.seq });
    },
    get: (accountId: string, groupId: string, identifier: string): Member | Refusal => {
      const found = findMember(tables, accountId, groupId, identifier);
      return isRefusal(found) ? found : found.member;
    },
    /** Changes nothing when there is a membership already, and never ends an opt-out. */
    add: (
      accountId: string,
      groupId: string,
      input: AddMemberInput,
      caller: Actor,
    ): Promise<MembershipResult | Refusal> =>
      inGroup(
        accountId,
        groupId,
        (tx) => findByAll(tx, accountId, input),
        (tx, group, contact) => {
          if (tx.subscriptions.get(group.seq, contact.seq) !== null)
            return membershipResult(tx, group, contact.seq, false);
          const by = provenance(caller);
          const refusal =
            futureConsent(input, by) ?? changeProfile(tx, contact, withPhone(contact, input), by);
          if (refusal !== null) return refusal;
          joinGroup(tx, group, reread(tx, contact.seq), { ...input, ...API_DEFAULTS, provenance: by });
          return membershipResult(tx, group, contact.seq, true);
        },
      ),
    /** Creates or updates; only an explicit `isActive: true` ends an opt-out. */
    put: (
      accountId: string,
      groupId: string,
      identifier: string,
      input: MembershipInput,
      caller: Actor,
    ): Promise<MembershipResult | Refusal> =>
      inGroup(
        accountId,
        groupId,
        (tx) => findPerson(tx, accountId, identifier),
        (tx, group, contact) => {
          const consentProvenance = provenance(caller);
          const refusal =
            futureConsent(input, consentProvenance) ??
            changeProfile(tx, contact, input.profile, consentProvenance);
          if (refusal !== null) return refusal;
          const choice = apiOptOut(input.consent, consentProvenance);
          const before = tx.subscriptions.get(group.seq, contact.seq);
          if (input.isActive === true) returnToGroup(tx, group, identifier, choice);
          if (before === null) {
            joinGroup(tx, group, reread(tx, contact.seq), {
              ...input,
              ...API_DEFAULTS,
              provenance: consentProvenance,
            });
          } else {
            changeMembership(tx, group, reread(tx, contact.seq), input, consentProvenance);
            if (input.isActive === false) leaveGroup(tx, group, identifier, choice);
            if (input.isActive === false && before.is_active === 1) recordOptOut(tx, group, contact);
          }
          return membershipResult(tx, group, contact.seq, before === null);
        },
      ),
    remove: (accountId: string, groupId: string, identifier: string): Promise<Refusal | null> =>
      writer.run((tx) => {
        const found = findMember(tx, accountId, groupId, identifier);
        if (isRefusal(found)) return found;
        tx.subscriptions.remove(found.group.seq, found.member.contact.seq);
        return null;
      }, accountId),
  };
}

export type Subscriptions = ReturnType<typeof createSubscriptions>;

/** Defaults of a membership that is added over the API. */
const API_DEFAULTS = { defaultSource: 'api', defaultMethod: 'implicit_api' } as const;

/** The phone becomes the contact's if it has none. */
function withPhone(contact: KnownContact, { phone, profile }: AddMemberInput): MemberProfile | undefined {
  return phone === undefined || contact.phone !== null ? profile : { ...profile, phone };
}

function changeProfile(
  tables: Tables,
  contact: KnownContact,
  profile: MemberProfile | undefined,
  provenance: Provenance,
): Refusal | null {
  if (profile === undefined) return null;
  const changed = changePerson(tables, contact, profile, {
    merge: true,
    defaultMethod: 'implicit_api',
    provenance,
  });
  return isRefusal(changed) ? changed : null;
}

/** The contact that all present identifiers belong to. */
function findByAll(
  tables: Tables,
  accountId: string,
  { email, phone, contactIdentifier }: AddMemberInput,
): KnownContact | Refusal {
  const named = [
    ...(contactIdentifier === undefined ? [] : [contactIdentifier]),
    ...(email === undefined ? [] : [emailIdentifier(email)]),
  ].map((identifier) => tables.contacts.byIdentifier(accountId, identifier));
  const byPhone =
    phone === undefined ? undefined : tables.contacts.byIdentifier(accountId, phoneIdentifier(phone));
  if (named.length === 0 && byPhone === undefined)
    return invalid('email', 'email, phone or contactIdentifier is required');
  const [contact = byPhone ?? null] = named;
  const isNewPhone = byPhone === null && contact !== null && contact.phone === null;
  const found = byPhone === undefined || isNewPhone ? named : [...named, byPhone];
  if (found.some((other) => other?.seq !== contact?.seq))
    return invalid(
      'contactIdentifier',
      'email, phone and contactIdentifier do not identify the same contact',
    );
  return contact ?? refuse('CONTACT_NOT_FOUND', 'There is no such contact: add it to the contacts first');
}

function findMember(
  tables: Tables,
  accountId: string,
  groupId: string,
  identifier: string,
): { group: SubscriptionGroupRow; member: Member } | Refusal {
  const group = findSubscriptionGroup(tables, accountId, groupId);
  if (isRefusal(group)) return group;
  const contact = tables.contacts.byIdentifier(accountId, identifier);
  const subscription = contact === null ? null : tables.subscriptions.get(group.seq, contact.seq);
  return contact === null || subscription === null
    ? refuse('SUBSCRIPTION_NOT_FOUND', `${identifier} is not in the group`)
    : { group, member: { contact, subscription } };
}

function membershipResult(
  tables: Tables,
  group: SubscriptionGroupRow,
  contactSeq: number,
  created: boolean,
): MembershipResult {
  const member = currentMember(tables, group, contactSeq);
  return { member, created, leftAt: leftAt(tables, group, member.contact) };
}

/** A membership of a contact in a subscription group as a caller sets it. */
export interface MembershipInput {
  isActive?: boolean | undefined;
  consent?: ConsentInput | undefined;
  /** Origin of the membership. */
  source?: string | undefined;
  /** Changes of the contact's profile; custom fields are merged. */
  profile?: MemberProfile | undefined;
}

type MemberProfile = Pick<ProfileChanges, 'firstName' | 'lastName' | 'phone' | 'customFields'>;

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
  if (isActive) groupJoined(tables, group.subscription_group_id, contact, provenance.at);
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
function currentMember(tables: Tables, group: SubscriptionGroupRow, contactSeq: number): Member {
  const subscription = tables.subscriptions.get(group.seq, contactSeq);
  if (subscription === null)
    throw new Error('the membership does not exist after a change in the same unit of work');
  return { contact: reread(tables, contactSeq), subscription };
}
