import { createPublicKey, type KeyObject } from 'node:crypto';
import type { Ids } from '../core/ids.ts';
import type { Seal } from '../core/seal.ts';
import {
  type PublicKeyTags,
  publicKeyRecordValue,
  publicKeyTags,
  revokedKeyRecordValue,
} from '../mail/dkim.ts';
import {
  type DkimKeyState,
  dkimSealContext,
  type KeySlot,
  type Lane,
  type NewDkimKeyRow,
} from '../store/domains/domains.ts';

/*
 * DKIM keys: sealed in the database, opened for signing, published in DNS. A private key leaves this file only as a
 * KeyObject.
 */

export interface DkimKeyAttributes {
  selector: string;
  lane: Lane;
  slot?: KeySlot;
  state: DkimKeyState;
}

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
    public_key: publicKeyOf(key),
    created_at: now,
  };
}

/** A random selector for a new primary key. */
export function newSelector(ids: Ids): string {
  return `pr${ids.label(8)}`;
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
  return publicKeyRecordValue(openPublicKey(publicKey));
}

/** The value of the record of a revoked key. */
export function revokedRecordValue(publicKey: string): string {
  return revokedKeyRecordValue(openPublicKey(publicKey));
}

/** The tags `k=` and `p=` of a key's record. */
export function keyRecordTags(publicKey: string): PublicKeyTags {
  return publicKeyTags(openPublicKey(publicKey));
}

function openPublicKey(publicKey: string): KeyObject {
  return createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
}

/** The DER form of a key's public part in base64, as the database has it. */
export function publicKeyOf(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
}
