import { hash } from 'node:crypto';
import { type Clock, MINUTE } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import type { PersonRow } from '../store/people/people.ts';
import type { SignInLinkRow } from '../store/people/sessions.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Links that sign a person in once. The token is in the fragment of the address, which browsers send to no server; only
 * its hash is stored.
 */

/** A new link. Only this object has the token. */
export interface IssuedLink {
  token: string;
  purpose: SignInLinkRow['purpose'];
  /** Epoch ms. */
  expiresAt: number;
}

export const LINK_LIFETIME_MS = 15 * MINUTE;

/** Creates a link in the unit of work of the caller. Earlier links of the person become invalid. */
export function createLink(
  { ids, clock }: { ids: Ids; clock: Clock },
  tx: Tables,
  { person_id }: Pick<PersonRow, 'person_id'>,
  purpose: SignInLinkRow['purpose'],
): IssuedLink {
  const token = ids.token();
  const now = clock.now();
  const expiresAt = now + LINK_LIFETIME_MS;
  tx.signInLinks.removeOf(person_id);
  tx.signInLinks.insert({
    link_hash: tokenHash(token),
    person_id,
    purpose,
    created_at: now,
    expires_at: expiresAt,
  });
  return { token, purpose, expiresAt };
}

/** The address of a link. `url`: `console.url`. */
export function linkAddress(url: string, { token }: Pick<IssuedLink, 'token'>): string {
  return `${url}/console/#/link/${token}`;
}

/** The hash by which tokens of links and sessions are looked up. */
export function tokenHash(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
