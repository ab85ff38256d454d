import type { Clock } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { emailIdentifier, phoneIdentifier } from '../mail/identifier.ts';
import type { ConsentMethod } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Member } from '../store/contacts/subscriptions.ts';
import { createLocalReader, type Reader } from '../store/readers/reads.ts';
import type { Page } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { giveConsent, type Provenance } from './consent.ts';
import type { Actor } from './contacts.ts';
import { findSubscriptionGroup } from './groups.ts';
import { hasLeft, leaveGroup, leftAt, returnToGroup } from './opt-out.ts';
import { changePerson, findPerson, futureConsent, identifiersOf, reread } from './people.ts';
import type { ConsentInput, ProfileChanges } from './profile.ts';
import { contactSearch, type SearchFilter, type SearchPage } from './search.ts';

/**
 * Who is in which group. One membership for each contact and group; a group that is unknown is refused before
 * the contact is looked at. Consent that comes with a membership is the contact's, too.
 */
export interface Subscriptions {
  /** The newest contacts first. */
  list(accountId: string, groupId: string, filter: MemberListFilter): Promise<Page<Member> | Refusal>;
  search(
    accountId: string,
    groupId: string,
    filter: Omit<SearchFilter, 'accountId' | 'groupSeq'>,
  ): Promise<SearchPage | Refusal>;
  get(accountId: string, groupId: string, identifier: string): Member | Refusal;
  /** Changes nothing when there is a membership already, and never lifts an opt-out. */
  add(accountId: string, groupId: string, input: AddMemberInput, actor: Actor): Promise<Joined | Refusal>;
  /** Adds or updates; an express `isActive: true` is what lifts an opt-out. */
  put(
    accountId: string,
    groupId: string,
    identifier: string,
    input: MembershipInput,
    actor: Actor,
  ): Promise<Joined | Refusal>;
  remove(accountId: string, groupId: string, identifier: string): Promise<Refusal | null>;
}

export interface MemberListFilter {
  isActive?: boolean;
  beforeSeq: number | null;
  limit: number;
}

export interface MembershipInput {
  isActive?: boolean | undefined;
  consent?: ConsentInput | undefined;
  /** Where the membership came from. */
  source?: string | undefined;
  /** What changes in the contact's profile; custom fields one by one. */
  profile?: MemberProfile | undefined;
}

export type MemberProfile = Pick<ProfileChanges, 'firstName' | 'lastName' | 'phone' | 'customFields'>;

/**
 * As `readEmail` and `readPhone` return them; all that are given must name the same contact, but for a phone that is
 * nobody's yet: it becomes that of a contact without one.
 */
export interface AddMemberInput extends MembershipInput {
  email?: string | undefined;
  phone?: string | undefined;
  contactIdentifier?: string | undefined;
}

export interface Joined {
  member: Member;
  /** There was none before. */
  created: boolean;
  /** When the contact left the group; null: never, or it has returned. */
  leftAt: number | null;
}

export interface SubscriptionsDeps {
  tables: Tables;
  /** Where lists are read; default: this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  recorder: Pick<Recorder, 'optedOut'>;
}

export function createSubscriptions(deps: SubscriptionsDeps): Subscriptions {
  const { tables, writer, clock, recorder } = deps;
  const reader = deps.reader ?? createLocalReader(tables);
  const provenance = (actor: Actor): Provenance => ({ ...actor, at: clock.now() });

  /** Calls with the group and the contact, group first. */
  function inGroup(
    accountId: string,
    groupId: string,
    contactOf: (all: Tables) => KnownContact | Refusal,
    work: (all: Tables, group: SubscriptionGroupRow, contact: KnownContact) => Joined | Refusal,
  ): Promise<Joined | Refusal> {
    return writer.run((all): Joined | Refusal => {
      const group = findSubscriptionGroup(all, accountId, groupId);
      if (isRefusal(group)) return group;
      const contact = contactOf(all);
      return isRefusal(contact) ? contact : work(all, group, contact);
    });
  }

  function tellOptOut(all: Tables, group: SubscriptionGroupRow, contact: KnownContact): void {
    recorder.optedOut(all, {
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
    list: async (accountId, groupId, filter) => {
      const group = findSubscriptionGroup(tables, accountId, groupId);
      return isRefusal(group)
        ? group
        : reader.table(accountId, 'subscriptions', 'list', { groupSeq: group.seq, ...filter });
    },
    search: async (accountId, groupId, filter) => {
      const group = findSubscriptionGroup(tables, accountId, groupId);
      if (isRefusal(group)) return group;
      return reader.query(accountId, contactSearch, { ...filter, accountId, groupSeq: group.seq });
    },
    get: (accountId, groupId, identifier) => {
      const found = findMember(tables, accountId, groupId, identifier);
      return isRefusal(found) ? found : found.member;
    },
    add: (accountId, groupId, input, caller) =>
      inGroup(
        accountId,
        groupId,
        (all) => findByAll(all, accountId, input),
        (all, group, contact) => {
          if (all.subscriptions.get(group.seq, contact.seq) !== null)
            return joinedNow(all, group, contact.seq, false);
          const by = provenance(caller);
          const refusal =
            futureConsent(input, by) ?? changeProfile(all, contact, withPhone(contact, input), by);
          if (refusal !== null) return refusal;
          joinGroup(all, group, reread(all, contact.seq), { ...input, ...JOINED_BY_API, provenance: by });
          return joinedNow(all, group, contact.seq, true);
        },
      ),
    put: (accountId, groupId, identifier, input, caller) =>
      inGroup(
        accountId,
        groupId,
        (all) => findPerson(all, accountId, identifier),
        (all, group, contact) => {
          const consentProvenance = provenance(caller);
          const refusal =
            futureConsent(input, consentProvenance) ??
            changeProfile(all, contact, input.profile, consentProvenance);
          if (refusal !== null) return refusal;
          const by = { method: 'api', provenance: optOutProvenance(input, consentProvenance) } as const;
          const before = all.subscriptions.get(group.seq, contact.seq);
          if (input.isActive === true) returnToGroup(all, group, identifier, by);
          if (before === null) {
            joinGroup(all, group, reread(all, contact.seq), {
              ...input,
              ...JOINED_BY_API,
              provenance: consentProvenance,
            });
          } else {
            if (input.isActive === false) leaveGroup(all, group, identifier, by);
            if (input.isActive === false && before.is_active === 1) tellOptOut(all, group, contact);
            changeMembership(all, group, reread(all, contact.seq), input, consentProvenance);
          }
          return joinedNow(all, group, contact.seq, before === null);
        },
      ),
    remove: (accountId, groupId, identifier) =>
      writer.run((all) => {
        const found = findMember(all, accountId, groupId, identifier);
        if (isRefusal(found)) return found;
        all.subscriptions.remove(found.group.seq, found.member.contact.seq);
        return null;
      }),
  };
}

/** What is recorded of a membership that is added over the API, where the caller names nothing else. */
const JOINED_BY_API = { defaultSource: 'api', defaultMethod: 'implicit_api' } as const;

/** The phone of an add is the contact's from now on where it has none. */
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

/** An opt-out over the API proves only what the caller says of it. */
function optOutProvenance({ consent }: MembershipInput, provenance: Provenance): Provenance {
  return { ...provenance, ipAddress: consent?.ipAddress ?? null, userAgent: consent?.userAgent ?? null };
}

/**
 * Makes a contact a member, inside a unit of work; there must be no membership yet. Who once left and never
 * came back is an inactive one. Returns whether the membership is active.
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
  const identifier = identifiersOf(contact)[0];
  if (input.isActive === false && identifier !== undefined)
    leaveGroup(tables, group, identifier, { method: 'api', provenance: optOutProvenance(input, provenance) });
  syncConsent(tables, group, contact, consent, provenance);
  return isActive;
}

/** A consent that repeats the membership's own, without evidence, says nothing new of the contact. */
function changeMembership(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  input: MembershipInput,
  provenance: Provenance,
): void {
  const { consent = {} } = input;
  const membership = memberNow(tables, group, contact.seq).subscription;
  const source = input.source ?? membership.source;
  const consent_method = consent.method ?? membership.consent_method;
  const keptDetails = consent_method === membership.consent_method ? membership.consent_details : null;
  const consent_details = consent.details === undefined ? keptDetails : consent.details;
  const isNew =
    consent_method !== membership.consent_method || consent_details !== membership.consent_details;
  if (isNew || source !== membership.source) {
    const after = { ...membership, source, consent_method, consent_details, updated_at: provenance.at };
    tables.subscriptions.update(after);
  }
  const hasEvidence = [consent.ipAddress, consent.userAgent, consent.saidAt].some(
    (value) => value !== undefined,
  );
  if (isNew || hasEvidence)
    syncConsent(tables, group, contact, { ...consent, method: consent_method }, provenance);
}

/** What is said here of consent is said of the person. What is not said changes nothing there. */
function syncConsent(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  consent: ConsentInput,
  provenance: Provenance,
): void {
  if (Object.values(consent).every((value) => value === undefined)) return;
  giveConsent(tables, contact, consent, {
    method: 'implicit_api',
    groupId: group.subscription_group_id,
    provenance,
  });
}

/** The one contact that all given identifiers name. */
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
  const becomesTheirs = byPhone === null && contact !== null && contact.phone === null;
  const found = byPhone === undefined || becomesTheirs ? named : [...named, byPhone];
  if (found.some((other) => other?.seq !== contact?.seq))
    return invalid('contactIdentifier', 'email, phone and contactIdentifier do not name the same contact');
  return contact ?? refuse('CONTACT_NOT_FOUND', 'there is no such contact: add it to the contacts first');
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

function memberNow(tables: Tables, group: SubscriptionGroupRow, contactSeq: number): Member {
  const subscription = tables.subscriptions.get(group.seq, contactSeq);
  if (subscription === null) throw new Error('the membership vanished inside its own unit of work');
  return { contact: reread(tables, contactSeq), subscription };
}

function joinedNow(
  tables: Tables,
  group: SubscriptionGroupRow,
  contactSeq: number,
  created: boolean,
): Joined {
  const member = memberNow(tables, group, contactSeq);
  return { member, created, leftAt: leftAt(tables, group, member.contact) };
}
