import { organizationalDomain } from '../address.ts';
import { INCOMING_LIMITS } from './limits.ts';
import { readHeader } from './mime.ts';

/**
 * Selects the DKIM signatures (RFC 6376) of a received mail that authenticate its author: those whose signing domain is
 * aligned with the From domain (RFC 9989 §4.4, relaxed). All others prove nothing about the author and are not verified,
 * so a mail costs a bounded number of DNS queries and body hashes.
 */
export interface AuthenticatedAuthor {
  /** Address of the From field, with its domain in lower case. */
  from: string;
  /** Organizational domain that signed the mail and that the From domain belongs to. */
  organization: string;
}

/** Signatures that are verified of one mail; senders with several keys or algorithms use two. */
const MAX_SIGNATURES = 3;
/** RFC 8301 §3.2. */
export const MIN_KEY_BITS = 1024;
/** A mail with a longer header is not verified: mailauth reads it byte by byte. */
const MAX_HEADER_BYTES = 64 * 1024;
/**
 * A longer signature is not verified: mailauth takes quadratic time for blanks in a tag, 5 s for 60 KB. Signatures with RSA
 * keys of 4096 bits and a long list of fields have 2 KB.
 */
export const MAX_SIGNATURE_BYTES = 8 * 1024;

/** TXT records by the domain name of the key, each record as its strings. */
export type PublicKeys = Readonly<Record<string, readonly (readonly string[])[]>>;

/** The signatures of a mail that are verified. */
export interface SignedMail {
  /** Domain names of the public keys, lower case. */
  keyNames: string[];
  /** The fields of the header without the signatures that are not verified. */
  fields: string[];
  bodyAt: number;
}

/** The fields of a header as they were signed: latin1 keeps each byte as one character. Null: the header is too long. */
export function signedFields(raw: Buffer): Pick<SignedMail, 'fields' | 'bodyAt'> | null {
  const { bodyAt } = readHeader(raw, INCOMING_LIMITS);
  if (bodyAt > MAX_HEADER_BYTES) return null;
  const fields = raw
    .subarray(0, bodyAt)
    .toString('latin1')
    .split(/(?<=\n)(?![ \t])/);
  return { fields, bodyAt };
}

/** The mail with these fields. */
export function withFields(raw: Buffer, { fields, bodyAt }: Pick<SignedMail, 'fields' | 'bodyAt'>): Buffer {
  return Buffer.concat([Buffer.from(fields.join(''), 'latin1'), raw.subarray(bodyAt)]);
}

/** The lookup of keys that mailauth calls. `failed`: names, in lower case, whose lookup failed temporarily. */
export function keyResolver(keys: PublicKeys, failed: readonly string[] = []) {
  return async (name: string): Promise<string[][]> => {
    const key = name.toLowerCase();
    const records = keys[key];
    if (records !== undefined) return records.map((strings) => [...strings]);
    // mailauth treats ENOTFOUND as "no such record", and other codes as temporary.
    const code = failed.includes(key) ? 'ETIMEOUT' : 'ENOTFOUND';
    throw Object.assign(new Error(`no key at ${name}`), { code });
  };
}

/** The tags of a signature (RFC 6376 §3.2), and the lower-case name of its key; null: it does not name its key. */
export function signatureTags(
  field: string,
): { tags: ReadonlyMap<string, string>; domain: string; keyName: string } | null {
  const tags = new Map(
    field
      .slice(field.indexOf(':') + 1)
      .split(';')
      .map((tag): [string, string] => {
        const equals = tag.indexOf('=');
        return [tag.slice(0, equals).trim(), tag.slice(equals + 1).replaceAll(/\s+/g, '')];
      }),
  );
  const domain = tags.get('d')?.toLowerCase() ?? '';
  const selector = tags.get('s')?.toLowerCase() ?? '';
  return domain === '' || selector === ''
    ? null
    : { tags, domain, keyName: `${selector}._domainkey.${domain}` };
}

/** Null when the mail has no aligned signature. */
export function readSignatures(raw: Buffer): SignedMail | null {
  const header = signedFields(raw);
  if (header === null) return null;
  const from = header.fields.filter((field) => /^from[ \t]*:/i.test(field));
  const domain = from.length === 1 ? fromDomain(from[0] ?? '') : null;
  if (domain === null) return null;
  const keyNames: string[] = [];
  const fields = header.fields.filter((field) => {
    // mailauth would verify an ARC chain (RFC 8617), which proves nothing about the author.
    if (/^arc-/i.test(field)) return false;
    if (!/^dkim-signature[ \t]*:/i.test(field)) return true;
    const name = keyNames.length < MAX_SIGNATURES ? keyNameOf(field, domain) : null;
    if (name !== null) keyNames.push(name);
    return name !== null;
  });
  return keyNames.length === 0 ? null : { keyNames, fields, bodyAt: header.bodyAt };
}

/** Null when the field contains no domain, or several. The display name may repeat the address. */
function fromDomain(field: string): string | null {
  const found = new Set(
    Array.from(field.matchAll(/@([\w.-]{1,253})/g), ([, name = '']) => name.toLowerCase()),
  );
  const [domain = null] = found;
  return found.size === 1 ? domain : null;
}

/** Null when the signature is not aligned with `domain`, does not cover the whole body, or is too long. */
function keyNameOf(field: string, domain: string): string | null {
  const signature = field.length > MAX_SIGNATURE_BYTES ? null : signatureTags(field);
  if (signature === null || signature.tags.has('l')) return null;
  return isAligned(signature.domain, domain) ? signature.keyName : null;
}

/** Whether both domains have the same organizational domain. */
export function isAligned(one: string, other: string): boolean {
  return organizationalDomain(one) === organizationalDomain(other);
}
