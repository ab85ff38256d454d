import { DAY, HOUR, MINUTE } from '../core/clock.ts';

/**
 * How often an authority is asked. Let's Encrypt, the strictest of the common ones, takes 5 failed validations an
 * hour for a name and 300 orders in three hours: both stay far off, whatever goes wrong here.
 */
export const ORDERS_AN_HOUR = 50;
/** Of those, what is kept for renewals and for the platform's own name, whoever comes with new names. */
export const ORDERS_KEPT = 20;
/** New names below one registrable domain: who comes with more has to wait, not everybody else. */
export const NEW_NAMES_AN_HOUR = 5;

/** A renewal of a name that does not lead here at present: nothing was asked of the authority. */
export const POSTPONED_MS = 10 * MINUTE;

const FIRST_WAIT = 10 * MINUTE;
const LONGEST_WAIT = DAY;
const RENEWED_AHEAD = 30 * DAY;

/** Ms until a name is tried again after so many failures: ten minutes, an hour, then doubling to a day. */
export function waitAfter(failures: number): number {
  return failures <= 1 ? FIRST_WAIT : Math.min(LONGEST_WAIT, HOUR * 2 ** (failures - 2));
}

/** Epoch ms: 30 days before the end; of those that live less than 90 days, when two thirds have passed. */
export function renewalTime(validity: { notBefore: number; notAfter: number }): number {
  const lifetime = validity.notAfter - validity.notBefore;
  return validity.notAfter - Math.min(RENEWED_AHEAD, lifetime / 3);
}
