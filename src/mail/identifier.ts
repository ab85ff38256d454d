import { createHash } from 'node:crypto';

/**
 * Channel identifiers: names for people that do not show them, the same in every build of the interface.
 * `email_` and the MD5 of the trimmed lower-cased address, or `phone_` and the MD5 of the E.164 number. MD5 is
 * the interface's choice; it keeps no secret.
 */
export const IDENTIFIER = /^(?:email|phone)_[0-9a-f]{32}$/;

export function emailIdentifier(address: string): string {
  return `email_${md5(address.trim().toLowerCase())}`;
}

/** Of a number as `parsePhone` returns it. */
export function phoneIdentifier(number: string): string {
  return `phone_${md5(number)}`;
}

/** As people set numbers apart; nothing of it is part of the number. */
const SEPARATORS = /[\s().\-/\u00a0\u2010-\u2015]/gu;
/** ITU-T E.164 §6: a country code, which begins with no zero, and 15 digits in all at most. */
const E164 = /^\+[1-9]\d{5,14}$/;

/** The trunk zero of national numbers, written into an international one: who knows which of the two is meant? */
const TRUNK_ZERO = '(0)';
const MAX_WRITTEN = 50;

/** A phone number as E.164, `+` and digits; null when it is none, or lacks its country code. */
export function parsePhone(text: string): string | null {
  if (text.length > MAX_WRITTEN || text.includes(TRUNK_ZERO)) return null;
  const number = text.replace(SEPARATORS, '');
  return E164.test(number) ? number : null;
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
