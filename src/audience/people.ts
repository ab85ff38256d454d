import { DAY } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';
import { emailIdentifier, phoneIdentifier } from '../mail/identifier.ts';
import type { ConsentMethod } from '../store/contacts/consent.ts';
import type { ContactRow, KnownContact } from '../store/contacts/contacts.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { evidenceOf, giveConsent, type Provenance, withdrawConsent } from './consent.ts';
import { mergeCustomFields } from './custom-fields.ts';
import type { ProfileChanges } from './profile.ts';
import { searchKeys } from './search-key.ts';
import { statusOf } from './standing.ts';

/**
 * Adding and changing one contact inside a unit of work: the identifiers and search keys that follow from the
 * profile, the consent with its history, and what a person's opt-outs mean for a new address of theirs. The API
 * and the import both come by here.
 */
export interface NewPerson {
  accountId: string;
  /** Where none is named. */
  source: string;
  /** Of the consent, where none is named. */
  defaultMethod: ConsentMethod;
  provenance: Provenance;
  /** The limit on the number of the account's contacts. */
  mayAdd: MayAdd;
}

/** Returns the new contact's seq; a refusal when one of its identifiers is known already. */
export function addPerson(
  tables: Tables,
  ids: Ids,
  profile: ProfileChanges,
  person: NewPerson,
): number | Refusal {
  const reach = reachOf({ email: profile.email ?? null, phone: profile.phone ?? null });
  const taken = takenIdentifier(tables, person.accountId, reach, null);
  return taken ?? addUnknownPerson(tables, ids, profile, person);
}

/** The same for somebody who was looked for and not found, in this unit of work. */
export function addUnknownPerson(
  tables: Tables,
  ids: Ids,
  profile: ProfileChanges,
  { accountId, source, defaultMethod, provenance, mayAdd }: NewPerson,
): number | Refusal {
  const early = futureConsent(profile, provenance);
  if (early !== null) return early;
  const full = mayAdd(tables, accountId);
  if (full !== null) return full;
  const reach = reachOf({ email: profile.email ?? null, phone: profile.phone ?? null });
  const names = { first_name: profile.firstName ?? null, last_name: profile.lastName ?? null };
  const consent = profile.consent === null ? null : (profile.consent ?? {});
  const seq = tables.contacts.insert({
    account_id: accountId,
    user_id: ids.uuid(),
    ...reach,
    ...names,
    custom_fields: JSON.stringify(profile.customFields ?? {}),
    global_status: statusOf(tables, accountId, identifiersOf(reach)[0]),
    consent_n: consent === null ? null : 1,
    source: profile.source ?? source,
    added_by: provenance.by,
    ...searchKeys({ ...reach, ...names }),
    created_at: provenance.at,
    updated_at: provenance.at,
  });
  if (consent !== null) {
    const method = consent.method ?? defaultMethod;
    tables.consents.begin({
      contact_seq: seq,
      action: 'given',
      subscription_group_id: null,
      method,
      details: consent.details ?? null,
      ...evidenceOf(consent, method, provenance),
      recorded_at: provenance.at,
      recorded_by: provenance.by,
    });
  }
  return seq;
}

/**
 * Writes what is given of a profile. `merge` keeps custom fields that are not named. True when anything is
 * different now; a refusal when an identifier is another contact's, or none would be left.
 */
export function changePerson(
  tables: Tables,
  contact: KnownContact,
  changes: ProfileChanges,
  how: { merge: boolean; defaultMethod: ConsentMethod; provenance: Provenance },
): boolean | Refusal {
  const early = futureConsent(changes, how.provenance);
  if (early !== null) return early;
  const given = <Value>(value: Value | undefined, before: Value) => (value === undefined ? before : value);
  const reach = reachOf({
    email: given(changes.email, contact.email),
    phone: given(changes.phone, contact.phone),
  });
  if (reach.email === null && reach.phone === null)
    return invalid('email', 'a contact needs an e-mail address or a phone number');
  const taken = takenIdentifier(tables, contact.account_id, reach, contact.seq);
  if (taken !== null) return taken;
  const names = {
    first_name: given(changes.firstName, contact.first_name),
    last_name: given(changes.lastName, contact.last_name),
  };
  const custom_fields = customFieldsAfter(contact, changes, how.merge);
  const source = changes.source ?? contact.source;
  const changed =
    reach.email !== contact.email ||
    reach.phone !== contact.phone ||
    names.first_name !== contact.first_name ||
    names.last_name !== contact.last_name ||
    custom_fields !== contact.custom_fields ||
    source !== contact.source;
  if (changed) {
    carryOptOuts(tables, contact, reach);
    tables.contacts.update({
      ...contact,
      ...reach,
      ...names,
      custom_fields,
      source,
      global_status: statusOf(tables, contact.account_id, identifiersOf(reach)[0]),
      ...searchKeys({ ...reach, ...names }),
      updated_at: how.provenance.at,
    });
  }
  return changeConsent(tables, contact, changes, how) || changed;
}

function changeConsent(
  tables: Tables,
  contact: KnownContact,
  { consent }: ProfileChanges,
  { defaultMethod, provenance }: { defaultMethod: ConsentMethod; provenance: Provenance },
): boolean {
  if (consent === undefined) return false;
  if (consent === null) return withdrawConsent(tables, contact, provenance);
  return giveConsent(tables, contact, consent, { method: defaultMethod, groupId: null, provenance });
}

function customFieldsAfter(contact: KnownContact, { customFields }: ProfileChanges, merge: boolean): string {
  if (customFields === undefined) return contact.custom_fields;
  return JSON.stringify(
    merge ? mergeCustomFields(JSON.parse(contact.custom_fields), customFields) : customFields,
  );
}

/** A day of grace: not every caller's clock or time zone is right. */
export function futureConsent(
  { consent }: Pick<ProfileChanges, 'consent'>,
  { at }: Provenance,
): Refusal | null {
  return typeof consent?.saidAt === 'number' && consent.saidAt > at + DAY
    ? invalid('consentTimestamp', 'lies in the future')
    : null;
}

type Reach = Pick<ContactRow, 'email' | 'email_hash' | 'phone' | 'phone_hash'>;

function reachOf({ email, phone }: Pick<ContactRow, 'email' | 'phone'>): Reach {
  return {
    email,
    email_hash: email === null ? null : emailIdentifier(email),
    phone,
    phone_hash: phone === null ? null : phoneIdentifier(phone),
  };
}

function takenIdentifier(
  tables: Tables,
  accountId: string,
  { email_hash, phone_hash }: Reach,
  own: number | null,
): Refusal | null {
  for (const [field, identifier] of [
    ['email', email_hash],
    ['phone', phone_hash],
  ] as const) {
    if (identifier === null) continue;
    const other = tables.contacts.byIdentifier(accountId, identifier);
    if (other !== null && other.seq !== own) {
      const message = `there is a contact with this ${field === 'email' ? 'e-mail address' : 'phone number'} already`;
      return refuse('CONTACT_ALREADY_EXISTS', message, { details: [{ field, message }] });
    }
  }
  return null;
}

/**
 * An opt-out is a person's word and goes with them to a new address or number, with the time when it was said; a
 * bounce is about the old one and stays there.
 */
function carryOptOuts(tables: Tables, contact: KnownContact, reach: Reach): void {
  const before = identifiersOf(contact);
  for (const to of identifiersOf(reach)) {
    if (before.includes(to)) continue;
    for (const from of before) tables.groupOptOuts.copy(contact.account_id, from, to);
  }
  const [from] = before;
  const [to] = identifiersOf(reach);
  if (from === undefined || to === undefined || to === from) return;
  for (const { stream, reason, created_at } of tables.suppressions.of(contact.account_id, from)) {
    if (reason !== 'unsubscribe' && reason !== 'complaint') continue;
    tables.suppressions.add({
      account_id: contact.account_id,
      recipient_hash: to,
      stream,
      reason,
      email: reach.email,
      message_seq: null,
      created_at,
    });
  }
}

/** `email_<md5>` first. */
export function identifiersOf({
  email_hash,
  phone_hash,
}: Pick<Reach, 'email_hash' | 'phone_hash'>): string[] {
  return [email_hash, phone_hash].filter((identifier) => identifier !== null);
}

/** The contact that an identifier names; the same refusal for an unknown one and for another account's. */
export function findPerson(tables: Tables, accountId: string, identifier: string): KnownContact | Refusal {
  return (
    tables.contacts.byIdentifier(accountId, identifier) ??
    refuse('CONTACT_NOT_FOUND', `there is no contact ${identifier}`)
  );
}

/** The contact as it is now, after a change to it. */
export function reread(tables: Tables, seq: number): KnownContact {
  const contact = tables.contacts.bySeq(seq);
  if (contact === null) throw new Error('the contact vanished inside its own unit of work');
  return contact;
}
