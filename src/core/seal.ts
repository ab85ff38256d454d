import { createCipheriv, createDecipheriv, createHmac, hkdfSync, type KeyObject } from 'node:crypto';
import type { Random } from './random.ts';

const NONCE = 12;
const TAG = 16;

/** A master key, and those that it replaced, which open what they have sealed. */
export interface MasterKeys {
  /** The number of the key that seals. */
  newest: number;
  /** Keys of 32 bytes by number, 1 to 255. A number never gets another key. */
  keys: ReadonlyMap<number, Buffer>;
}

/** The number of the first key of an installation. */
export const FIRST_KEY = 1;

/**
 * Encrypts secrets at rest. A key per purpose is derived from a master key of 32 bytes by HKDF-SHA256 (RFC 5869), so
 * that the ciphertext of a DKIM key, the MAC of a link token and the MAC of a return path are never interchangeable.
 * Sealed form: the number of the master key (1 byte), 12 bytes nonce, ciphertext, 16 bytes tag (AES-256-GCM).
 *
 * `master`: a key, or what returns the keys that apply at each call. `random` supplies the nonces. Keeps derived keys in
 * memory. Throws an Error when a master key does not have 32 bytes.
 */
export function createSeal(master: Buffer | (() => MasterKeys), random: Random) {
  const masterKeys = typeof master === 'function' ? master : only(master);
  const sealKeys = new Map<number, Buffer>();

  function sealKey({ keys }: MasterKeys, number: number): Buffer | undefined {
    const known = sealKeys.get(number);
    const masterKey = keys.get(number);
    if (known !== undefined || masterKey === undefined) return known;
    const key = derived(masterKey, 'seal');
    sealKeys.set(number, key);
    return key;
  }

  const open = (sealed: Buffer, context: string): Buffer => {
    const [number = 0] = sealed;
    const key = sealKey(masterKeys(), number);
    if (key === undefined || sealed.length < 1 + NONCE + TAG) throw new Error('Not a sealed value');
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + NONCE), {
      authTagLength: TAG,
    });
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(sealed.length - TAG));
    return Buffer.concat([
      decipher.update(sealed.subarray(1 + NONCE, sealed.length - TAG)),
      decipher.final(),
    ]);
  };

  const seal = (plain: Buffer, context: string): Buffer => {
    const keys = masterKeys();
    const key = sealKey(keys, keys.newest);
    if (key === undefined) throw new Error(`Master key ${keys.newest} is not known`);
    const nonce = random.bytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([Buffer.from([keys.newest]), nonce, body, cipher.getAuthTag()]);
  };

  /** Keys of 32 bytes for one purpose, of all master keys, the newest first. */
  const deriveEach = (purpose: string): Buffer[] =>
    [...masterKeys().keys].toSorted(([a], [b]) => b - a).map(([, key]) => derived(key, purpose));

  return {
    /** A separate 32-byte key for one purpose, of the newest master key. */
    derive: (purpose: string): Buffer => {
      const [newest] = deriveEach(purpose);
      if (newest === undefined) throw new Error('There is no master key');
      return newest;
    },
    deriveEach,
    /** The number of the newest master key: what was derived changes with it. */
    newest: (): number => masterKeys().newest,
    /** Encrypts. `context` (for example, an id) is authenticated, so that a sealed value cannot be moved to another row. */
    seal,
    /** Decrypts. Throws if the key or the context differs, or if a byte was changed. */
    open,
    /** Seals the value with the newest key; null: it is. Throws as `open` does. */
    renew: (sealed: Buffer, context: string): Buffer | null =>
      sealed[0] === masterKeys().newest ? null : seal(open(sealed, context), context),
  };
}

function only(key: Buffer): () => MasterKeys {
  if (key.length !== 32) throw new Error(`The master key must have 32 bytes, but has ${key.length}`);
  const masterKeys = { newest: FIRST_KEY, keys: new Map([[FIRST_KEY, key]]) };
  return () => masterKeys;
}

function derived(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), `postrider/${purpose}`, 32));
}

export type Seal = ReturnType<typeof createSeal>;

/** HMAC-SHA256, truncated to `length` bytes. */
export function mac(key: Buffer | KeyObject, data: string | Buffer, length = 32): Buffer {
  return createHmac('sha256', key).update(data).digest().subarray(0, length);
}
