import type { ConsentAction, OptOutMethod } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { NewSuppression, SuppressionRow } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';
import { entryOf, type Provenance } from './consent.ts';
import { identifiersOf } from './people.ts';
import type { ConsentInput } from './profile.ts';
import { groupJoined } from './sequences/entries.ts';

/*
 * Opt-outs from subscription groups and from all mail of a stream, with their entries in the consent history. An opt-out
 * is stored by the person's identifiers: it survives the removal of the membership and the person's erasure, and neither
 * an import nor an ordinary add ends it. A membership is inactive as long as there is an opt-out from its group.
 */

/** How a person opted out or returned, and the evidence of it. */
export interface OptOut {
  method: OptOutMethod;
  provenance: Provenance;
  details?: string | null;
  /** When the person made the choice; default: the time of the entry. */
  chosenAt?: number;
}

/**
 * Whether the consent fields of a request that opts a person out describe the opt-out. With a method they describe a
 * consent.
 */
export function describesOptOut(consent: ConsentInput | null | undefined): consent is ConsentInput {
  return consent !== undefined && consent !== null && consent.method === undefined;
}

/** An opt-out over the API: its evidence is that of the request, not the caller's address. */
export function apiOptOut(consent: ConsentInput | null | undefined, provenance: Provenance): OptOut {
  const { details, ipAddress, userAgent, consentedAt } = describesOptOut(consent) ? consent : {};
  return {
    method: 'api',
    provenance: { ...provenance, ipAddress: ipAddress ?? null, userAgent: userAgent ?? null },
    details: details ?? null,
    chosenAt: consentedAt ?? provenance.at,
  };
}

/**
 * Adds an opt-out from a stream in a unit of work, and records the first one from marketing mail in the history of the
 * contact, whose consent stays on record. Returns false if there is this opt-out already. `optOut` null: the caller has
 * recorded it.
 */
export function addOptOut(
  tables: Tables,
  suppression: Omit<NewSuppression, 'reason'>,
  optOut: OptOut | null,
): boolean {
  const { account_id: accountId, recipient_hash: identifier, stream } = suppression;
  const isFirst = stream !== 'tx' && marketingOptOuts(tables, accountId, identifier).length === 0;
  const added = tables.suppressions.add({ ...suppression, reason: 'unsubscribe' });
  const contact = added && isFirst ? tables.contacts.byIdentifier(accountId, identifier) : null;
  if (contact !== null && optOut !== null) record(tables, contact, null, 'withdrawn', optOut);
  return added;
}

/**
 * Removes a person's opt-outs from exactly this stream in a unit of work, at the person's request. If the consent is
 * valid again, that is recorded. Returns false if there was none.
 */
export function removeOptOuts(
  tables: Tables,
  { accountId, identifier, stream }: { accountId: string; identifier: string; stream: Stream },
  request: OptOut,
): boolean {
  const optOuts = optOutsOf(tables, accountId, identifier).filter((row) => row.stream === stream);
  for (const { seq } of optOuts) tables.suppressions.remove(seq);
  if (optOuts.length === 0) return false;
  const isLast = stream === 'mk' && marketingOptOuts(tables, accountId, identifier).length === 0;
  const contact = isLast ? tables.contacts.byIdentifier(accountId, identifier) : null;
  if (contact !== null && contact.consent_n !== null) record(tables, contact, null, 'given', request);
  return true;
}

/** The person's opt-outs from streams. */
export function optOutsOf(tables: Tables, accountId: string, identifier: string): SuppressionRow[] {
  return tables.suppressions.of(accountId, identifier).filter(({ reason }) => reason === 'unsubscribe');
}

/** The person's opt-outs that end marketing mail. */
export function marketingOptOuts(tables: Tables, accountId: string, identifier: string): SuppressionRow[] {
  return optOutsOf(tables, accountId, identifier).filter(({ stream }) => stream !== 'tx');
}

/** Records an opt-out in a unit of work. Returns false if this identifier has already opted out. */
export function leaveGroup(
  tables: Tables,
  group: SubscriptionGroupRow,
  recipientHash: string,
  optOut: OptOut,
): boolean {
  const contact = tables.contacts.byIdentifier(group.account_id, recipientHash);
  const { at } = optOut.provenance;
  let left = false;
  for (const identifier of knownIdentifiers(recipientHash, contact)) {
    const row = { group_seq: group.seq, recipient_hash: identifier, method: optOut.method, created_at: at };
    left = tables.groupOptOuts.add(row) || left;
  }
  if (contact === null) return left;
  setActive(tables, group, contact, 0, at);
  if (left) record(tables, contact, group.subscription_group_id, 'left_group', optOut);
  return left;
}

/**
 * Ends an opt-out in a unit of work, at the person's or the caller's express request. Returns false if there was none.
 */
export function returnToGroup(
  tables: Tables,
  group: SubscriptionGroupRow,
  recipientHash: string,
  request: Pick<OptOut, 'method' | 'provenance'>,
): boolean {
  const contact = tables.contacts.byIdentifier(group.account_id, recipientHash);
  let returned = false;
  for (const identifier of knownIdentifiers(recipientHash, contact)) {
    returned = tables.groupOptOuts.remove(group.seq, identifier) || returned;
  }
  if (contact === null) return returned;
  const { method, provenance } = request;
  setActive(tables, group, contact, 1, provenance.at);
  if (returned)
    record(tables, contact, group.subscription_group_id, 'returned_to_group', { method, provenance });
  return returned;
}

/** This identifier and those of its contact. */
export function knownIdentifiers(identifier: string, contact: KnownContact | null): ReadonlySet<string> {
  return new Set([identifier, ...(contact === null ? [] : identifiersOf(contact))]);
}

/** Whether this person has opted out of the group, a member or not. */
export function hasLeft(tables: Tables, group: SubscriptionGroupRow, contact: KnownContact): boolean {
  return identifiersOf(contact).some((identifier) => tables.groupOptOuts.has(group.seq, identifier));
}

/** The time of this person's opt-out from the group; null: none. */
export function leftAt(tables: Tables, group: SubscriptionGroupRow, contact: KnownContact): number | null {
  const times = identifiersOf(contact)
    .map((identifier) => tables.groupOptOuts.since(group.seq, identifier))
    .filter((time) => time !== null);
  return times.length === 0 ? null : Math.min(...times);
}

function setActive(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  isActive: 0 | 1,
  at: number,
): void {
  const membership = tables.subscriptions.get(group.seq, contact.seq);
  if (membership === null || membership.is_active === isActive) return;
  tables.subscriptions.update({ ...membership, is_active: isActive, updated_at: at });
  if (isActive === 1) groupJoined(tables, group.subscription_group_id, contact, at);
}

function record(
  tables: Tables,
  contact: KnownContact,
  groupId: string | null,
  action: ConsentAction,
  { method, provenance, details = null, chosenAt = provenance.at }: OptOut,
): void {
  tables.consents.add({
    ...entryOf(contact.seq, action, provenance),
    subscription_group_id: groupId,
    method,
    details,
    ip_address: provenance.ipAddress,
    user_agent: provenance.userAgent,
    said_at: chosenAt,
  });
}
