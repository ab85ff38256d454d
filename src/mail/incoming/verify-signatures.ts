import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { domainOf, organizationalDomain } from '../address.ts';
import {
  type AuthenticatedAuthor,
  isAligned,
  keyResolver,
  MIN_KEY_BITS,
  type PublicKeys,
  readSignatures,
  withFields,
} from './signatures.ts';

/**
 * Verifies the aligned signatures of a mail with keys that the caller has looked up. Null when none verifies. A
 * signature with a key in test mode (RFC 6376 §3.6.1, `t=y`) does not count. `at`: epoch ms.
 */
export async function verifySignatures(
  raw: Buffer,
  keys: PublicKeys,
  at: number,
): Promise<AuthenticatedAuthor | null> {
  const signed = readSignatures(raw);
  if (signed === null) return null;
  const { headerFrom, fromFields, results } = await dkimVerify(withFields(raw, signed), {
    resolver: keyResolver(keys),
    minBitLength: MIN_KEY_BITS,
    rejectRsaSha1: true,
    curTime: new Date(at),
  });
  const [author] = headerFrom;
  if (author === undefined || headerFrom.length > 1 || fromFields !== 1) return null;
  const domain = domainOf(author).toLowerCase();
  const passed = results.find(
    ({ status, signingDomain, canonBodyLengthLimited }) =>
      status.result === 'pass' &&
      status.testing !== true &&
      canonBodyLengthLimited !== true &&
      typeof signingDomain === 'string' &&
      isAligned(signingDomain, domain),
  );
  if (passed === undefined) return null;
  return {
    from: `${author.slice(0, author.lastIndexOf('@'))}@${domain}`,
    organization: organizationalDomain(domain),
  };
}
