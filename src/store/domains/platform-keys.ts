import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import type { DkimKeyState } from './domains.ts';

/** The DKIM keys of the platform's own signature, and the number of changes of keys in the platform's zone. */
export interface PlatformKeyRow {
  key_id: number;
  selector: string;
  state: DkimKeyState;
  /** PKCS #8 DER, sealed with `platformSealContext`. */
  private_key: Buffer;
  /** SubjectPublicKeyInfo DER, base64. */
  public_key: string;
  created_at: number;
  /** When the state last changed. */
  changed_at: number;
}

/** The context with which a private key is sealed. */
export function platformSealContext(selector: string): string {
  return `dkim:platform:${selector}`;
}

/**
 * `platform_keys`, oldest first, and `zone_changes`, which triggers increase with each change of a published key, also
 * of a domain.
 */
export function platformKeyTable(db: Database) {
  const sql = statements(db);
  const setState = sql.run<[DkimKeyState, number, number]>(
    'UPDATE platform_keys SET state = ?, changed_at = ? WHERE key_id = ?',
  );
  return {
    insert: sql.run<[row: Omit<PlatformKeyRow, 'key_id'>]>(`INSERT INTO ${sql.row('platform_keys')}`),
    list: sql.all<[], PlatformKeyRow>('SELECT * FROM platform_keys ORDER BY key_id'),
    setState: (keyId: number, state: DkimKeyState, at: number): void => setState(state, at, keyId),
    remove: sql.run<[keyId: number]>('DELETE FROM platform_keys WHERE key_id = ?'),
    /** Number of changes of keys in the platform's zone since the database was created. */
    zoneChanges: sql.count('SELECT changes FROM zone_changes WHERE id = 1'),
  };
}
