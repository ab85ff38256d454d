import { isIP } from 'node:net';
import { parseMoment } from '../core/clock.ts';
import { parseMailbox } from '../mail/address.ts';
import { parsePhone } from '../mail/identifier.ts';
import { CONSENT_METHODS, type ConsentMethod } from '../store/contacts/consent.ts';
import { type CustomFields, textFault } from './custom-fields.ts';

/**
 * What may be said of a person, field by field: how a text is read and what is wrong with it. The API and the
 * import both read by these, so that what one takes the other does not refuse.
 */
export type Read<Value> = { value: Value } | { fault: string };

/** Fields that are absent (or undefined) stay as they are, null takes a value away. */
export interface ProfileChanges {
  /** As `readEmail` and `readPhone` return them. */
  email?: string | null | undefined;
  phone?: string | null | undefined;
  firstName?: string | null | undefined;
  lastName?: string | null | undefined;
  /** Checked by `customFieldsFault`. */
  customFields?: CustomFields | undefined;
  /** Where the contact came from; as `readSource` returns it. */
  source?: string | undefined;
  /** Null: it is withdrawn. */
  consent?: ConsentInput | null | undefined;
}

/** What is absent of it stays as it was, where there was a consent. */
export interface ConsentInput {
  method?: ConsentMethod | undefined;
  details?: string | null | undefined;
  ipAddress?: string | null | undefined;
  userAgent?: string | null | undefined;
  /** Epoch ms. */
  saidAt?: number | null | undefined;
}

const MAX_NAME = 200;
export const MAX_SOURCE = 100;
const MAX_DETAILS = 2000;
export const MAX_USER_AGENT = 1000;

/** The address alone, its domain as lower-case A-labels. */
export function readEmail(text: string): Read<string> {
  const mailbox = parseMailbox(text.trim());
  if (typeof mailbox === 'string') return { fault: mailbox };
  return mailbox.name === ''
    ? { value: mailbox.address }
    : { fault: 'must be an address without a display name' };
}

/** As E.164. */
export function readPhone(text: string): Read<string> {
  const number = parsePhone(text);
  return number === null
    ? { fault: 'must be an international phone number such as +442071838750' }
    : { value: number };
}

/** Any script and direction, one line. */
export function readName(text: string): Read<string> {
  return readLine(text, MAX_NAME);
}

/** Where a contact or a membership came from: `api`, `import` or the caller's own word, such as `checkout`. */
export function readSource(text: string): Read<string> {
  return text.trim() === '' ? { fault: 'must not be empty' } : readLine(text, MAX_SOURCE);
}

export function readUserAgent(text: string): Read<string> {
  return readLine(text, MAX_USER_AGENT);
}

function readLine(text: string, max: number): Read<string> {
  if (text.length > max) return { fault: `must have at most ${max} characters` };
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return { fault: 'must be one line without control characters' };
  return readSound(text);
}

export function readDetails(text: string): Read<string> {
  if (text.length > MAX_DETAILS) return { fault: `must have at most ${MAX_DETAILS} characters` };
  return readSound(text);
}

function readSound(text: string): Read<string> {
  const fault = textFault(text);
  return fault === null ? { value: text } : { fault };
}

export function readIpAddress(text: string): Read<string> {
  return isIP(text) === 0 ? { fault: 'must be an IP address' } : { value: text };
}

export function readMethod(text: string): Read<ConsentMethod> {
  const method = CONSENT_METHODS.find((known) => known === text);
  return method === undefined
    ? { fault: `must be one of ${CONSENT_METHODS.map((known) => JSON.stringify(known)).join(', ')}` }
    : { value: method };
}

/** Epoch ms. */
export function readMoment(text: string): Read<number> {
  const moment = parseMoment(text);
  return moment === null
    ? { fault: 'must be a time such as 2026-01-31T12:00:00Z or a date such as 2026-01-31' }
    : { value: moment };
}
