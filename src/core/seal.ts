import { createCipheriv, createDecipheriv, createHmac, hkdfSync, type KeyObject } from 'node:crypto';
import type { Random } from './random.ts';

const VERSION = 1;
const NONCE = 12;
const TAG = 16;

/**
 * Encrypts secrets at rest. A key per purpose is derived from one master key of 32 bytes by HKDF-SHA256 (RFC 5869), so
 * that the ciphertext of a DKIM key, the MAC of a link token and the MAC of a return path are never interchangeable.
 * Sealed form: version byte 1, 12 bytes nonce, ciphertext, 16 bytes tag (AES-256-GCM).
 *
 * Derives the encryption key now, and keeps both keys in memory. `random` supplies the nonces. Throws an Error when the
 * master key does not have 32 bytes.
 */
export function createSeal(masterKey: Buffer, random: Random) {
  if (masterKey.length !== 32)
    throw new Error(`The master key must have 32 bytes, but has ${masterKey.length}`);
  /** A separate 32-byte key for one purpose. */
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), `postrider/${purpose}`, 32));
  const key = derive('seal');
  return {
    derive,
    /** Encrypts. `context` (for example, an id) is authenticated, so that a sealed value cannot be moved to another row. */
    seal: (plain: Buffer, context: string): Buffer => {
      const nonce = random.bytes(NONCE);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.from([VERSION]), nonce, body, cipher.getAuthTag()]);
    },
    /** Decrypts. Throws if the key or the context differs, or if a byte was changed. */
    open: (sealed: Buffer, context: string): Buffer => {
      if (sealed[0] !== VERSION || sealed.length < 1 + NONCE + TAG) throw new Error('Not a sealed value');
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + NONCE), {
        authTagLength: TAG,
      });
      decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(sealed.length - TAG));
      return Buffer.concat([
        decipher.update(sealed.subarray(1 + NONCE, sealed.length - TAG)),
        decipher.final(),
      ]);
    },
  };
}

export type Seal = ReturnType<typeof createSeal>;

/** HMAC-SHA256, truncated to `length` bytes. */
export function mac(key: Buffer | KeyObject, data: string | Buffer, length = 32): Buffer {
  return createHmac('sha256', key).update(data).digest().subarray(0, length);
}
