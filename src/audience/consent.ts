import type { ConsentAction, ConsentMethod, ConsentRow } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { Tables } from '../store/tables.ts';
import type { ConsentInput } from './profile.ts';

/**
 * Where a change of consent comes from. Each change adds an entry to the contact's history: who recorded it, when, how it
 * was given and from where. A repetition of the current consent adds none.
 */
export interface Provenance {
  /** An API key's id, a person of the console, `command line`, `import`, `sunset rule` or `recipient`. */
  by: string;
  /** Address of the caller: evidence of an implicit consent and of an opt-out, of no other consent. */
  ipAddress: string | null;
  userAgent: string | null;
  /** Epoch ms. */
  at: number;
}

/** Evidence of a consent. */
type Evidence = Pick<ConsentRow, 'ip_address' | 'user_agent' | 'said_at'>;

const NO_EVIDENCE: Evidence = { ip_address: null, user_agent: null, said_at: null };

/**
 * Evidence of a consent that replaces `before`: the fields of the input, `before` for absent ones. Without `before`,
 * absent fields are null; for an implicit consent the call itself is the evidence. Its address and user agent are one
 * piece of evidence: naming one of them replaces both.
 */
export function evidenceOf(
  input: ConsentInput,
  method: ConsentMethod,
  provenance: Provenance,
  before: Evidence | null = null,
): Evidence {
  const call = { ip_address: provenance.ipAddress, user_agent: provenance.userAgent, said_at: provenance.at };
  const isImplicit = method === 'implicit_api';
  const known = before ?? (isImplicit ? call : NO_EVIDENCE);
  const isNamed = input.ipAddress !== undefined || input.userAgent !== undefined;
  // On record, both are those of a request, unless a caller named one of them alone.
  const isPair = before === null || (before.ip_address !== null && before.user_agent !== null);
  const { ip_address, user_agent } = isImplicit && isNamed && isPair ? NO_EVIDENCE : known;
  return {
    ip_address: input.ipAddress === undefined ? ip_address : input.ipAddress,
    user_agent: input.userAgent === undefined ? user_agent : input.userAgent,
    said_at: input.consentedAt === undefined ? known.said_at : input.consentedAt,
  };
}

/** A new entry of the history of a contact, without a method and evidence. */
export function entryOf(
  contactSeq: number,
  action: ConsentAction,
  { by, at }: Provenance,
): Omit<ConsentRow, 'n'> {
  return {
    contact_seq: contactSeq,
    action,
    subscription_group_id: null,
    method: null,
    details: null,
    ip_address: null,
    user_agent: null,
    said_at: at,
    recorded_at: at,
    recorded_by: by,
    evidence: null,
  };
}

/**
 * Records a consent in a unit of work. `defaults.method` applies when neither the input nor the contact has a method.
 * Returns false if it repeats the current consent.
 */
export function giveConsent(
  tables: Tables,
  contact: KnownContact,
  input: ConsentInput,
  defaults: { method: ConsentMethod; groupId: string | null; provenance: Provenance },
): boolean {
  const { provenance, groupId } = defaults;
  const method = input.method ?? contact.consent_method ?? defaults.method;
  if (contact.consent_method !== null && repeats(contact, method, input)) return false;
  // Details and evidence belong to the method by which the consent was given.
  const isSameMethod = method === contact.consent_method;
  const before = isSameMethod ? evidenceOnRecord(contact) : null;
  const details = isSameMethod ? contact.consent_details : null;
  const n = tables.consents.add({
    ...entryOf(contact.seq, 'given', provenance),
    subscription_group_id: groupId,
    method,
    details: input.details === undefined ? details : input.details,
    evidence: input.signUp === undefined ? null : JSON.stringify(input.signUp),
    ...evidenceOf(input, method, provenance, before),
  });
  tables.contacts.setConsent(contact.seq, n, provenance.at);
  if (!NOT_EXPRESS.includes(method)) tables.engagement.answered(contact.seq);
  return true;
}

function evidenceOnRecord(contact: KnownContact): Evidence {
  return {
    ip_address: contact.consent_ip_address,
    user_agent: contact.consent_user_agent,
    said_at: contact.consented_at,
  };
}

function repeats(contact: KnownContact, method: ConsentMethod, input: ConsentInput): boolean {
  const same = <Value>(value: Value | undefined, known: Value) => value === undefined || value === known;
  return (
    method === contact.consent_method &&
    same(input.details, contact.consent_details) &&
    same(input.ipAddress, contact.consent_ip_address) &&
    same(input.userAgent, contact.consent_user_agent) &&
    same(input.consentedAt, contact.consented_at)
  );
}

/**
 * Whether a request has consent that may end an opt-out: an express method with evidence, which is not recorded yet and
 * not from before the opt-out.
 */
export function isNewConsent(
  contact: KnownContact | null,
  input: ConsentInput | null,
  since: number,
): boolean {
  if (input?.method === undefined || NOT_EXPRESS.includes(input.method)) return false;
  const { consentedAt, details, ipAddress, userAgent } = input;
  if (![consentedAt, details, ipAddress, userAgent].some((value) => value !== undefined && value !== null))
    return false;
  if (typeof consentedAt === 'number' && consentedAt < since) return false;
  return contact === null || !repeats(contact, input.method, input);
}

/** Methods without a statement of the person. */
const NOT_EXPRESS: readonly ConsentMethod[] = ['implicit_api', 'imported'];

/** Records that consent is withdrawn. Returns false if there was none. */
export function withdrawConsent(tables: Tables, contact: KnownContact, provenance: Provenance): boolean {
  if (contact.consent_n === null) return false;
  tables.consents.add(entryOf(contact.seq, 'withdrawn', provenance));
  tables.contacts.setConsent(contact.seq, null, provenance.at);
  return true;
}
