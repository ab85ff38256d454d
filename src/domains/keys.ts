import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { Ids } from '../core/ids.ts';
import { createLru } from '../core/lru.ts';
import type { Seal } from '../core/seal.ts';
import { publicKeyRecordValue } from '../mail/dkim.ts';
import {
  type DkimKeyRow,
  type DkimKeyState,
  type DomainRow,
  dkimSealContext,
  type Lane,
  type SigningKeyRow,
} from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';

/*
 * DKIM keys: sealed in the database, opened for signing, published in DNS. A private key leaves this file only as a
 * KeyObject.
 */

export interface DkimKeyAttributes {
  selector: string;
  lane: Lane;
  state: DkimKeyState;
}

export type NewDkimKeyRow = Omit<DkimKeyRow, 'key_id'>;

/** The row of a generated private key, sealed. */
export function sealKey(
  seal: Seal,
  key: KeyObject,
  domainId: string,
  attributes: DkimKeyAttributes,
  now: number,
): NewDkimKeyRow {
  const secret = key.export({ type: 'pkcs8', format: 'der' });
  return {
    ...attributes,
    domain_id: domainId,
    private_key: seal.seal(secret, dkimSealContext(domainId, attributes.selector)),
    public_key: createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64'),
    created_at: now,
  };
}

/** A random selector for a new primary key. */
export function newSelector(ids: Ids): string {
  return `pr${ids.label(8)}`;
}

/** The secondary selector derives from the id, because its record is shown before the key exists. */
export function secondarySelector(domain: Pick<DomainRow, 'alt_domain_id'>): string {
  return `ps${domain.alt_domain_id.slice(-8)}`;
}

export interface DkimKeyName {
  domain: string;
  selector: string;
}

/** The name of a key's record (RFC 6376 §3.6.2.1). */
export function keyRecordName({ domain, selector }: DkimKeyName): string {
  return `${selector}._domainkey.${domain}`;
}

/** The value of a key's record. `publicKey` is a SubjectPublicKeyInfo in base64; throws when it is not. */
export function keyRecordValue(publicKey: string): string {
  const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
  return publicKeyRecordValue(key);
}

export interface SigningKey {
  /** `d=` */
  domain: string;
  /** `s=` */
  selector: string;
  key: KeyObject;
}

/** The active keys of a domain's lane: one, or none when the domain or the lane does not exist. */
export type SigningKeys = (domainId: string, lane: Lane) => SigningKey[];

/** Opened keys in memory, 2 KiB each. */
const MAX_OPENED_KEYS = 5000;

/**
 * Reads the database at every call, so that a rotation or a deletion takes effect immediately. Only opened keys are
 * cached, by key_id, domain and selector: a key_id alone may be reused after a deletion.
 */
export function createSigningKeys({ tables, seal }: { tables: Tables; seal: Seal }): SigningKeys {
  const opened = createLru<KeyObject>(MAX_OPENED_KEYS);

  function open(row: SigningKeyRow): KeyObject {
    const id = `${row.key_id}:${row.domain_id}:${row.selector}`;
    const cached = opened.get(id);
    if (cached !== undefined) return cached;
    const secret = seal.open(row.private_key, dkimSealContext(row.domain_id, row.selector));
    const key = createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' });
    opened.set(id, key);
    return key;
  }

  return (domainId, lane) =>
    tables.dkimKeys
      .signing(domainId, lane)
      .map((row) => ({ domain: row.name, selector: row.selector, key: open(row) }));
}
