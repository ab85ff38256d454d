import { createHash } from 'node:crypto';

/**
 * Channel identifiers: names for people that do not show them, the same in every build of the interface.
 * `email_` and the MD5 of the trimmed lower-cased address. MD5 is the interface's choice; it keeps no secret.
 */
export function emailIdentifier(address: string): string {
  return `email_${createHash('md5').update(address.trim().toLowerCase()).digest('hex')}`;
}
