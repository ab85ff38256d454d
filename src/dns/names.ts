import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';

/*
 * Domain names in canonical form: A-labels, lower case, no trailing dot; the root is '.'. Any name that DNS allows
 * (RFC 1035 §2.3.4, RFC 2181 §11) is valid, not only host names: `_dmarc`, `0/25.2.0.192.in-addr.arpa`, expanded SPF
 * macros.
 */

const LABEL = /^[\x21-\x2d\x2f-\x7e]{1,63}$/;
const MAX_NAME = 253;

/** Excludes characters that `domainToASCII` parses as parts of a URL (`%2e`, `/`, `:`, `@`). */
const IDN = /^[\w.*\-\u0080-\u{10ffff}]+$/u;

/** The canonical form of a name; null when it is invalid. U-labels become A-labels (UTS #46). */
export function canonicalName(name: string): string | null {
  if (isAscii(name)) return fromWire(name);
  return IDN.test(name) ? fromWire(domainToASCII(name)) : null;
}

/** The canonical form of a name in a DNS message, where only ASCII is valid; null when it is invalid. */
export function fromWire(name: string): string | null {
  if (name === '.') return name;
  const bare = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
  const fits =
    isAscii(name) && bare.length <= MAX_NAME && bare.split('.').every((label) => LABEL.test(label));
  return fits ? bare : null;
}

/** Whether `name` is `origin` or below it; both canonical. */
export function isWithin(name: string, origin: string): boolean {
  return origin === '.' || name === origin || name.endsWith(`.${origin}`);
}

/** The name of an address in reverse DNS (RFC 1035 §3.5, RFC 3596 §2.5): `25.2.0.192.in-addr.arpa`. */
export function reverseName(address: string): string {
  const parsed = ipaddr.parse(address);
  const bytes = parsed.toByteArray();
  if (parsed.kind() === 'ipv4') return `${bytes.toReversed().join('.')}.in-addr.arpa`;
  const nibbles = bytes.flatMap((byte) => [byte >> 4, byte & 0xf]).map((nibble) => nibble.toString(16));
  return `${nibbles.toReversed().join('.')}.ip6.arpa`;
}

/** The name without its first label; '.' above a top-level name. */
export function parentOf(name: string): string {
  const dot = name.indexOf('.');
  return dot === -1 || name === '.' ? '.' : name.slice(dot + 1);
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}
