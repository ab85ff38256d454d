import { hash } from 'node:crypto';
import { parseMailbox } from './address.ts';

/*
 * Channel identifiers: pseudonyms of recipients, as the API defines them. `email_` and the MD5 of the trimmed
 * lower-case address, or `phone_` and the MD5 of the E.164 number. MD5 is part of the API; it does not protect the
 * address.
 */

/** Matches identifiers. */
export const IDENTIFIER = /^(?:email|phone)_[0-9a-f]{32}$/;

/** The identifier of a mail address. */
export function emailIdentifier(address: string): string {
  return `email_${md5(address.trim().toLowerCase())}`;
}

/** Whether a text is an identifier of a mail address, in lower or upper case. */
export function isEmailIdentifier(text: string): boolean {
  return /^email_[0-9a-f]{32}$/i.test(text);
}

/** The identifier of a recipient: an address, plain or with display name, or the identifier itself. */
export function recipientIdentifier(text: string): string {
  return isEmailIdentifier(text) ? text.toLowerCase() : emailIdentifier(addressKey(text));
}

/** A mail address as it is compared: in lower case, with the A-labels of its domain. Text that is none: in lower case. */
export function addressKey(text: string): string {
  const mailbox = parseMailbox(text.trim());
  return (typeof mailbox === 'string' ? text.trim() : mailbox.address).toLowerCase();
}

/** The identifier of a number that `parsePhone` returned. */
export function phoneIdentifier(number: string): string {
  return `phone_${md5(number)}`;
}

/** Separators that are not part of a number. */
const SEPARATORS = /[\s().\-/\u00a0\u2010-\u2015]/gu;
/** ITU-T E.164 §6: a country code, which does not begin with zero, and at most 15 digits in total. */
const E164 = /^\+[1-9]\d{5,14}$/;

/** The trunk zero of national numbers in an international one, which is ambiguous. */
const TRUNK_ZERO = '(0)';
const MAX_PHONE_LENGTH = 50;

/** Returns a phone number as E.164, `+` and digits; null when it is invalid or has no country code. */
export function parsePhone(text: string): string | null {
  if (text.length > MAX_PHONE_LENGTH || text.includes(TRUNK_ZERO)) return null;
  const number = text.replace(SEPARATORS, '');
  return E164.test(number) ? number : null;
}

function md5(text: string): string {
  return hash('md5', text);
}
