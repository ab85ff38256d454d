import type { Database } from '../database/database.ts';
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
  const insert = db.prepare<Omit<PlatformKeyRow, 'key_id'>>(`
    INSERT INTO platform_keys (selector, state, private_key, public_key, created_at, changed_at)
    VALUES (@selector, @state, @private_key, @public_key, @created_at, @changed_at)`);
  const list = db.prepare<[], PlatformKeyRow>('SELECT * FROM platform_keys ORDER BY key_id');
  const setState = db.prepare<[DkimKeyState, number, number]>(
    'UPDATE platform_keys SET state = ?, changed_at = ? WHERE key_id = ?',
  );
  const remove = db.prepare<[number]>('DELETE FROM platform_keys WHERE key_id = ?');
  const changes = db.prepare<[], number>('SELECT changes FROM zone_changes WHERE id = 1').pluck();
  return {
    insert: (row: Omit<PlatformKeyRow, 'key_id'>): void => {
      insert.run(row);
    },
    list: (): PlatformKeyRow[] => list.all(),
    setState: (keyId: number, state: DkimKeyState, at: number): void => {
      setState.run(state, at, keyId);
    },
    remove: (keyId: number): void => {
      remove.run(keyId);
    },
    /** Number of changes of keys in the platform's zone since the database was created. */
    zoneChanges: (): number => changes.get() ?? 0,
  };
}
