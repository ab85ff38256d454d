import type { ConsentMethod } from '../store/consent.ts';
import type { KnownContact } from '../store/contacts.ts';
import type { Tables } from '../store/tables.ts';
import type { ConsentWish } from './profile.ts';

/**
 * Consent is never only a last value: whatever changes it adds to the person's history who recorded it, when,
 * how it was given and from where. Saying the same again adds nothing.
 */
export interface Witness {
  /** An API key's id, `import` or `recipient`. */
  by: string;
  /** Where the word came from when nobody says otherwise; null: nowhere that means anything. */
  ipAddress: string | null;
  userAgent: string | null;
  /** Epoch ms. */
  at: number;
}

/**
 * Records a consent, in a unit of work. `method` is taken where the wish names none and the contact has none.
 * False when it says only what is known already.
 */
export function giveConsent(
  tables: Tables,
  contact: KnownContact,
  wish: ConsentWish,
  defaults: { method: ConsentMethod; groupId: string | null; witness: Witness },
): boolean {
  const { witness, groupId } = defaults;
  const method = wish.method ?? contact.consent_method ?? defaults.method;
  if (contact.consent_method !== null && repeats(contact, method, wish)) return false;
  const n = tables.consents.add({
    contact_seq: contact.seq,
    action: 'given',
    subscription_group_id: groupId,
    method,
    // An earlier note belongs to the way in which consent was given then.
    details: wish.details ?? (method === contact.consent_method ? contact.consent_details : null),
    ip_address: wish.ipAddress ?? witness.ipAddress,
    user_agent: wish.userAgent ?? witness.userAgent,
    said_at: wish.saidAt ?? witness.at,
    recorded_at: witness.at,
    recorded_by: witness.by,
  });
  tables.contacts.setConsent(contact.seq, n, witness.at);
  return true;
}

function repeats(contact: KnownContact, method: ConsentMethod, wish: ConsentWish): boolean {
  const same = <Value>(given: Value | undefined, known: Value) => given === undefined || given === known;
  return (
    method === contact.consent_method &&
    same(wish.details, contact.consent_details) &&
    same(wish.ipAddress, contact.consent_ip_address) &&
    same(wish.userAgent, contact.consent_user_agent) &&
    same(wish.saidAt, contact.consented_at)
  );
}

/** From now on there is no consent. False when there was none. */
export function withdrawConsent(tables: Tables, contact: KnownContact, witness: Witness): boolean {
  if (contact.consent_n === null) return false;
  tables.consents.add({
    contact_seq: contact.seq,
    action: 'withdrawn',
    subscription_group_id: null,
    method: null,
    details: null,
    ip_address: witness.ipAddress,
    user_agent: witness.userAgent,
    said_at: witness.at,
    recorded_at: witness.at,
    recorded_by: witness.by,
  });
  tables.contacts.setConsent(contact.seq, null, witness.at);
  return true;
}
