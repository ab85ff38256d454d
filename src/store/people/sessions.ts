import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** A link that signs a person in once; the token itself is not stored. */
export interface SignInLinkRow {
  /** SHA-256 of the token. */
  link_hash: Buffer;
  person_id: string;
  purpose: 'sign-in' | 'invitation' | 'recovery';
  created_at: number;
  expires_at: number;
}

/** A session of the console; the value of its cookie is not stored. */
export interface SessionRow {
  /** SHA-256 of the cookie's value. */
  session_hash: Buffer;
  /** Names the session in lists; it is not a secret. */
  session_id: string;
  person_id: string;
  method: 'link' | 'password' | 'passkey' | 'oidc';
  user_agent: string;
  remote_address: string;
  created_at: number;
  /** When the person last proved who they are. */
  authenticated_at: number;
  seen_at: number;
  expires_at: number;
}

const STAYS = { stays: 'people who use the console are neither recipients nor contacts' } as const;

export const SIGN_IN_LINK_POLICY = {
  table: 'sign_in_links',
  personal: ['link_hash', 'person_id'],
  erasure: STAYS,
  retention: { kind: 'signInLinks', rows: 'timed', period: 'expiry', key: 'link_hash', time: 'expires_at' },
} as const satisfies DataPolicy;

export const SESSION_POLICY = {
  table: 'console_sessions',
  personal: ['session_hash', 'person_id', 'user_agent', 'remote_address'],
  erasure: STAYS,
  retention: {
    kind: 'consoleSessions',
    rows: 'timed',
    period: 'expiry',
    key: 'session_hash',
    time: 'expires_at',
  },
} as const satisfies DataPolicy;

/**
 * `sign_in_links`, by the hash of the token. `take` also returns a link that has expired: the caller compares
 * `expires_at`.
 */
export function signInLinkTable(db: Database) {
  const sql = statements(db);
  return {
    insert: sql.run<[row: SignInLinkRow]>(`INSERT INTO ${sql.row('sign_in_links')}`),
    /** Deletes a link and returns it; null: there is none. */
    take: sql.get<[hash: Buffer], SignInLinkRow>('DELETE FROM sign_in_links WHERE link_hash = ? RETURNING *'),
    removeOf: sql.run<[personId: string]>('DELETE FROM sign_in_links WHERE person_id = ?'),
  };
}

/**
 * `console_sessions`, by the hash of the cookie's value. Reads also return sessions that have expired, until retention
 * deletes them: the caller compares `expires_at`.
 */
export function sessionTable(db: Database) {
  const sql = statements(db);
  const insert = sql.run<[SessionRow]>(`INSERT INTO ${sql.row('console_sessions')}`);
  const touch = sql.run<[number, number, Buffer]>(
    'UPDATE console_sessions SET seen_at = ?, expires_at = ? WHERE session_hash = ?',
  );
  const authenticate = sql.run<[number, Buffer]>(
    'UPDATE console_sessions SET authenticated_at = ? WHERE session_hash = ?',
  );
  const removeOthers = sql.changes<[string, Buffer]>(
    'DELETE FROM console_sessions WHERE person_id = ? AND session_hash <> ?',
  );
  const trim = sql.run<[string, number]>(`
    DELETE FROM console_sessions WHERE session_hash IN (
      SELECT session_hash FROM console_sessions INDEXED BY console_sessions_by_person WHERE person_id = ?
      ORDER BY created_at DESC LIMIT -1 OFFSET +?)`);
  return {
    /** Above `max` sessions of the person the oldest are deleted. */
    insert: (row: SessionRow, max: number): void => {
      insert(row);
      trim(row.person_id, max);
    },
    byHash: sql.get<[hash: Buffer], SessionRow>('SELECT * FROM console_sessions WHERE session_hash = ?'),
    /** Newest first. */
    ofPerson: sql.all<[personId: string, limit: number], SessionRow>(`
      SELECT * FROM console_sessions INDEXED BY console_sessions_by_person WHERE person_id = ?
      ORDER BY created_at DESC LIMIT +?`),
    touch: (hash: Buffer, seenAt: number, expiresAt: number): void => touch(seenAt, expiresAt, hash),
    setAuthenticated: (hash: Buffer, at: number): void => authenticate(at, hash),
    remove: sql.run<[hash: Buffer]>('DELETE FROM console_sessions WHERE session_hash = ?'),
    /** False: the person has no such session. */
    removeById: sql.changed<[sessionId: string, personId: string]>(
      'DELETE FROM console_sessions WHERE session_id = ? AND person_id = ?',
    ),
    /** Deletes all sessions of the person except one; null: all. Returns how many. */
    removeOf: (personId: string, except: Buffer | null): number =>
      removeOthers(personId, except ?? Buffer.alloc(0)),
  };
}
