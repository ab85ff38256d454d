import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Seal } from '../core/seal.ts';
import type { DkimKeyRow, DkimKeyState, Lane, SigningKeyRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';

/**
 * DKIM keys: sealed here, opened here for signing, and nowhere written out. A private key leaves this file only
 * as a KeyObject.
 */
export interface NewKey {
  selector: string;
  lane: Lane;
  state: DkimKeyState;
}

export type UnsavedKey = Omit<DkimKeyRow, 'key_id'>;

/** A generated private key as the row of a domain: sealed, with its public half beside it. */
export function sealKey(
  seal: Seal,
  key: KeyObject,
  domainId: string,
  attributes: NewKey,
  now: number,
): UnsavedKey {
  const secret = key.export({ type: 'pkcs8', format: 'der' });
  return {
    ...attributes,
    domain_id: domainId,
    private_key: seal.seal(secret, sealContext(domainId, attributes.selector)),
    public_key: createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64'),
    created_at: now,
  };
}

function sealContext(domainId: string, selector: string): string {
  return `dkim:${domainId}:${selector}`;
}

export interface SigningKey {
  /** `d=` */
  domain: string;
  /** `s=` */
  selector: string;
  key: KeyObject;
}

/** What signs for a domain in a lane now: one key, or none where there is no such domain or lane yet. */
export type SigningKeys = (domainId: string, lane: Lane) => SigningKey[];

/** Opened keys that are kept, 2 KiB each. */
const KEPT = 5000;

/**
 * Which key signs is read from the database every time, so that a rotation or a deletion holds at once; only
 * the opened key is kept, under everything that identifies it (a key_id alone may come again after a
 * deletion).
 */
export function createSigningKeys({ tables, seal }: { tables: Tables; seal: Seal }): SigningKeys {
  const opened = new LRUCache<string, KeyObject>({ max: KEPT });

  function open(row: SigningKeyRow): KeyObject {
    const id = `${row.key_id}:${row.domain_id}:${row.selector}`;
    const known = opened.get(id);
    if (known !== undefined) return known;
    const secret = seal.open(row.private_key, sealContext(row.domain_id, row.selector));
    const key = createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' });
    opened.set(id, key);
    return key;
  }

  return (domainId, lane) =>
    tables.dkimKeys
      .signing(domainId, lane)
      .map((row) => ({ domain: row.name, selector: row.selector, key: open(row) }));
}
