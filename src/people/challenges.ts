import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Clock, MINUTE } from '../core/clock.ts';

const LIFETIME_MS = 5 * MINUTE;
const EXPIRY_BYTES = 8;
const NONCE_BYTES = 16;
const SIGNED_BYTES = EXPIRY_BYTES + NONCE_BYTES;
/** Used challenges that are remembered. Only those of responses with a known passkey are. */
const MAX_USED = 10_000;

/**
 * Challenges of passkeys: valid once, for five minutes, for one purpose. They are signed, not stored, so that requests
 * for many challenges invalidate none that a person is about to use. Signs with a key in memory: a restart invalidates
 * all challenges.
 */
export function createChallenges(clock: Clock) {
  const key = randomBytes(32);
  const used = new LRUCache<string, true>({ max: MAX_USED });
  const signatureOf = (signed: Buffer, purpose: string) =>
    createHmac('sha256', key).update(signed).update(purpose).digest();

  return {
    create: (purpose: string): Uint8Array<ArrayBuffer> => {
      const signed = Buffer.concat([Buffer.alloc(EXPIRY_BYTES), randomBytes(NONCE_BYTES)]);
      signed.writeBigUInt64BE(BigInt(clock.now() + LIFETIME_MS));
      return new Uint8Array(Buffer.concat([signed, signatureOf(signed, purpose)]));
    },
    /** Whether the challenge, in base64url, is valid for the purpose. It is not afterwards. */
    use: (challenge: string, purpose: string): boolean => {
      const bytes = Buffer.from(challenge, 'base64url');
      const signed = bytes.subarray(0, SIGNED_BYTES);
      const expected = signatureOf(signed, purpose);
      const signature = bytes.subarray(SIGNED_BYTES);
      if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return false;
      // Several texts have the same bytes.
      const nonce = signed.toString('base64url');
      if (signed.readBigUInt64BE() <= BigInt(clock.now()) || used.has(nonce)) return false;
      used.set(nonce, true);
      return true;
    },
  };
}

export type Challenges = ReturnType<typeof createChallenges>;
