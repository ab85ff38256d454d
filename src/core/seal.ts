import { createCipheriv, createDecipheriv, createHmac, hkdfSync, type KeyObject } from 'node:crypto';
import type { Random } from './random.ts';

/**
 * Secrets at rest. One master key of 32 bytes; every purpose gets its own key from it by HKDF-SHA256
 * (RFC 5869), so that a DKIM key's ciphertext, a link token's MAC and a return path's MAC can never stand in
 * for one another. Sealed form: version byte 1, 12 bytes nonce, ciphertext, 16 bytes tag (AES-256-GCM).
 */
export interface Seal {
  /** Encrypts; `context` (an id, say) is bound in, so that a sealed value cannot be moved to another row. */
  seal(plain: Buffer, context: string): Buffer;
  /** Throws when the key or the context is not the one it was sealed with, or a byte was changed. */
  open(sealed: Buffer, context: string): Buffer;
  /** A 32-byte key of its own for one purpose. */
  derive(purpose: string): Buffer;
}

const VERSION = 1;
const NONCE = 12;
const TAG = 16;

export function createSeal(masterKey: Buffer, random: Random): Seal {
  if (masterKey.length !== 32)
    throw new Error(`the master key must be 32 bytes, this one is ${masterKey.length}`);
  const derive = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), `postrider/${purpose}`, 32));
  const key = derive('seal');
  return {
    derive,
    seal: (plain, context) => {
      const nonce = random.bytes(NONCE);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.from([VERSION]), nonce, body, cipher.getAuthTag()]);
    },
    open: (sealed, context) => {
      if (sealed[0] !== VERSION || sealed.length < 1 + NONCE + TAG) throw new Error('not a sealed value');
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

/** HMAC-SHA256, cut to `length` bytes. */
export function mac(key: Buffer | KeyObject, data: string | Buffer, length = 32): Buffer {
  return createHmac('sha256', key).update(data).digest().subarray(0, length);
}
