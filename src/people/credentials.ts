import { createHmac, timingSafeEqual } from 'node:crypto';
import { base32 } from '../core/base32.ts';
import { MINUTE } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { createTokenBuckets, type RateReading, type TokenBucket } from '../core/token-bucket.ts';
import { addressKey } from '../mail/identifier.ts';
import type { Context } from '../store/context.ts';
import type { PersonRow } from '../store/people/people.ts';
import { checkPassword, type Passwords } from './passwords.ts';
import { MAX_PEOPLE } from './person.ts';
import { openState, sealState } from './sealed-state.ts';
import { endedSession, type Session } from './sessions.ts';

export interface PasswordInput {
  email: string;
  password: string;
  totp?: string | undefined;
  /** The block of addresses from which the request came. */
  client: string;
  /** The session that is confirmed; undefined: a sign-in. */
  session?: Session | undefined;
}

/** `wrong`: address, password or code; `totp`: a correct password without a code; `incomplete`: no TOTP is set up. */
export type Verified = { personId: string } | 'wrong' | 'totp' | 'incomplete';

export interface TotpSetup {
  /** Base32, for typing. */
  secret: string;
  /** `otpauth://…`, for a QR code. */
  address: string;
  /** The secret, sealed for this person. */
  state: string;
}

/**
 * Attempts for one address: a burst of 10, then one every two minutes. Those of a client that the person uses and those of a
 * session have their own, so that others cannot lock the person out.
 */
const ATTEMPTS = { burst: 10, perSecond: 1 / 120 };
/** Attempts of one client, which must not occupy all hashes that may wait. */
const CLIENT_ATTEMPTS = { burst: 60, perSecond: 1 / 2 };
const MAX_CLIENTS = 10_000;
/** Newest audit records of a person, whose clients the person uses. */
const MAX_RECORDS = 200;
/** People, clients that they use, and sessions whose attempts are counted. */
const MAX_KNOWN = 3 * MAX_PEOPLE;
/** Changes of one person's password, each of which costs a hash. */
const CHANGES = { burst: 5, perSecond: 1 / 60 };
/** Unknown addresses whose attempts are counted. */
const MAX_UNKNOWN = 10_000;
const SETUP_MS = 15 * MINUTE;
const ISSUER = 'Postrider';

/* Time-based one-time passwords (RFC 6238): SHA-1, 6 digits, steps of 30 s, as authenticator applications expect. */
const STEP_MS = 30_000;
const DIGITS = 6;
/** Steps before and after the current one whose code is accepted: clocks differ. */
const WINDOW = 1;
const TOTP_SECRET_BYTES = 20;

/**
 * Sign-in with a password and a code of an authenticator application, never with a password alone. Every change of a
 * credential ends the other sessions of the person, and is refused when its own session has ended meanwhile. Counts
 * attempts and changes in memory, so that all are allowed again after a restart. A TOTP setup is not stored: its sealed
 * `state` is valid for 15 minutes.
 */
export function createPasswordCredentials(
  { tables, writer, clock, random, seal }: Pick<Context, 'tables' | 'writer' | 'clock' | 'random' | 'seal'>,
  {
    passwords,
    clientOf,
  }: {
    passwords: Passwords;
    /** The block of addresses that counts as one client. */
    clientOf(address: string): string;
  },
) {
  const attemptsOfClients = createTokenBuckets(clock, CLIENT_ATTEMPTS, MAX_CLIENTS);
  // Separate, so that attempts for many unknown addresses evict no bucket of a person.
  const attemptsOfKnown = createTokenBuckets(clock, ATTEMPTS, MAX_KNOWN);
  const changesOfPeople = createTokenBuckets(clock, CHANGES, MAX_PEOPLE);
  const attemptsOfUnknown = createTokenBuckets(clock, ATTEMPTS, MAX_UNKNOWN);

  /** The bucket of an attempt, and whether it is from a client that the person uses. */
  function attemptsOf(
    row: PersonRow | null,
    key: string,
    { client, session }: PasswordInput,
  ): { bucket: TokenBucket; isKnown: boolean } {
    if (session !== undefined) return { bucket: attemptsOfKnown.of(`session ${session.id}`), isKnown: true };
    // Records are read for an unknown address, too, so that both take as long.
    const isKnown = usesClient(row?.person_id, client);
    if (row === null) return { bucket: attemptsOfUnknown.of(key), isKnown: false };
    return { bucket: attemptsOfKnown.of(`${row.person_id} ${isKnown ? client : ''}`), isKnown };
  }

  /** Whether the person (undefined: anyone) has used the console from this client. Failed sign-ins name no person. */
  function usesClient(personId: string | undefined, client: string): boolean {
    const { rows } = tables.auditRecords.list({ personId }, MAX_RECORDS);
    return rows.some(({ remote_address: address }) => clientOf(address) === client);
  }

  /**
   * Accepts the code and marks its step as used, in one unit of work. False also when the password has changed since it
   * was verified.
   */
  async function useCode(row: PersonRow, code: string): Promise<boolean> {
    return writer.run((tx): boolean => {
      const current = tx.people.get(row.person_id);
      if (current === null || current.totp === null || current.password !== row.password) return false;
      const secret = seal.open(current.totp, totpSealContext(row.person_id));
      const step = matchTotp(secret, code, clock.now(), current.totp_used);
      if (step === null) return false;
      tx.people.update({ ...current, totp_used: step });
      return true;
    });
  }

  /** Changes the row of the session's person and ends the other sessions. Refuses a session that has ended. */
  async function change(session: Session, fields: Partial<PersonRow>): Promise<Refusal | null> {
    return writer.run((tx): Refusal | null => {
      const ended = endedSession(tx, session, clock.now());
      if (ended !== null) return ended;
      const row = tx.people.get(session.person.id);
      if (row === null) throw new Error('the session has no person');
      tx.people.update({ ...row, ...fields, updated_at: clock.now() });
      tx.consoleSessions.removeOf(row.person_id, session.hash);
      return null;
    });
  }

  return {
    /** The id of the person; a refusal, or what is missing or wrong. Takes as long for unknown addresses. */
    verify: async (input: PasswordInput): Promise<Verified | Refusal> => {
      const { email, password, totp, client } = input;
      const ofClient = attemptsOfClients.of(client).take();
      if (!ofClient.allowed) return tooManyAttempts('from', ofClient);
      const key = addressKey(email);
      const row = tables.people.byEmail(key);
      const { bucket, isKnown } = attemptsOf(row, key, input);
      const ofPerson = bucket.take();
      if (!ofPerson.allowed) return tooManyAttempts('for', ofPerson);
      const isCorrect = await passwords.verify(password, row?.password ?? null, client, isKnown);
      if (isRefusal(isCorrect)) return isCorrect;
      if (!isCorrect || row === null || row.status !== 'active') return 'wrong';
      if (row.totp === null) return 'incomplete';
      if (totp === undefined || totp === '') return 'totp';
      return (await useCode(row, totp)) ? { personId: row.person_id } : 'wrong';
    },
    /** Refuses a person who changes it too often. */
    setPassword: async (session: Session, password: string): Promise<Refusal | null> => {
      const checked = checkPassword(password, session.person.email);
      if (isRefusal(checked)) return checked;
      const { allowed, retryAfterSeconds } = changesOfPeople.of(session.person.id).take();
      if (!allowed)
        return refuse('RATE_LIMITED', 'You have changed your password too often: wait', {
          retryAfter: retryAfterSeconds,
        });
      const hashed = await passwords.hash(checked, session.person.id);
      if (isRefusal(hashed)) return hashed;
      return change(session, { password: hashed });
    },
    /** Removes password and TOTP. */
    removePassword: (session: Session): Promise<Refusal | null> =>
      change(session, { password: null, totp: null, totp_used: 0 }),
    /** A new TOTP secret, which `confirmTotp` stores. */
    beginTotp: ({ person }: Session): TotpSetup => {
      const secret = random.bytes(TOTP_SECRET_BYTES);
      const state = sealState(seal, secret, setupContext(person.id), clock.now() + SETUP_MS);
      return {
        secret: totpSecretText(secret),
        address: totpAddress(secret, person.email, ISSUER),
        state: state.toString('base64url'),
      };
    },
    /** Stores the secret of `state` if the code is correct. */
    confirmTotp: async (session: Session, state: string, code: string): Promise<Refusal | null> => {
      const context = setupContext(session.person.id);
      const secret = openState(seal, Buffer.from(state, 'base64url'), context, clock.now());
      if (secret === null) return invalid('state', 'has expired: begin again');
      const step = matchTotp(secret, code, clock.now(), 0);
      if (step === null) return invalid('code', 'is not the current code: check the clock of the device');
      return change(session, {
        totp: seal.seal(secret, totpSealContext(session.person.id)),
        totp_used: step,
      });
    },
  };
}

export type PasswordCredentials = ReturnType<typeof createPasswordCredentials>;

function tooManyAttempts(by: 'from' | 'for', { retryAfterSeconds }: RateReading): Refusal {
  const message = `Too many attempts ${by} this address: wait, or sign in with a link`;
  return refuse('RATE_LIMITED', message, { retryAfter: retryAfterSeconds });
}

/** The context with which the secret of an authenticator app is sealed. */
export function totpSealContext(personId: string): string {
  return `totp ${personId}`;
}

function setupContext(personId: string): string {
  return `totp setup ${personId}`;
}

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
function totpSecretText(secret: Buffer): string {
  return base32(secret).toUpperCase();
}

/** The address that authenticator applications read from a QR code. */
export function totpAddress(secret: Buffer, email: string, issuer: string): string {
  const label = encodeURIComponent(`${issuer}:${email}`);
  return `otpauth://totp/${label}?secret=${totpSecretText(secret)}&issuer=${encodeURIComponent(issuer)}`;
}
