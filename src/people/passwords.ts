import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { createFairLimit } from '../core/concurrency/gate.ts';
import { createTally } from '../core/concurrency/tally.ts';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';

/** Cost: 2^17 blocks of 1 KiB (OWASP's recommendation). */
const LOG_COST = 17;
const BLOCK = 8;
const PARALLEL = 1;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Hashes that are computed or wait, without those of known clients. */
const MAX_PENDING = 8;
/** Those of known clients, which others cannot occupy from any number of addresses. */
const MAX_KNOWN = 4;
/** Those for changes of passwords: the other places are for sign-ins. */
const MAX_CHANGES = 3;
/** Those for sign-ins of one client: others can always sign in. */
const MAX_OF_CLIENT = 4;
export const MIN_PASSWORD = 12;
export const MAX_PASSWORD = 256;

type Derive = (password: string, salt: Buffer, length: number, options: ScryptOptions) => Promise<Buffer>;
// Sound: the overload of `scrypt` with options.
const derive = promisify(scrypt) as Derive;

/**
 * Passwords, stored as scrypt hashes (RFC 7914). One hash takes 128 MiB and 0.4 s of a thread, so they are computed one
 * at a time, at most MAX_PENDING in total, and MAX_KNOWN for clients that the person uses. People who change their
 * password take turns with clients that sign in, and most places are for sign-ins. `logCost`: the cost of new hashes;
 * lower in tests.
 */
export function createPasswords({ logCost = LOG_COST }: { logCost?: number } = {}) {
  const inTurn = createHashQueue();
  const dummy = format(logCost, Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES));

  return {
    /** The text to store. Refuses a second one of a person, and above MAX_CHANGES. */
    hash: (password: string, personId: string): Promise<string | Refusal> =>
      inTurn('change', personId, async () => {
        const salt = randomBytes(SALT_BYTES);
        return format(logCost, salt, await derive(password, salt, HASH_BYTES, optionsOf(logCost)));
      }),
    /**
     * Whether the password is that of the stored text; null: no password, which takes as long. `client`: the block of
     * addresses from which the request came; `isKnown`: whether the person uses it. Refuses above MAX_OF_CLIENT, and
     * above MAX_PENDING or MAX_KNOWN.
     */
    verify: (
      password: string,
      stored: string | null,
      client: string,
      isKnown = false,
    ): Promise<boolean | Refusal> =>
      inTurn(isKnown ? 'known sign-in' : 'sign-in', client, async () => {
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

export type Passwords = ReturnType<typeof createPasswords>;

type Purpose = 'change' | 'sign-in' | 'known sign-in';
type InTurn = <T>(purpose: Purpose, of: string, run: () => Promise<T>) => Promise<T | Refusal>;

/** Returns a function that runs one task at a time, in turns between the persons and clients that wait. */
function createHashQueue(): InTurn {
  const limit = createFairLimit({ concurrency: 1 });
  /** Tasks that run or wait, by purpose, and by purpose and person or client. */
  const ofPurpose = createTally();
  const pending = createTally();

  function refusalOf(purpose: Purpose, key: string): Refusal | null {
    const own = pending.of(key);
    if (purpose === 'change' && own > 0)
      return refuse('RATE_LIMITED', 'Your password is being changed: wait until that has ended', {
        retryAfter: 5,
      });
    const isFull =
      purpose === 'known sign-in'
        ? ofPurpose.of(purpose) >= MAX_KNOWN
        : ofPurpose.of('change') + ofPurpose.of('sign-in') >= MAX_PENDING;
    const isAboveShare = purpose === 'change' ? ofPurpose.of(purpose) >= MAX_CHANGES : own >= MAX_OF_CLIENT;
    return isFull || isAboveShare
      ? refuse('UNAVAILABLE', 'Too many passwords are being checked; try again', { retryAfter: 5 })
      : null;
  }

  return async <T>(purpose: Purpose, of: string, run: () => Promise<T>) => {
    const key = `${purpose} ${of}`;
    const refusal = refusalOf(purpose, key);
    if (refusal !== null) return refusal;
    const ends = [ofPurpose.hold(purpose), pending.hold(key)];
    try {
      return await limit.run(key, run);
    } finally {
      for (const end of ends) end();
    }
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
