import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

/**
 * X.509 certificates for tests, generated in process: an authority, and server certificates that are valid,
 * expired or self-signed. Implements only the DER (X.690) and RFC 5280 that this needs; not for production.
 */
export interface Certificate {
  /** PEM. */
  key: string;
  /** PEM. */
  cert: string;
}

export interface Authority {
  /** The certificate that clients trust, PEM. */
  cert: string;
  /** A server certificate for host names or addresses, valid from a day ago until `notAfter` (default: in a day). */
  issue(names: string[], notAfter?: Date): Certificate;
  /** A certificate for the logo of a domain (BIMI), PEM. */
  issueForLogo(names: string[], notAfter?: Date): string;
}

export function createAuthority(name = 'Test authority'): Authority {
  const keys = newKeys();
  const cert = certificate({
    issuer: name,
    subject: name,
    names: [],
    keys,
    signer: keys.privateKey,
    authority: true,
  });
  const issue = (names: string[], notAfter: Date | undefined, isForLogo: boolean): Certificate => {
    const subjectKeys = newKeys();
    const cert = certificate({
      issuer: name,
      subject: names[0] ?? 'nobody',
      names,
      keys: subjectKeys,
      signer: keys.privateKey,
      authority: false,
      isForLogo,
      ...(notAfter === undefined ? {} : { notAfter }),
    });
    return { key: pemKey(subjectKeys.privateKey), cert };
  };
  return {
    cert,
    issue: (names, notAfter) => issue(names, notAfter, false),
    issueForLogo: (names, notAfter) => issue(names, notAfter, true).cert,
  };
}

/** A self-signed certificate. */
export function selfSigned(names: string[]): Certificate {
  const keys = newKeys();
  const name = names[0] ?? 'nobody';
  const cert = certificate({
    issuer: name,
    subject: name,
    names,
    keys,
    signer: keys.privateKey,
    authority: false,
  });
  return { key: pemKey(keys.privateKey), cert };
}

const DAY_MS = 86_400_000;

interface CertificateOptions {
  issuer: string;
  subject: string;
  names: string[];
  keys: { publicKey: KeyObject };
  signer: KeyObject;
  authority: boolean;
  isForLogo?: boolean;
  notAfter?: Date;
}

function certificate(options: CertificateOptions): string {
  const { issuer, subject, names, keys, signer, authority } = options;
  const notAfter = options.notAfter ?? new Date(Date.now() + DAY_MS);
  const notBefore = new Date(Math.min(Date.now(), notAfter.getTime()) - DAY_MS);
  const body = der(
    SEQUENCE,
    der(explicit(0), der(INTEGER, [2])),
    der(INTEGER, [1, ...randomBytes(12)]),
    ECDSA_WITH_SHA256,
    distinguishedName(issuer),
    der(SEQUENCE, utcTime(notBefore), utcTime(notAfter)),
    distinguishedName(subject),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(
      explicit(3),
      der(SEQUENCE, basicConstraints(authority), ...alternativeNames(names), ...logoUsage(options)),
    ),
  );
  const signature = der(BIT_STRING, [0], sign('sha256', body, signer));
  const base64 = der(SEQUENCE, body, ECDSA_WITH_SHA256, signature).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

function newKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function pemKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

const [BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING] = [0x01, 0x02, 0x03, 0x04];
const [OBJECT_IDENTIFIER, UTF8_STRING, UTC_TIME, SEQUENCE, SET] = [0x06, 0x0c, 0x17, 0x30, 0x31];
const explicit = (tag: number) => 0xa0 + tag;
const implicit = (tag: number) => 0x80 + tag;

function der(tag: number, ...parts: (Uint8Array | number[])[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Uint8Array.from(part)));
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const ECDSA_WITH_SHA256 = der(
  SEQUENCE,
  der(OBJECT_IDENTIFIER, [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]),
);

function distinguishedName(commonName: string): Buffer {
  const attribute = der(
    SEQUENCE,
    der(OBJECT_IDENTIFIER, [0x55, 0x04, 0x03]),
    der(UTF8_STRING, Buffer.from(commonName)),
  );
  return der(SEQUENCE, der(SET, attribute));
}

/** `YYMMDDhhmmssZ`, for dates until 2049. */
function utcTime(date: Date): Buffer {
  const digits = date
    .toISOString()
    .replace(/[^0-9]/g, '')
    .slice(2, 14);
  return der(UTC_TIME, Buffer.from(`${digits}Z`));
}

function basicConstraints(authority: boolean): Buffer {
  const value = der(SEQUENCE, ...(authority ? [der(BOOLEAN, [0xff])] : []));
  return der(SEQUENCE, der(OBJECT_IDENTIFIER, [0x55, 0x1d, 0x13]), der(OCTET_STRING, value));
}

/** The extended key usage of BIMI, 1.3.6.1.5.5.7.3.31. */
function logoUsage({ isForLogo = false }: CertificateOptions): Buffer[] {
  if (!isForLogo) return [];
  const usage = der(SEQUENCE, der(OBJECT_IDENTIFIER, [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x1f]));
  return [der(SEQUENCE, der(OBJECT_IDENTIFIER, [0x55, 0x1d, 0x25]), der(OCTET_STRING, usage))];
}

function alternativeNames(names: string[]): Buffer[] {
  if (names.length === 0) return [];
  const entries = names.map((name) =>
    isIP(name) === 4 ? der(implicit(7), name.split('.').map(Number)) : der(implicit(2), Buffer.from(name)),
  );
  return [
    der(SEQUENCE, der(OBJECT_IDENTIFIER, [0x55, 0x1d, 0x11]), der(OCTET_STRING, der(SEQUENCE, ...entries))),
  ];
}

/** The bytes of a PEM certificate. */
export function derOf(cert: string): Buffer {
  return Buffer.from(cert.replace(/-----[^-]+-----|\s/g, ''), 'base64');
}
