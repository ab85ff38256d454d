import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { type Clock, iso, isoOrNull, MINUTE } from '../core/clock.ts';
import { systemRandom } from '../core/random.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { createSeal } from '../core/seal.ts';
import type { Context } from '../store/context.ts';
import type { PasskeyRow } from '../store/people/credentials.ts';
import { MAX_PASSKEYS } from './person.ts';
import { openState, sealState } from './sealed-state.ts';
import { endedSession, type Session } from './sessions.ts';

const encoded = z.string().regex(/^[\w-]+$/);
const id = encoded.max(1400);

/** The JSON form of the browser's response (WebAuthn §5.1.2); other fields are ignored. */
export const registrationSchema = z.object({
  id,
  rawId: id,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: encoded.max(4000),
    attestationObject: encoded.max(40_000),
    transports: z.array(z.string().max(20)).max(10).optional(),
  }),
});

/** The JSON form of an assertion (WebAuthn §5.1.2); other fields are ignored. */
export const authenticationSchema = z.object({
  id,
  rawId: id,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: encoded.max(4000),
    authenticatorData: encoded.max(4000),
    signature: encoded.max(4000),
    userHandle: encoded.max(200).nullish(),
  }),
});

export type RegistrationInput = z.output<typeof registrationSchema>;
export type AuthenticationInput = z.output<typeof authenticationSchema>;

const RP_NAME = 'Postrider';
const SIGN_IN = 'sign in';

/**
 * Passkeys (Web Authentication): discoverable credentials with user verification, bound to the host name of the
 * console. The purpose of a challenge is SIGN_IN, or the session that registers. The WebAuthn library is loaded at its
 * first use. `url` is called at each use, as the port may not be known yet.
 */
export function createPasskeys(
  { tables, writer, clock }: Pick<Context, 'tables' | 'writer' | 'clock'>,
  {
    url,
  }: {
    /** `console.url`: the origin of the console. */
    url(): string;
  },
) {
  const challenges = createChallenges(clock);
  const rpId = () => new URL(url()).hostname;

  return {
    /** Whether passkeys work at the address of the console: https, or the host name localhost. */
    isAvailable: (): boolean => {
      const { protocol, hostname } = new URL(url());
      return hostname === 'localhost' || (protocol === 'https:' && !/^\[|^[\d.]+$/.test(hostname));
    },
    /** Options for `navigator.credentials.create`. */
    beginRegistration: async ({ id: sessionId, person }: Session): Promise<object> => {
      const { generateRegistrationOptions } = await import('./webauthn-library.ts');
      return generateRegistrationOptions({
        challenge: challenges.create(sessionId),
        rpName: RP_NAME,
        rpID: rpId(),
        userID: new TextEncoder().encode(person.id),
        userName: person.email,
        userDisplayName: person.name === '' ? person.email : person.name,
        attestationType: 'none',
        excludeCredentials: tables.passkeys
          .ofPerson(person.id, MAX_PASSKEYS)
          .map(({ credential_id }) => ({ id: credential_id })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      });
    },
    /** Stores a new passkey. Refuses a session that has ended. */
    register: async (
      session: Session,
      name: string,
      response: RegistrationInput,
    ): Promise<ListedPasskey | Refusal> => {
      const { id: sessionId, person, hash } = session;
      const { verifyRegistrationResponse } = await import('./webauthn-library.ts');
      const verified = await verifyRegistrationResponse({
        response: { ...response, response: withoutTransports(response), clientExtensionResults: {} },
        expectedChallenge: (challenge) => challenges.use(challenge, sessionId),
        expectedOrigin: url(),
        expectedRPID: rpId(),
        requireUserVerification: true,
      }).catch(() => null);
      const info = verified?.registrationInfo;
      if (verified?.verified !== true || info === undefined)
        return refuse(
          'VALIDATION_ERROR',
          'The passkey was not created: the response is not valid; begin again',
        );
      const row: PasskeyRow = {
        credential_id: info.credential.id,
        person_id: person.id,
        name,
        public_key: Buffer.from(info.credential.publicKey),
        counter: info.credential.counter,
        transports: JSON.stringify(response.response.transports ?? []),
        created_at: clock.now(),
        used_at: null,
      };
      return writer.run((tx): ListedPasskey | Refusal => {
        const ended = endedSession(tx, session, clock.now());
        if (ended !== null) return ended;
        if (tx.passkeys.ofPerson(person.id, MAX_PASSKEYS).length >= MAX_PASSKEYS)
          return refuse('LIMIT_REACHED', `A person has at most ${MAX_PASSKEYS} passkeys`);
        if (tx.passkeys.get(row.credential_id) !== null)
          return refuse('INVALID_STATE', 'This passkey is registered already');
        tx.passkeys.insert(row);
        tx.consoleSessions.removeOf(person.id, hash);
        return presentPasskey(row);
      });
    },
    /** Options for `navigator.credentials.get`. */
    beginAuthentication: async (): Promise<object> => {
      const { generateAuthenticationOptions } = await import('./webauthn-library.ts');
      return generateAuthenticationOptions({
        challenge: challenges.create(SIGN_IN),
        rpID: rpId(),
        userVerification: 'required',
      });
    },
    /** The id of the person who signed the challenge; null: the response is not valid. */
    verify: async (response: AuthenticationInput): Promise<string | null> => {
      const { verifyAuthenticationResponse } = await import('./webauthn-library.ts');
      const row = tables.passkeys.get(response.id);
      if (row === null) return null;
      const { authenticatorData, clientDataJSON, signature } = response.response;
      const verified = await verifyAuthenticationResponse({
        response: {
          ...response,
          response: { authenticatorData, clientDataJSON, signature },
          clientExtensionResults: {},
        },
        expectedChallenge: (challenge) => challenges.use(challenge, SIGN_IN),
        expectedOrigin: url(),
        expectedRPID: rpId(),
        credential: {
          id: row.credential_id,
          publicKey: new Uint8Array(row.public_key),
          counter: row.counter,
        },
        requireUserVerification: true,
      }).catch(() => null);
      if (verified?.verified !== true) return null;
      const { newCounter } = verified.authenticationInfo;
      return writer.run((tx): string | null => {
        if (tx.passkeys.get(row.credential_id) === null) return null;
        tx.passkeys.setUsed(row.credential_id, newCounter, clock.now());
        return row.person_id;
      });
    },
    list: (personId: string): ListedPasskey[] =>
      tables.passkeys.ofPerson(personId, MAX_PASSKEYS).map(presentPasskey),
    /** False: the person has no such passkey. Refuses a session that has ended. */
    remove: (session: Session, credentialId: string): Promise<boolean | Refusal> =>
      writer.run((tx): boolean | Refusal => {
        const { person, hash } = session;
        const ended = endedSession(tx, session, clock.now());
        if (ended !== null) return ended;
        if (!tx.passkeys.remove(credentialId, person.id)) return false;
        tx.consoleSessions.removeOf(person.id, hash);
        return true;
      }),
  };
}

export type Passkeys = ReturnType<typeof createPasskeys>;

function withoutTransports({ response }: RegistrationInput): {
  clientDataJSON: string;
  attestationObject: string;
} {
  return { clientDataJSON: response.clientDataJSON, attestationObject: response.attestationObject };
}

export type ListedPasskey = ReturnType<typeof presentPasskey>;

function presentPasskey(row: PasskeyRow) {
  return {
    id: row.credential_id,
    name: row.name,
    createdAt: iso(row.created_at),
    usedAt: isoOrNull(row.used_at),
  };
}

const LIFETIME_MS = 5 * MINUTE;
const NONCE_BYTES = 16;
/** Used challenges that are remembered. Only those of responses with a known passkey are. */
const MAX_USED = 10_000;

/**
 * Challenges of passkeys: valid once, for five minutes, for one purpose. They are sealed, not stored, so that requests
 * for many challenges invalidate none that a person is about to use. The key is in memory only: a restart invalidates
 * all challenges.
 */
export function createChallenges(clock: Clock) {
  const seal = createSeal(randomBytes(32), systemRandom);
  const used = new LRUCache<string, true>({ max: MAX_USED });

  return {
    create: (purpose: string): Uint8Array<ArrayBuffer> =>
      new Uint8Array(sealState(seal, randomBytes(NONCE_BYTES), purpose, clock.now() + LIFETIME_MS)),
    /** Whether the challenge, in base64url, is valid for the purpose. It is not afterwards. */
    use: (challenge: string, purpose: string): boolean => {
      const nonce = openState(seal, Buffer.from(challenge, 'base64url'), purpose, clock.now())?.toString(
        'hex',
      );
      if (nonce === undefined || used.has(nonce)) return false;
      used.set(nonce, true);
      return true;
    },
  };
}
