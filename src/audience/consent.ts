import type { ConsentMethod, ConsentRow } from '../store/contacts/consent.ts';
import type { KnownContact } from '../store/contacts/contacts.ts';
import type { Tables } from '../store/tables.ts';
import type { ConsentInput } from './profile.ts';

/**
 * Consent is never only a last value: whatever changes it adds to the person's history who recorded it, when,
 * how it was given and from where. Saying the same again adds nothing.
 */
export interface Provenance {
  /** An API key's id, `import` or `recipient`. */
  by: string;
  /** The address of whoever calls: evidence of an implicit consent and of an opt-out, never of another consent. */
  ipAddress: string | null;
  userAgent: string | null;
  /** Epoch ms. */
  at: number;
}

/** What proves a consent. */
type Evidence = Pick<ConsentRow, 'ip_address' | 'user_agent' | 'said_at'>;

const NO_EVIDENCE: Evidence = { ip_address: null, user_agent: null, said_at: null };

/**
 * Evidence of a consent that replaces `before`: what the caller names, `before` for the rest. Without `before`,
 * evidence that nobody names is null; only an implicit consent is proven by the call itself.
 */
export function evidenceOf(
  input: ConsentInput,
  method: ConsentMethod,
  provenance: Provenance,
  before: Evidence | null = null,
): Evidence {
  const call = { ip_address: provenance.ipAddress, user_agent: provenance.userAgent, said_at: provenance.at };
  const known = before ?? (method === 'implicit_api' ? call : NO_EVIDENCE);
  return {
    ip_address: input.ipAddress === undefined ? known.ip_address : input.ipAddress,
    user_agent: input.userAgent === undefined ? known.user_agent : input.userAgent,
    said_at: input.saidAt === undefined ? known.said_at : input.saidAt,
  };
}

/**
 * Records a consent, in a unit of work. `method` is taken where the input names none and the contact has none.
 * False when it says only what is known already.
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
  // A note and evidence belong to the way in which the consent was given.
  const isSameWay = method === contact.consent_method;
  const before = isSameWay ? evidenceOnRecord(contact) : null;
  const details = isSameWay ? contact.consent_details : null;
  const n = tables.consents.add({
    contact_seq: contact.seq,
    action: 'given',
    subscription_group_id: groupId,
    method,
    details: input.details === undefined ? details : input.details,
    ...evidenceOf(input, method, provenance, before),
    recorded_at: provenance.at,
    recorded_by: provenance.by,
  });
  tables.contacts.setConsent(contact.seq, n, provenance.at);
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
  const same = <Value>(given: Value | undefined, known: Value) => given === undefined || given === known;
  return (
    method === contact.consent_method &&
    same(input.details, contact.consent_details) &&
    same(input.ipAddress, contact.consent_ip_address) &&
    same(input.userAgent, contact.consent_user_agent) &&
    same(input.saidAt, contact.consented_at)
  );
}

/**
 * Whether a request gives a consent that may end an opt-out: an express method with evidence, not what is on
 * record already, and not from before the opt-out.
 */
export function isNewConsent(
  contact: KnownContact | null,
  input: ConsentInput | null,
  since: number,
): boolean {
  if (input?.method === undefined || NOT_EXPRESS.includes(input.method)) return false;
  const { saidAt, ipAddress, userAgent } = input;
  if (![saidAt, ipAddress, userAgent].some((value) => value !== undefined && value !== null)) return false;
  if (typeof saidAt === 'number' && saidAt < since) return false;
  return contact === null || !repeats(contact, input.method, input);
}

/** Methods by which nobody says anything at the time. */
const NOT_EXPRESS: readonly ConsentMethod[] = ['implicit_api', 'imported'];

/** From now on there is no consent. False when there was none. */
export function withdrawConsent(tables: Tables, contact: KnownContact, provenance: Provenance): boolean {
  if (contact.consent_n === null) return false;
  tables.consents.add({
    contact_seq: contact.seq,
    action: 'withdrawn',
    subscription_group_id: null,
    method: null,
    details: null,
    ip_address: null,
    user_agent: null,
    said_at: provenance.at,
    recorded_at: provenance.at,
    recorded_by: provenance.by,
  });
  tables.contacts.setConsent(contact.seq, null, provenance.at);
  return true;
}
