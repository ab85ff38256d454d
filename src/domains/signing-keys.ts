import { createPrivateKey, type KeyObject } from 'node:crypto';
import { createLru } from '../core/lru.ts';
import type { Context } from '../store/context.ts';
import { dkimSealContext, type Lane } from '../store/domains/domains.ts';
import { platformSealContext } from '../store/domains/platform-keys.ts';
import { SLOTS } from './key-slots.ts';
import type { Platform } from './platform/platform.ts';

/** A key that signs messages. */
export interface SigningKey {
  /** `d=` */
  domain: string;
  /** `s=` */
  selector: string;
  key: KeyObject;
}

/**
 * The keys for messages of a domain in a lane, in the order of their signatures: the key of the lane, the Ed25519 key if
 * the domain has one, and the platform's key. None when the domain or the lane does not exist.
 */
export type SigningKeys = (domainId: string, lane: Lane) => SigningKey[];

/** Opened keys in memory, 3 KiB each. */
const MAX_OPENED_KEYS = 5000;

/** Reads the database at every call, so that a rotation or a deletion takes effect immediately. Caches opened keys only. */
export function createSigningKeys(
  { tables, seal }: Pick<Context, 'tables' | 'seal'>,
  platform: Pick<Platform, 'hostname' | 'keyPolicy' | 'signs'>,
): SigningKeys {
  /** Opened keys by context and public key: a selector of the platform's zone is reused for other keys. */
  const opened = createLru<KeyObject>(MAX_OPENED_KEYS);

  function open(row: { private_key: Buffer; public_key: string }, context: string): KeyObject {
    const id = `${context} ${row.public_key}`;
    const cached = opened.get(id);
    if (cached !== undefined) return cached;
    const key = createPrivateKey({ key: seal.open(row.private_key, context), format: 'der', type: 'pkcs8' });
    opened.set(id, key);
    return key;
  }

  function platformKeys(): SigningKey[] {
    if (!platform.signs) return [];
    const row = tables.platformKeys.list().find(({ state }) => state === 'active');
    if (row === undefined) return [];
    return [
      {
        domain: platform.hostname,
        selector: row.selector,
        key: open(row, platformSealContext(row.selector)),
      },
    ];
  }

  return (domainId, lane) => {
    const rows = tables.dkimKeys.signing(domainId, lane);
    const ofZone = rows.filter(({ slot }) => slot !== null && SLOTS[slot].algorithm === 'rsa');
    const main = ofZone.length > 0 ? ofZone : rows.filter(({ slot }) => slot === null);
    const further = rows.filter(
      ({ slot }) => slot !== null && SLOTS[slot].algorithm === 'ed25519' && platform.keyPolicy.ed25519,
    );
    if (main.length === 0) return [];
    return [
      ...[...main, ...further].map((row) => ({
        domain: row.name,
        selector: row.selector,
        key: open(row, dkimSealContext(row.domain_id, row.selector)),
      })),
      ...platformKeys(),
    ];
  };
}
