import { createHash, timingSafeEqual } from 'node:crypto';
import type { DetailedPeerCertificate } from 'node:tls';
import type { TlsaAssociation } from './protocol.ts';

/**
 * Compares certificates with TLSA records (RFC 6698 §2.1, RFC 7671). Certificates are DER; the chain of a server begins
 * with its own certificate.
 */

/** Whether a DANE-EE record matches the server's own certificate. Names and dates do not count (RFC 7671 §5.1). */
export function matchesServer(records: readonly TlsaAssociation[], chain: readonly Buffer[]): boolean {
  const [own] = chain;
  return own !== undefined && records.some((record) => record.usage === 3 && matches(record, own));
}

/**
 * The trust anchors of DANE-TA records: issuing certificates of the chain that a record matches, and certificates that
 * are in a record themselves. The server must send its anchor unless the record has the whole of it (RFC 7671 §5.2).
 */
export function trustAnchors(records: readonly TlsaAssociation[], chain: readonly Buffer[]): Buffer[] {
  const anchors = records.filter(({ usage }) => usage === 2);
  const published = anchors
    .filter(({ selector, matchingType }) => selector === 0 && matchingType === 0)
    .map(({ data }) => Buffer.from(data, 'hex'));
  const sent = chain.slice(1).filter((certificate) => anchors.some((record) => matches(record, certificate)));
  return [...sent, ...published.filter((certificate) => !sent.some((other) => other.equals(certificate)))];
}

/** The certificates that a server sent, its own first. */
export function chainOf(peer: DetailedPeerCertificate | undefined): Buffer[] {
  const chain: Buffer[] = [];
  const seen = new Set<DetailedPeerCertificate>();
  // The object of a session without a certificate is empty; a self-signed certificate is its own issuer.
  for (let each = peer; each?.raw !== undefined && !seen.has(each); each = each.issuerCertificate) {
    seen.add(each);
    chain.push(each.raw);
  }
  return chain;
}

function matches({ selector, matchingType, data }: TlsaAssociation, certificate: Buffer): boolean {
  const selected = selector === 0 ? certificate : publicKeyInfoOf(certificate);
  if (selected === null) return false;
  const expected = Buffer.from(data, 'hex');
  const actual =
    matchingType === 0
      ? selected
      : createHash(matchingType === 1 ? 'sha256' : 'sha512')
          .update(selected)
          .digest();
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

const SEQUENCE = 0x30;
/** `[0] EXPLICIT`: the version of a certificate, which is optional. */
const VERSION = 0xa0;
/** serialNumber, signature, issuer, validity and subject precede the key (RFC 5280 §4.1). */
const FIELDS_BEFORE_KEY = 5;

/**
 * The bytes of a certificate's SubjectPublicKeyInfo; null when it is no certificate. They are cut out of the certificate,
 * because encoding the key again may result in other bytes.
 */
export function publicKeyInfoOf(certificate: Buffer): Buffer | null {
  const outer = elementAt(certificate, 0);
  const body = outer?.tag === SEQUENCE ? elementAt(certificate, outer.start) : null;
  if (body?.tag !== SEQUENCE) return null;
  let at = body.start;
  for (let left = FIELDS_BEFORE_KEY; ; left--) {
    const element = at < body.end ? elementAt(certificate, at) : null;
    if (element === null) return null;
    if (left === FIELDS_BEFORE_KEY && element.tag === VERSION) left++;
    if (left === 0) return element.tag === SEQUENCE ? certificate.subarray(at, element.end) : null;
    at = element.end;
  }
}

/** One DER element (X.690 §8.1): its tag, and where its contents begin and end. Null when it is not complete. */
function elementAt(bytes: Buffer, at: number): { tag: number; start: number; end: number } | null {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) return null;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (lengthBytes > 4 || at + 2 + lengthBytes > bytes.length) return null;
  const length = lengthBytes === 0 ? first & 0x7f : bytes.readUIntBE(at + 2, lengthBytes);
  const start = at + 2 + lengthBytes;
  const end = start + length;
  return end > bytes.length ? null : { tag, start, end };
}
