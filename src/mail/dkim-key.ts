import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

/** Makes DKIM keys and the DNS values that publish them (RFC 6376 §3.6.1). Keeps nothing. */
const generate = promisify(generateKeyPair);

/** RFC 8301 §3.2: 1024 bits are too few, and receivers need not verify more than 4096. */
const BITS = 2048;

/** A new RSA private key; off the main thread, some 100 ms. */
export async function generateDkimKey(): Promise<KeyObject> {
  const { privateKey } = await generate('rsa', { modulusLength: BITS });
  return privateKey;
}

/** `v=DKIM1; k=rsa; p=…` for a private or public RSA key: the whole TXT value, not yet cut into strings. */
export function publicKeyRecordValue(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return `v=DKIM1; k=rsa; p=${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`;
}
