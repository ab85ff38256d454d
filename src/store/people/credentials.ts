import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';

/** A passkey (WebAuthn credential) of a person. */
export interface PasskeyRow {
  /** base64url. */
  credential_id: string;
  person_id: string;
  name: string;
  public_key: Buffer;
  counter: number;
  /** JSON array. */
  transports: string;
  created_at: number;
  used_at: number | null;
}

const STAYS = { stays: 'people who use the console are neither recipients nor contacts' } as const;
const UNTIL_DELETED = { until: 'the person is deleted' } as const;

export const PASSKEY_POLICY = {
  table: 'passkeys',
  personal: ['person_id', 'name'],
  erasure: STAYS,
  retention: UNTIL_DELETED,
} as const satisfies DataPolicy;

export const IDENTITY_POLICY = {
  table: 'external_identities',
  personal: ['subject', 'person_id'],
  erasure: STAYS,
  retention: UNTIL_DELETED,
} as const satisfies DataPolicy;

/**
 * `passkeys`, by credential id, deleted with their person; those of a person are read by the index
 * `passkeys_by_person`.
 */
export function passkeyTable(db: Database) {
  const insert = db.prepare<PasskeyRow>(`
    INSERT INTO passkeys (credential_id, person_id, name, public_key, counter, transports, created_at, used_at)
    VALUES (@credential_id, @person_id, @name, @public_key, @counter, @transports, @created_at, @used_at)`);
  const get = db.prepare<[string], PasskeyRow>('SELECT * FROM passkeys WHERE credential_id = ?');
  const ofPerson = db.prepare<[string, number], PasskeyRow>(`
    SELECT * FROM passkeys INDEXED BY passkeys_by_person WHERE person_id = ? ORDER BY credential_id LIMIT +?`);
  const countOf = db
    .prepare<[string], number>(
      'SELECT count(*) FROM passkeys INDEXED BY passkeys_by_person WHERE person_id = ?',
    )
    .pluck();
  const used = db.prepare<[number, number, string]>(
    'UPDATE passkeys SET counter = ?, used_at = ? WHERE credential_id = ?',
  );
  const remove = db.prepare<[string, string]>(
    'DELETE FROM passkeys WHERE credential_id = ? AND person_id = ?',
  );
  const removeOf = db.prepare<[string]>('DELETE FROM passkeys WHERE person_id = ?');
  return {
    insert: (row: PasskeyRow): void => {
      insert.run(row);
    },
    get: (credentialId: string): PasskeyRow | null => get.get(credentialId) ?? null,
    ofPerson: (personId: string, limit: number): PasskeyRow[] => ofPerson.all(personId, limit),
    countOf: (personId: string): number => countOf.get(personId) ?? 0,
    setUsed: (credentialId: string, counter: number, at: number): void => {
      used.run(counter, at, credentialId);
    },
    /** False: the person has no such passkey. */
    remove: (credentialId: string, personId: string): boolean =>
      remove.run(credentialId, personId).changes === 1,
    removeOf: (personId: string): void => {
      removeOf.run(personId);
    },
  };
}

/** People at an OIDC provider. */
export function identityTable(db: Database) {
  const put = db.prepare<[string, string, string]>(
    'INSERT INTO external_identities (issuer, subject, person_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const find = db
    .prepare<[string, string], string>(
      'SELECT person_id FROM external_identities WHERE issuer = ? AND subject = ?',
    )
    .pluck();
  const atIssuer = db
    .prepare<[string, string], number>(`
      SELECT 1 FROM external_identities INDEXED BY external_identities_by_person WHERE person_id = ? AND issuer = ?
      LIMIT 1`)
    .pluck();
  const removeOf = db.prepare<[string]>('DELETE FROM external_identities WHERE person_id = ?');
  return {
    removeOf: (personId: string): void => {
      removeOf.run(personId);
    },
    put: (issuer: string, subject: string, personId: string): void => {
      put.run(issuer, subject, personId);
    },
    /** The id of the person. */
    find: (issuer: string, subject: string): string | null => find.get(issuer, subject) ?? null,
    /** Whether the person has signed in with this provider. */
    has: (personId: string, issuer: string): boolean => atIssuer.get(personId, issuer) !== undefined,
  };
}
