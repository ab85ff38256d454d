import { DAY } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';
import { emailIdentifier, phoneIdentifier } from '../mail/identifier.ts';
import type { ConsentMethod } from '../store/contacts/consent.ts';
import type { ContactRow, KnownContact } from '../store/contacts/contacts.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { entryOf, evidenceOf, giveConsent, type Provenance, withdrawConsent } from './consent.ts';
import { mergeCustomFields, type ProfileChanges } from './profile.ts';
import { searchKeys } from './search-key.ts';
import { fieldsChanged } from './sequences/entries.ts';
import { statusOf } from './standing.ts';

/*
 * Creates and changes one contact in a unit of work, for the API and imports: identifiers and search keys from the
 * profile, the consent with its history, and opt-outs that follow the person to a new address.
 */

export interface NewPerson {
  accountId: string;
  /** Default of the profile's source. */
  source: string;
  /** Default of the consent's method. */
  defaultMethod: ConsentMethod;
  provenance: Provenance;
  /** The limit on the number of the account's contacts. */
  mayAdd: MayAdd;
}

/** Creates a contact and returns its seq; a refusal when a contact with one of its identifiers exists. */
export function addPerson(
  tables: Tables,
  ids: Ids,
  profile: ProfileChanges,
  person: NewPerson,
): number | Refusal {
  const identifiers = identifiersFrom({ email: profile.email ?? null, phone: profile.phone ?? null });
  const taken = takenIdentifier(tables, person.accountId, identifiers, null);
  return taken ?? addUnknownPerson(tables, ids, profile, person);
}

/**
 * Adds a person like `addPerson`, for a caller that has found no contact with these identifiers in this unit of work.
 */
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
  const identifiers = identifiersFrom({ email: profile.email ?? null, phone: profile.phone ?? null });
  const names = { first_name: profile.firstName ?? null, last_name: profile.lastName ?? null };
  const consent = profile.consent === null ? null : (profile.consent ?? {});
  const customFields = JSON.stringify(profile.customFields ?? {});
  const seq = tables.contacts.insert({
    account_id: accountId,
    user_id: ids.uuid(),
    ...identifiers,
    ...names,
    custom_fields: customFields,
    language: profile.language ?? null,
    paused_until: null,
    erasure_requested_at: null,
    global_status: statusOf(tables, accountId, identifiersOf(identifiers)[0]),
    consent_n: consent === null ? null : 1,
    source: profile.source ?? source,
    added_by: provenance.by,
    ...searchKeys({ ...identifiers, ...names }),
    created_at: provenance.at,
    updated_at: provenance.at,
  });
  if (consent !== null) {
    const method = consent.method ?? defaultMethod;
    tables.consents.begin({
      ...entryOf(seq, 'given', provenance),
      method,
      details: consent.details ?? null,
      evidence: consent.signUp === undefined ? null : JSON.stringify(consent.signUp),
      ...evidenceOf(consent, method, provenance),
    });
  }
  fieldsChanged(tables, { account_id: accountId, seq }, null, customFields, provenance.at);
  return seq;
}

/**
 * Changes the fields of a profile that are present. `merge`: absent custom fields are not changed. Returns whether
 * anything changed, or a refusal if an identifier belongs to another contact or no identifier would be left.
 */
export function changePerson(
  tables: Tables,
  contact: KnownContact,
  changes: ProfileChanges,
  how: { merge: boolean; defaultMethod: ConsentMethod; provenance: Provenance },
): boolean | Refusal {
  const early = futureConsent(changes, how.provenance);
  if (early !== null) return early;
  const orBefore = <Value>(value: Value | undefined, before: Value) => (value === undefined ? before : value);
  const identifiers = identifiersFrom({
    email: orBefore(changes.email, contact.email),
    phone: orBefore(changes.phone, contact.phone),
  });
  if (identifiers.email === null && identifiers.phone === null)
    return invalid('email', 'an email address or a phone number is required');
  const taken = takenIdentifier(tables, contact.account_id, identifiers, contact.seq);
  if (taken !== null) return taken;
  const names = {
    first_name: orBefore(changes.firstName, contact.first_name),
    last_name: orBefore(changes.lastName, contact.last_name),
  };
  const custom_fields = customFieldsAfter(contact, changes, how.merge);
  const source = changes.source ?? contact.source;
  const language = orBefore(changes.language, contact.language);
  const changed =
    identifiers.email !== contact.email ||
    identifiers.phone !== contact.phone ||
    names.first_name !== contact.first_name ||
    names.last_name !== contact.last_name ||
    custom_fields !== contact.custom_fields ||
    source !== contact.source ||
    language !== contact.language;
  if (changed) {
    carryOptOuts(tables, contact, identifiers);
    tables.contacts.update({
      ...contact,
      ...identifiers,
      ...names,
      custom_fields,
      source,
      language,
      global_status: statusOf(tables, contact.account_id, identifiersOf(identifiers)[0]),
      ...searchKeys({ ...identifiers, ...names }),
      updated_at: how.provenance.at,
    });
    fieldsChanged(tables, contact, contact.custom_fields, custom_fields, how.provenance.at);
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

/** A consent may be dated up to a day in the future, because of callers' clocks and time zones. */
export function futureConsent(
  { consent }: Pick<ProfileChanges, 'consent'>,
  { at }: Provenance,
): Refusal | null {
  return typeof consent?.consentedAt === 'number' && consent.consentedAt > at + DAY
    ? invalid('consentTimestamp', 'is in the future')
    : null;
}

type Identifiers = Pick<ContactRow, 'email' | 'email_hash' | 'phone' | 'phone_hash'>;

function identifiersFrom({ email, phone }: Pick<ContactRow, 'email' | 'phone'>): Identifiers {
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
  { email_hash, phone_hash }: Identifiers,
  ownSeq: number | null,
): Refusal | null {
  for (const [field, identifier] of [
    ['email', email_hash],
    ['phone', phone_hash],
  ] as const) {
    if (identifier === null) continue;
    const other = tables.contacts.byIdentifier(accountId, identifier);
    if (other !== null && other.seq !== ownSeq) {
      const message = `There is a contact with this ${field === 'email' ? 'email address' : 'phone number'} already`;
      return refuse('CONTACT_ALREADY_EXISTS', message, { details: [{ field, message }] });
    }
  }
  return null;
}

/**
 * Copies opt-outs and complaints to a new address or number of the person, with their times. A bounce concerns the old
 * address only.
 */
function carryOptOuts(tables: Tables, contact: KnownContact, identifiers: Identifiers): void {
  const before = identifiersOf(contact);
  for (const to of identifiersOf(identifiers)) {
    if (before.includes(to)) continue;
    for (const from of before) tables.groupOptOuts.copy(contact.account_id, from, to);
  }
  const [from] = before;
  const [to] = identifiersOf(identifiers);
  if (from === undefined || to === undefined || to === from) return;
  for (const { stream, reason, created_at } of tables.suppressions.of(contact.account_id, from)) {
    if (reason !== 'unsubscribe' && reason !== 'complaint') continue;
    tables.suppressions.add({
      account_id: contact.account_id,
      recipient_hash: to,
      stream,
      reason,
      email: identifiers.email,
      message_seq: null,
      created_at,
    });
  }
}

/** `email_<md5>` first. */
export function identifiersOf({
  email_hash,
  phone_hash,
}: Pick<Identifiers, 'email_hash' | 'phone_hash'>): string[] {
  return [email_hash, phone_hash].filter((identifier) => identifier !== null);
}

/** Returns the contact with an identifier; the refusal is the same for an unknown one and for one of another account. */
export function findPerson(tables: Tables, accountId: string, identifier: string): KnownContact | Refusal {
  return (
    tables.contacts.byIdentifier(accountId, identifier) ??
    refuse('CONTACT_NOT_FOUND', `There is no contact ${identifier}`)
  );
}

/** The contact after a change in this unit of work. */
export function reread(tables: Tables, seq: number): KnownContact {
  const contact = tables.contacts.bySeq(seq);
  if (contact === null) throw new Error('the contact does not exist after a change in the same unit of work');
  return contact;
}
