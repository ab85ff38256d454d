import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

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
  const sql = statements(db);
  const used = sql.run<[number, number, string]>(
    'UPDATE passkeys SET counter = ?, used_at = ? WHERE credential_id = ?',
  );
  return {
    insert: sql.run<[row: PasskeyRow]>(`INSERT INTO ${sql.row('passkeys')}`),
    get: sql.get<[credentialId: string], PasskeyRow>('SELECT * FROM passkeys WHERE credential_id = ?'),
    ofPerson: sql.all<[personId: string, limit: number], PasskeyRow>(`
      SELECT * FROM passkeys INDEXED BY passkeys_by_person WHERE person_id = ? ORDER BY credential_id LIMIT +?`),
    countOf: sql.count<[personId: string]>(
      'SELECT count(*) FROM passkeys INDEXED BY passkeys_by_person WHERE person_id = ?',
    ),
    setUsed: (credentialId: string, counter: number, at: number): void => used(counter, at, credentialId),
    /** False: the person has no such passkey. */
    remove: sql.changed<[credentialId: string, personId: string]>(
      'DELETE FROM passkeys WHERE credential_id = ? AND person_id = ?',
    ),
    removeOf: sql.run<[personId: string]>('DELETE FROM passkeys WHERE person_id = ?'),
  };
}

/** People at an OIDC provider. */
export function identityTable(db: Database) {
  const sql = statements(db);
  return {
    removeOf: sql.run<[personId: string]>('DELETE FROM external_identities WHERE person_id = ?'),
    put: sql.run<[issuer: string, subject: string, personId: string]>(
      'INSERT INTO external_identities (issuer, subject, person_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    /** The id of the person. */
    find: sql.value<[issuer: string, subject: string], string>(
      'SELECT person_id FROM external_identities WHERE issuer = ? AND subject = ?',
    ),
    /** Whether the person has signed in with this provider. */
    has: sql.exists<[personId: string, issuer: string]>(`
      SELECT 1 FROM external_identities INDEXED BY external_identities_by_person WHERE person_id = ? AND issuer = ?
      LIMIT 1`),
  };
}
