import { createPublicKey } from 'node:crypto';
import { publicKeyRecordValue } from '../mail/dkim.ts';

/** How a key stands in DNS: the name and the value of its record. */
export interface KeyName {
  domain: string;
  selector: string;
}

export function keyRecordName({ domain, selector }: KeyName): string {
  return `${selector}._domainkey.${domain}`;
}

/** `publicKey` is the SubjectPublicKeyInfo in base64, as the store keeps it. Throws when it is none. */
export function keyRecordValue(publicKey: string): string {
  const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
  return publicKeyRecordValue(key);
}
