import { generateKeyPairSync, type KeyPairKeyObjectResult, randomBytes, sign } from 'node:crypto';
import { DAY } from './clock.ts';
import type { TlsPair } from './tls-pair.ts';

/*
 * Self-signed certificates (RFC 5280) and certificate requests (PKCS #10, RFC 2986) for one host name, with keys on P-256,
 * and the subset of DER (X.690) that they need.
 */

const VALID_DAYS = 3650;

/**
 * Generates a certificate for one host name, valid for ten years from `now` (epoch ms). Mail servers accept it for
 * opportunistic encryption (RFC 7435).
 */
export function generateSelfSignedCertificate(hostname: string, now: number): TlsPair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(
    der(SET, sequence(COMMON_NAME, der(UTF8_STRING, Buffer.from(hostname.slice(0, 64))))),
  );
  const body = sequence(
    der(0xa0, der(INTEGER, [2])),
    der(INTEGER, [1, ...randomBytes(12)]),
    ECDSA_WITH_SHA256,
    name,
    sequence(time(now - DAY), time(now + VALID_DAYS * DAY)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions(hostname)),
  );
  const base64 = signed(body, privateKey).toString('base64');
  return {
    key: pemOf(privateKey),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  };
}

/** Generates a key and the request for a certificate of one host name. `key`: PEM. `request`: DER. */
export function generateCertificateRequest(hostname: string): { key: string; request: Buffer } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const body = sequence(
    der(INTEGER, [0]),
    // The name is in the extension: a subject is not required (RFC 8555 §7.4).
    sequence(),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa0, sequence(EXTENSION_REQUEST, der(SET, extensions(hostname)))),
  );
  return { key: pemOf(privateKey), request: signed(body, privateKey) };
}

/** Of one name in DNS (RFC 5280 §4.2.1.6). */
function extensions(hostname: string): Buffer {
  return sequence(sequence(SUBJECT_ALT_NAME, der(OCTET_STRING, sequence(der(0x82, Buffer.from(hostname))))));
}

function signed(body: Buffer, key: PrivateKey): Buffer {
  return sequence(body, ECDSA_WITH_SHA256, der(BIT_STRING, [0], sign('sha256', body, key)));
}

function pemOf(key: PrivateKey): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

type PrivateKey = KeyPairKeyObjectResult['privateKey'];

const [INTEGER, BIT_STRING, OCTET_STRING, UTF8_STRING] = [0x02, 0x03, 0x04, 0x0c];
const [OBJECT_IDENTIFIER, UTC_TIME, GENERALIZED_TIME, SEQUENCE, SET] = [0x06, 0x17, 0x18, 0x30, 0x31];
const ECDSA_WITH_SHA256 = sequence(der(OBJECT_IDENTIFIER, [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]));
const COMMON_NAME = der(OBJECT_IDENTIFIER, [0x55, 0x04, 0x03]);
/** PKCS #9 (RFC 2985 §5.4.2). */
const EXTENSION_REQUEST = der(OBJECT_IDENTIFIER, [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e]);
const SUBJECT_ALT_NAME = der(OBJECT_IDENTIFIER, [0x55, 0x1d, 0x11]);

function der(tag: number, ...parts: (Uint8Array | number[])[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Uint8Array.from(part)));
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(SEQUENCE, ...parts);
}

/** UTCTime up to 2049, GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5). */
function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/\.\d+Z$|[^0-9]/g, '');
  return new Date(at).getUTCFullYear() < 2050
    ? der(UTC_TIME, Buffer.from(`${digits.slice(2)}Z`))
    : der(GENERALIZED_TIME, Buffer.from(`${digits}Z`));
}
