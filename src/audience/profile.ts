import { isIP } from 'node:net';
import { parseMoment } from '../core/clock.ts';
import { INEXACT, isInexact } from '../core/exact-numbers.ts';
import { parseMailbox } from '../mail/address.ts';
import { parsePhone } from '../mail/identifier.ts';
import { textFault } from '../mail/text-fault.ts';
import { CONSENT_METHODS, type ConsentMethod, type SignUpEvidence } from '../store/contacts/consent.ts';

/**
 * A parsed field of a profile. The API and imports use the same parsers, so that both accept the same values. `fault`:
 * what is wrong, following the field's name.
 */
export type Parsed<Value> = { value: Value } | { fault: string };

/** Absent (or undefined) fields stay unchanged, null removes a value. */
export interface ProfileChanges {
  /** Address and phone number as `readEmail` and `readPhone` return them. */
  email?: string | null | undefined;
  phone?: string | null | undefined;
  firstName?: string | null | undefined;
  lastName?: string | null | undefined;
  /** As `readLanguage` returns it. */
  language?: string | null | undefined;
  /** Checked by `customFieldsFault`. */
  customFields?: CustomFields | undefined;
  /** Origin of the contact, as `readSource` returns it. */
  source?: string | undefined;
  /** Null: consent is withdrawn. */
  consent?: ConsentInput | null | undefined;
}

/** Absent fields stay unchanged when there is a consent. */
export interface ConsentInput {
  method?: ConsentMethod | undefined;
  details?: string | null | undefined;
  ipAddress?: string | null | undefined;
  userAgent?: string | null | undefined;
  /** Epoch ms. */
  consentedAt?: number | null | undefined;
  /** Of a confirmed sign-up. */
  signUp?: SignUpEvidence | undefined;
}

const MAX_NAME = 200;
export const MAX_SOURCE = 100;
const MAX_DETAILS = 2000;
export const MAX_USER_AGENT = 1000;

/** An address without a display name, its domain as lower-case A-labels. */
export function readEmail(text: string): Parsed<string> {
  const mailbox = parseMailbox(text.trim());
  if (typeof mailbox === 'string') return { fault: mailbox };
  return mailbox.name === ''
    ? { value: mailbox.address }
    : { fault: 'must be an address without a display name' };
}

/** A phone number in E.164 form. */
export function readPhone(text: string): Parsed<string> {
  const number = parsePhone(text);
  return number === null
    ? { fault: 'must be an international phone number such as +442071838750' }
    : { value: number };
}

/** Any script and direction, one line. */
export function readName(text: string): Parsed<string> {
  return readLine(text, MAX_NAME);
}

/** A language tag (BCP 47) such as `de` or `pt-BR`, in its canonical spelling. */
export function readLanguage(text: string): Parsed<string> {
  const tag = text.trim().replaceAll('_', '-');
  const fault = { fault: 'must be a language tag (BCP 47) such as de or pt-BR' };
  if (!/^[a-z]{2,3}(?:-[a-z0-9]{1,8}){0,4}$/i.test(tag)) return fault;
  try {
    return { value: Intl.getCanonicalLocales(tag)[0] ?? tag };
  } catch {
    return fault;
  }
}

/** Origin of a contact or membership: `api`, `import` or any value of the caller such as `checkout`. */
export function readSource(text: string): Parsed<string> {
  return text.trim() === '' ? { fault: 'must not be empty' } : readLine(text, MAX_SOURCE);
}

/** One line of at most MAX_USER_AGENT characters without control characters; '' is accepted. */
export function readUserAgent(text: string): Parsed<string> {
  return readLine(text, MAX_USER_AGENT);
}

function readLine(text: string, max: number): Parsed<string> {
  if (text.length > max) return { fault: `must have at most ${max} characters` };
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return { fault: 'must be one line without control characters' };
  return readText(text);
}

/** At most 2000 characters, line breaks included: the evidence of a consent. */
export function readDetails(text: string): Parsed<string> {
  if (text.length > MAX_DETAILS) return { fault: `must have at most ${MAX_DETAILS} characters` };
  return readText(text);
}

function readText(text: string): Parsed<string> {
  const fault = textFault(text);
  return fault === null ? { value: text } : { fault };
}

/** An IPv4 or IPv6 address, returned as it was given, not in canonical form. */
export function readIpAddress(text: string): Parsed<string> {
  return isIP(text) === 0 ? { fault: 'must be an IP address' } : { value: text };
}

/** One of CONSENT_METHODS, in exactly this spelling. */
export function readMethod(text: string): Parsed<ConsentMethod> {
  const method = CONSENT_METHODS.find((known) => known === text);
  return method === undefined
    ? { fault: `must be one of ${CONSENT_METHODS.map((known) => JSON.stringify(known)).join(', ')}` }
    : { value: method };
}

/** Epoch ms. */
export function readMoment(text: string): Parsed<number> {
  const moment = parseMoment(text);
  return moment === null
    ? { fault: 'must be a time such as 2026-01-31T12:00:00Z or a date such as 2026-01-31' }
    : { value: moment };
}

/**
 * Custom fields of a contact: any names and JSON values. They are stored unchanged or refused, never truncated or
 * rounded.
 */
export type CustomFields = Record<string, unknown>;

/** Total number of values, including nested ones. */
const MAX_VALUES = 1000;
const MAX_DEPTH = 5;
const MAX_BYTES = 64 * 1024;
const MAX_FIELD_NAME = 100;

/** A value that cannot be stored; `path` from the object, '' for the object itself. */
interface CustomFieldFault {
  path: string;
  message: string;
}

/** Returns the first fault, or null. */
export function customFieldsFault(value: unknown): CustomFieldFault | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { path: '', message: 'must be an object' };
  const count = { values: 0 };
  const fault = containerFault(value, '', 1, count);
  if (fault !== null) return fault;
  return Buffer.byteLength(JSON.stringify(value)) > MAX_BYTES
    ? { path: '', message: `must have at most ${MAX_BYTES} bytes of JSON` }
    : null;
}

function containerFault(
  container: object,
  path: string,
  depth: number,
  count: { values: number },
): CustomFieldFault | null {
  if (depth > MAX_DEPTH) return { path, message: `must not be nested more than ${MAX_DEPTH} levels deep` };
  for (const [name, value] of Object.entries(container)) {
    if (++count.values > MAX_VALUES) return { path: '', message: `must have at most ${MAX_VALUES} values` };
    const wrongName = Array.isArray(container) ? null : nameFault(name);
    if (wrongName !== null) return { path, message: wrongName };
    const valuePath = Array.isArray(container) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    const fault = valueFault(value, valuePath, depth, count);
    if (fault !== null) return fault;
  }
  return null;
}

function nameFault(name: string): string | null {
  if (name === '') return 'must not have a field without a name';
  if (name.length > MAX_FIELD_NAME)
    return `must not have a field whose name is longer than ${MAX_FIELD_NAME} characters`;
  if (/[\p{Cc}\p{Cs}]/u.test(name)) return 'must not have a field whose name contains a control character';
  // It would become the prototype of an object that it is copied into.
  return name === '__proto__' ? 'must not have a field __proto__' : null;
}

function valueFault(
  value: unknown,
  path: string,
  depth: number,
  count: { values: number },
): CustomFieldFault | null {
  if (typeof value === 'object' && value !== null) return containerFault(value, path, depth + 1, count);
  if (typeof value === 'string') {
    const message = textFault(value);
    return message === null ? null : { path, message };
  }
  return typeof value === 'number' && isInexact(value) ? { path, message: INEXACT } : null;
}

/** Merges fields on the first level; null removes a field (RFC 7396). */
export function mergeCustomFields(before: CustomFields, changes: CustomFields): CustomFields {
  const merged = { ...before, ...changes };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
}
