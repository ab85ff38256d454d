import { iso, isoOrNull } from '../core/clock.ts';
import type { PersonRow } from '../store/people/people.ts';
import type { Tables } from '../store/tables.ts';

export const MAX_PEOPLE = 10_000;
/** Memberships of one person. */
export const MAX_MEMBERSHIPS = 500;
/** Passkeys of one person. */
export const MAX_PASSKEYS = 20;

/** A person who uses the console: an operator of the installation, or a member of accounts. */
export type ConsolePerson = ReturnType<typeof presentPerson>;

/** A person as lists show them. */
export function presentPerson(tables: Tables, row: PersonRow) {
  return {
    id: row.person_id,
    email: row.email,
    name: row.name,
    operator: row.operator === 1,
    status: row.status,
    language: row.language,
    hasPassword: row.password !== null,
    hasTotp: row.totp !== null,
    passkeys: tables.passkeys.countOf(row.person_id),
    createdAt: iso(row.created_at),
    signedInAt: isoOrNull(row.signed_in_at),
    // Whether keyboard shortcuts of one key are on.
    shortcuts: row.shortcuts === 1,
    // Whether the person wants mail about failures of the accounts that they own.
    failureMail: row.failure_mail === 1,
  };
}

/** The row of a person without roles and credentials. */
export function newPerson(personId: string, email: string, name: string, now: number): PersonRow {
  return {
    person_id: personId,
    email,
    email_key: email.toLowerCase(),
    name,
    operator: 0,
    operator_by_group: 0,
    status: 'active',
    language: null,
    password: null,
    totp: null,
    totp_used: 0,
    created_at: now,
    updated_at: now,
    signed_in_at: null,
    shortcuts: 1,
    failure_mail: 1,
  };
}

/** Stores the row without password and TOTP; removes passkeys, OIDC identities, sign-in links and sessions. */
export function clearCredentials(tx: Tables, row: PersonRow): PersonRow {
  const cleared: PersonRow = { ...row, password: null, totp: null, totp_used: 0 };
  tx.people.update(cleared);
  tx.consoleSessions.removeOf(row.person_id, null);
  tx.signInLinks.removeOf(row.person_id);
  tx.passkeys.removeOf(row.person_id);
  tx.identities.removeOf(row.person_id);
  return cleared;
}
