import type { OptOutMethod } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Tables } from '../store/tables.ts';
import type { Provenance } from './consent.ts';
import { identifiersOf } from './people.ts';

/**
 * Opt-outs from subscription groups. An opt-out is stored by the person's identifiers: it survives the removal of the
 * membership and the person's erasure, and neither an import nor an ordinary add ends it. A membership is inactive as
 * long as there is an opt-out.
 */

/** Records an opt-out in a unit of work. Returns false if this identifier has already opted out. */
export function leaveGroup(
  tables: Tables,
  group: SubscriptionGroupRow,
  recipientHash: string,
  optOut: { method: OptOutMethod; provenance: Provenance },
): boolean {
  const contact = tables.contacts.byIdentifier(group.account_id, recipientHash);
  const { at } = optOut.provenance;
  let left = false;
  for (const identifier of new Set([recipientHash, ...(contact === null ? [] : identifiersOf(contact))])) {
    const row = { group_seq: group.seq, recipient_hash: identifier, method: optOut.method, created_at: at };
    left = tables.groupOptOuts.add(row) || left;
  }
  if (contact === null) return left;
  setActive(tables, group, contact, 0, at);
  if (left) record(tables, group, contact, 'left_group', optOut);
  return left;
}

/**
 * Ends an opt-out in a unit of work, at the person's or the caller's express request. Returns false if there was none.
 */
export function returnToGroup(
  tables: Tables,
  group: SubscriptionGroupRow,
  recipientHash: string,
  request: { method: OptOutMethod; provenance: Provenance },
): boolean {
  const contact = tables.contacts.byIdentifier(group.account_id, recipientHash);
  let returned = false;
  for (const identifier of new Set([recipientHash, ...(contact === null ? [] : identifiersOf(contact))])) {
    returned = tables.groupOptOuts.remove(group.seq, identifier) || returned;
  }
  if (contact === null) return returned;
  setActive(tables, group, contact, 1, request.provenance.at);
  if (returned) record(tables, group, contact, 'returned_to_group', request);
  return returned;
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
}

function record(
  tables: Tables,
  group: SubscriptionGroupRow,
  contact: KnownContact,
  action: 'left_group' | 'returned_to_group',
  { method, provenance }: { method: OptOutMethod; provenance: Provenance },
): void {
  tables.consents.add({
    contact_seq: contact.seq,
    action,
    subscription_group_id: group.subscription_group_id,
    method,
    details: null,
    ip_address: provenance.ipAddress,
    user_agent: provenance.userAgent,
    said_at: provenance.at,
    recorded_at: provenance.at,
    recorded_by: provenance.by,
  });
}
