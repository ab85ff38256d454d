import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';

/**
 * Passwords, stored as scrypt hashes (RFC 7914). One hash takes 128 MiB and 0.4 s of a thread, so they are computed one at
 * a time, at most MAX_WAITING in total.
 */
export interface Passwords {
  /** The text to store. Refuses above MAX_WAITING. */
  hash(password: string): Promise<string | Refusal>;
  /** Whether the password is that of the stored text; null: no password, which takes as long. */
  verify(password: string, stored: string | null): Promise<boolean | Refusal>;
}

/** Cost: 2^17 blocks of 1 KiB (OWASP's recommendation). */
const LOG_COST = 17;
const BLOCK = 8;
const PARALLEL = 1;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Hashes that are computed or wait. */
const MAX_WAITING = 8;
export const MIN_PASSWORD = 12;
export const MAX_PASSWORD = 256;

type Derive = (password: string, salt: Buffer, length: number, options: ScryptOptions) => Promise<Buffer>;
// Sound: the overload of `scrypt` with options.
const derive = promisify(scrypt) as Derive;

/** `logCost`: of new hashes; lower in tests. */
export function createPasswords({ logCost = LOG_COST }: { logCost?: number } = {}): Passwords {
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();
  const dummy = format(logCost, Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

  /** Runs after all earlier ones. */
  async function inTurn<T>(run: () => Promise<T>): Promise<T | Refusal> {
    if (waiting >= MAX_WAITING)
      return refuse('UNAVAILABLE', 'Too many people are signing in with a password; try again', {
        retryAfter: 5,
      });
    waiting++;
    const result = last.then(run).finally(() => {
      waiting--;
    });
    last = result.catch(() => {});
    return result;
  }

  return {
    hash: (password) =>
      inTurn(async () => {
        const salt = randomBytes(SALT_BYTES);
        return format(logCost, salt, await derive(password, salt, HASH_BYTES, optionsOf(logCost)));
      }),
    verify: (password, stored) =>
      inTurn(async () => {
        const parsed = parse(stored ?? dummy);
        if (parsed === null) throw new Error('the stored password hash has an unknown form');
        const found = await derive(
          password.normalize('NFC'),
          parsed.salt,
          parsed.hash.length,
          optionsOf(parsed.logCost),
        );
        return timingSafeEqual(found, parsed.hash) && stored !== null;
      }),
  };
}

/** Refuses a password that is too short, too long, or the address itself. Returns it in the form that is hashed. */
export function checkPassword(password: string, email: string): string | Refusal {
  const text = password.normalize('NFC');
  if (text.length < MIN_PASSWORD) return invalid('password', `must have at least ${MIN_PASSWORD} characters`);
  if (text.length > MAX_PASSWORD) return invalid('password', `must have at most ${MAX_PASSWORD} characters`);
  if (text.toLowerCase() === email.toLowerCase()) return invalid('password', 'must not be the mail address');
  if (new Set(text).size < 4) return invalid('password', 'must have more than three different characters');
  return text;
}

function optionsOf(logCost: number): ScryptOptions {
  return { N: 2 ** logCost, r: BLOCK, p: PARALLEL, maxmem: 2 * 128 * BLOCK * 2 ** logCost };
}

function format(logCost: number, salt: Buffer, hash: Buffer): string {
  return `scrypt$${logCost}$${salt.toString('base64url')}$${hash.toString('base64url')}`;
}

function parse(text: string): { logCost: number; salt: Buffer; hash: Buffer } | null {
  const [, logCost, salt, hash] = /^scrypt\$(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(text) ?? [];
  if (logCost === undefined || salt === undefined || hash === undefined) return null;
  return {
    logCost: Number(logCost),
    salt: Buffer.from(salt, 'base64url'),
    hash: Buffer.from(hash, 'base64url'),
  };
}
