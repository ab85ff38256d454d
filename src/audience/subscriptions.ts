import type { Clock } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { emailIdentifier, phoneIdentifier } from '../mail/identifier.ts';
import type { ConsentMethod } from '../store/consent.ts';
import type { ContactSource, KnownContact } from '../store/contacts.ts';
import type { Page } from '../store/page.ts';
import type { SubscriptionGroupRow } from '../store/subscription-groups.ts';
import type { Member } from '../store/subscriptions.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { giveConsent, type Witness } from './consent.ts';
import type { Caller } from './contacts.ts';
import { findSubscriptionGroup } from './groups.ts';
import { hasLeft, leaveGroup, returnToGroup } from './opt-out.ts';
import { findPerson, identifiersOf, reread } from './people.ts';
import type { ConsentWish } from './profile.ts';
import { type SearchFilter, type SearchPage, searchContacts } from './search.ts';

/**
 * Who is in which group. One membership for each contact and group; a group that is unknown is refused before
 * the contact is looked at. Consent that comes with a membership is the contact's, too.
 */
export interface Subscriptions {
  /** The newest contacts first. */
  list(accountId: string, groupId: string, filter: MemberListFilter): Page<Member> | Refusal;
  search(
    accountId: string,
    groupId: string,
    filter: Omit<SearchFilter, 'accountId' | 'groupSeq'>,
  ): SearchPage | Refusal;
  get(accountId: string, groupId: string, identifier: string): Member | Refusal;
  /** Changes nothing when there is a membership already, and never lifts an opt-out. */
  add(accountId: string, groupId: string, wish: AddWish, caller: Caller): Promise<Joined | Refusal>;
  /** Adds or updates; an express `isActive: true` is what lifts an opt-out. */
  put(
    accountId: string,
    groupId: string,
    identifier: string,
    wish: MembershipWish,
    caller: Caller,
  ): Promise<Joined | Refusal>;
  remove(accountId: string, groupId: string, identifier: string): Promise<Refusal | null>;
}

export interface MemberListFilter {
  isActive?: boolean;
  beforeSeq: number | null;
  limit: number;
}

export interface MembershipWish {
  isActive?: boolean | undefined;
  method?: ConsentMethod | undefined;
  details?: string | undefined;
}

/** As `readEmail` and `readPhone` return them; all that are given must name the same contact. */
export interface AddWish extends MembershipWish {
  email?: string | undefined;
  phone?: string | undefined;
  contactIdentifier?: string | undefined;
}

export interface Joined {
  member: Member;
  /** There was none before. */
  created: boolean;
}

export interface SubscriptionsHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  recorder: Pick<Recorder, 'optedOut'>;
}

export function createSubscriptions({ tables, writer, clock, recorder }: SubscriptionsHouse): Subscriptions {
  const witness = (caller: Caller): Witness => ({ ...caller, at: clock.now() });

  /** Calls with the group and the contact, group first. */
  function inGroup(
    accountId: string,
    groupId: string,
    contactOf: (all: Tables) => KnownContact | Refusal,
    work: (all: Tables, group: SubscriptionGroupRow, contact: KnownContact) => Joined,
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
    list: (accountId, groupId, filter) => {
      const group = findSubscriptionGroup(tables, accountId, groupId);
      return isRefusal(group) ? group : tables.subscriptions.list({ groupSeq: group.seq, ...filter });
    },
    search: (accountId, groupId, filter) => {
      const group = findSubscriptionGroup(tables, accountId, groupId);
      if (isRefusal(group)) return group;
      return searchContacts(tables, { ...filter, accountId, groupSeq: group.seq });
    },
    get: (accountId, groupId, identifier) => {
      const found = findMember(tables, accountId, groupId, identifier);
      return isRefusal(found) ? found : found.member;
    },
    add: (accountId, groupId, wish, caller) =>
      inGroup(
        accountId,
        groupId,
        (all) => findByAll(all, accountId, wish),
        (all, group, contact) => {
          if (all.subscriptions.get(group.seq, contact.seq) !== null)
            return { member: memberNow(all, group, contact.seq), created: false };
          joinGroup(all, group, contact, { ...wish, source: 'api', witness: witness(caller) });
          return { member: memberNow(all, group, contact.seq), created: true };
        },
      ),
    put: (accountId, groupId, identifier, wish, caller) =>
      inGroup(
        accountId,
        groupId,
        (all) => findPerson(all, accountId, identifier),
        (all, group, contact) => {
          const by = { method: 'api', witness: witness(caller) } as const;
          const before = all.subscriptions.get(group.seq, contact.seq);
          if (wish.isActive === true) returnToGroup(all, group, identifier, by);
          if (before === null) {
            joinGroup(all, group, contact, { ...wish, source: 'api', witness: by.witness });
          } else {
            if (wish.isActive === false) leaveGroup(all, group, identifier, by);
            if (wish.isActive === false && before.is_active === 1) tellOptOut(all, group, contact);
            changeConsent(all, group, contact, wish, by.witness);
          }
          return { member: memberNow(all, group, contact.seq), created: before === null };
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

/**
 * Makes a contact a member, inside a unit of work; there must be no membership yet. Who once left and never
 * came back is an inactive one. Returns whether the membership is active.
 */
export function joinGroup(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  wish: MembershipWish & { source: ContactSource; witness: Witness },
): boolean {
  const { witness, source } = wish;
  const isActive = wish.isActive !== false && !hasLeft(tables, group, contact);
  tables.subscriptions.insert({
    group_seq: group.seq,
    contact_seq: contact.seq,
    is_active: isActive ? 1 : 0,
    source,
    consent_method: wish.method ?? (source === 'api' ? 'implicit_api' : 'imported'),
    consent_details: wish.details ?? null,
    joined_at: witness.at,
    updated_at: witness.at,
  });
  const identifier = identifiersOf(contact)[0];
  if (wish.isActive === false && identifier !== undefined)
    leaveGroup(tables, group, identifier, { method: 'api', witness });
  syncConsent(tables, group, contact, wish, witness);
  return isActive;
}

function changeConsent(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  wish: MembershipWish,
  witness: Witness,
): void {
  if (wish.method === undefined && wish.details === undefined) return;
  const membership = tables.subscriptions.get(group.seq, contact.seq);
  if (membership === null) throw new Error('the membership vanished inside its own unit of work');
  const consent_method = wish.method ?? membership.consent_method;
  const keepsNote = consent_method === membership.consent_method;
  const consent_details = wish.details ?? (keepsNote ? membership.consent_details : null);
  tables.subscriptions.update({ ...membership, consent_method, consent_details, updated_at: witness.at });
  syncConsent(tables, group, contact, { ...wish, method: consent_method }, witness);
}

/** What is said here of consent is said of the person. What is not said changes nothing there. */
function syncConsent(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  { method, details }: MembershipWish,
  witness: Witness,
): void {
  if (method === undefined && details === undefined) return;
  const wish: ConsentWish = { method, details };
  giveConsent(tables, contact, wish, {
    method: 'implicit_api',
    groupId: group.subscription_group_id,
    witness,
  });
}

/** The one contact that all given identifiers name. */
function findByAll(
  tables: Tables,
  accountId: string,
  { email, phone, contactIdentifier }: AddWish,
): KnownContact | Refusal {
  const identifiers: string[] = [];
  if (contactIdentifier !== undefined) identifiers.push(contactIdentifier);
  if (email !== undefined) identifiers.push(emailIdentifier(email));
  if (phone !== undefined) identifiers.push(phoneIdentifier(phone));
  if (identifiers.length === 0) return invalid('email', 'email, phone or contactIdentifier is required');
  const found = identifiers.map((identifier) => tables.contacts.byIdentifier(accountId, identifier));
  const [first] = found;
  if (found.some((contact) => contact?.seq !== first?.seq))
    return invalid('contactIdentifier', 'email, phone and contactIdentifier do not name the same contact');
  return first ?? refuse('CONTACT_NOT_FOUND', 'there is no such contact: add it to the contacts first');
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
