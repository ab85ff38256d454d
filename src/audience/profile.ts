import { isIP } from 'node:net';
import { parseMoment } from '../core/clock.ts';
import { parseMailbox } from '../mail/address.ts';
import { parsePhone } from '../mail/identifier.ts';
import { textFault } from '../mail/text-fault.ts';
import { CONSENT_METHODS, type ConsentMethod } from '../store/contacts/consent.ts';
import type { CustomFields } from './custom-fields.ts';

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
