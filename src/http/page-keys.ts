import { createCipheriv, timingSafeEqual } from 'node:crypto';
import { mac } from '../core/seal.ts';

export type PageKeys = ReturnType<typeof createPageKeys>;

/** Bytes of the tag, which is also the nonce, as in RFC 5297 (SIV): only equal keys of one account have the same form. */
const TAG = 12;

/**
 * Seals page keys (`nextKey`, `lastKey`): they contain row numbers, which count the rows of all accounts, so that an account
 * could observe how much the others send. Both keys have 32 bytes: `tagKey` is that of the tag, `key` that of the encryption.
 */
export function createPageKeys({ tagKey, key }: { tagKey: Buffer; key: Buffer }) {
  const tagOf = (accountId: string, plain: Buffer) =>
    mac(tagKey, Buffer.concat([Buffer.from(`${accountId}\0`), plain]), TAG);
  /** Encrypts and decrypts. */
  const apply = (tag: Buffer, bytes: Buffer) =>
    createCipheriv('aes-256-ctr', key, Buffer.concat([tag, Buffer.alloc(16 - TAG)])).update(bytes);
  return {
    /** The key of a position; that of the same position has the same form each time. */
    seal: (accountId: string, text: string): string => {
      const plain = Buffer.from(text);
      const tag = tagOf(accountId, plain);
      return Buffer.concat([tag, apply(tag, plain)]).toString('base64url');
    },
    /** The position; null when the key was not sealed for the account. */
    open: (accountId: string, sealed: string): string | null => {
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.length <= TAG) return null;
      const tag = bytes.subarray(0, TAG);
      const plain = apply(tag, bytes.subarray(TAG));
      return timingSafeEqual(tag, tagOf(accountId, plain)) ? plain.toString() : null;
    },
  };
}

/** The page keys of an installation, from its master key. */
export function pageKeysOf({ derive }: { derive(purpose: string): Buffer }): PageKeys {
  return createPageKeys({ tagKey: derive('page key tags'), key: derive('page keys') });
}
