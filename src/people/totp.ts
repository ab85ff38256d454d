import { createHmac, timingSafeEqual } from 'node:crypto';
import { base32 } from '../core/base32.ts';

/* Time-based one-time passwords (RFC 6238): SHA-1, 6 digits, steps of 30 s, as authenticator applications expect. */

const STEP_MS = 30_000;
const DIGITS = 6;
/** Steps before and after the current one whose code is accepted: clocks differ. */
const WINDOW = 1;
export const TOTP_SECRET_BYTES = 20;

/** The code of a time step. */
export function totpCode(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac('sha1', secret).update(counter).digest();
  // RFC 4226 §5.3.
  const offset = (digest.at(-1) ?? 0) & 0x0f;
  const value = digest.readUInt32BE(offset) & 0x7fff_ffff;
  return String(value % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** The time step of a moment, epoch ms. */
export function totpStep(now: number): number {
  return Math.floor(now / STEP_MS);
}

/**
 * The time step whose code was sent; null: the code is wrong, or of a step that is not after `lastUsed` (RFC 6238 §5.2:
 * a code is accepted once).
 */
export function matchTotp(secret: Buffer, code: string, now: number, lastUsed: number): number | null {
  const digits = code.replaceAll(/\s/g, '');
  if (!/^\d{6}$/.test(digits)) return null;
  for (let step = totpStep(now) - WINDOW; step <= totpStep(now) + WINDOW; step++) {
    if (step <= lastUsed) continue;
    if (timingSafeEqual(Buffer.from(totpCode(secret, step)), Buffer.from(digits))) return step;
  }
  return null;
}

/** The secret as people type it into an authenticator application: base32 in upper case. */
export function totpSecretText(secret: Buffer): string {
  return base32(secret).toUpperCase();
}

/** The address that authenticator applications read from a QR code. */
export function totpAddress(secret: Buffer, email: string, issuer: string): string {
  const label = encodeURIComponent(`${issuer}:${email}`);
  return `otpauth://totp/${label}?secret=${totpSecretText(secret)}&issuer=${encodeURIComponent(issuer)}`;
}
