import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { DAY } from '../core/clock.ts';

/*
 * A self-signed certificate, generated at start when none is configured. Mail servers accept it for opportunistic
 * encryption (RFC 7435). Implements the subset of DER (X.690) and RFC 5280 that this needs.
 */

export interface KeyAndCertificate {
  /** PEM. */
  key: string;
  /** PEM, followed by the chain if there is one. */
  cert: string;
}

const VALID_DAYS = 3650;

/** Generates a certificate for one host name: ECDSA on P-256, valid for ten years from `now` (epoch ms). */
export function generateSelfSignedCertificate(hostname: string, now: number): KeyAndCertificate {
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
    der(
      0xa3,
      sequence(sequence(SUBJECT_ALT_NAME, der(OCTET_STRING, sequence(der(0x82, Buffer.from(hostname)))))),
    ),
  );
  const signature = der(BIT_STRING, [0], sign('sha256', body, privateKey));
  const base64 = sequence(body, ECDSA_WITH_SHA256, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  };
}

const [INTEGER, BIT_STRING, OCTET_STRING, UTF8_STRING] = [0x02, 0x03, 0x04, 0x0c];
const [OBJECT_IDENTIFIER, UTC_TIME, GENERALIZED_TIME, SEQUENCE, SET] = [0x06, 0x17, 0x18, 0x30, 0x31];
const ECDSA_WITH_SHA256 = sequence(der(OBJECT_IDENTIFIER, [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]));
const COMMON_NAME = der(OBJECT_IDENTIFIER, [0x55, 0x04, 0x03]);
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
