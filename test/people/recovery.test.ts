import { expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createPasswordCredentials, totpCode, totpStep } from '../../src/people/credentials.ts';
import { createPasskeys } from '../../src/people/passkeys.ts';
import { createPeople } from '../../src/people/people.ts';
import { newPerson } from '../../src/people/person.ts';
import { createSessions, type Session } from '../../src/people/sessions.ts';
import { createAuthenticator } from '../http/console/authenticator.ts';
import { granted } from '../support/refusal.ts';
import { startStore } from '../support/store.ts';

/* Requests of a stolen session that are processed while the person is recovered. */

const PERSON = 'person_1';
const URL = 'http://localhost:8081';
const PASSWORD = 'correct horse battery';

async function start() {
  const { tables, writer, clock, ids } = startStore();
  const deps = { tables, writer, clock, ids };
  const people = createPeople(deps);
  const seal = createSeal(Buffer.alloc(32), systemRandom);
  const sessions = createSessions({ ...deps, seal });
  const hashing = deferred<string>();
  const verifying = deferred<boolean>();
  const credentials = createPasswordCredentials(
    { ...deps, random: systemRandom, seal },
    {
      passwords: { hash: () => hashing.promise, verify: () => verifying.promise },
      clientOf: (address) => address,
    },
  );
  const passkeys = createPasskeys(deps, { url: () => URL });
  tables.people.insert(newPerson(PERSON, 'ada@example.com', 'Ada', clock.now()));
  const signIn = async (): Promise<Session> => {
    const { token } = granted(await sessions.open(PERSON, 'link', { userAgent: '', address: '' }));
    const session = sessions.find(token);
    if (session === null) throw new Error('the session was not opened');
    return session;
  };
  /** A passkey that the session creates; its response is not sent. */
  const newPasskey = async (session: Session) => {
    // Sound: the options have a challenge.
    const options = (await passkeys.beginRegistration(session)) as { challenge: string };
    return createAuthenticator(URL).register(options) as Parameters<typeof passkeys.register>[2];
  };
  return {
    ...deps,
    sessions,
    credentials,
    passkeys,
    hashing,
    verifying,
    signIn,
    newPasskey,
    recover: async () => granted(await people.issueLink(PERSON, 'recovery')),
    person: () => tables.people.get(PERSON),
    openSessions: () => tables.consoleSessions.ofPerson(PERSON, 20).map((row) => row.session_id),
  };
}

it('does not store a password that is hashed while the person is recovered', async () => {
  const { credentials, signIn, hashing, recover, person, openSessions } = await start();
  const change = credentials.setPassword(await signIn(), PASSWORD);
  await recover();
  const own = await signIn();
  hashing.resolve('hash');
  expect((await change)?.code).toBe('UNAUTHENTICATED');
  expect(person()?.password).toBeNull();
  expect(openSessions()).toEqual([own.id]);
});

it.each<
  [string, (test: Awaited<ReturnType<typeof start>>, stolen: Session) => Promise<() => Promise<unknown>>]
>([
  [
    'the removal of the password',
    async ({ credentials }, stolen) =>
      () =>
        credentials.removePassword(stolen),
  ],
  [
    'a new authenticator application',
    async ({ credentials, clock }, stolen) => {
      const { state, secret } = credentials.beginTotp(stolen);
      return () =>
        credentials.confirmTotp(stolen, state, totpCode(fromBase32(secret), totpStep(clock.now())));
    },
  ],
  [
    'a new passkey',
    async ({ passkeys, newPasskey }, stolen) => {
      const response = await newPasskey(stolen);
      return () => passkeys.register(stolen, 'Laptop', response);
    },
  ],
  [
    'the removal of a passkey',
    async ({ passkeys }, stolen) =>
      () =>
        passkeys.remove(stolen, 'passkey_1'),
  ],
  [
    'the end of other sessions',
    async ({ sessions }, stolen) =>
      () =>
        sessions.revokeOthers(stolen),
  ],
])('refuses %s by a session that the recovery ended', async (_, prepare) => {
  const test = await start();
  const request = await prepare(test, await test.signIn());
  await test.recover();
  const own = await test.signIn();
  const before = test.person();
  const result = await request();
  expect(isRefusal(result) && result.code).toBe('UNAUTHENTICATED');
  expect(test.person()).toEqual(before);
  expect(test.tables.passkeys.countOf(PERSON)).toBe(0);
  expect(test.openSessions()).toEqual([own.id]);
});

it('permits the same to a session that exists', async () => {
  const { credentials, passkeys, newPasskey, signIn, hashing, tables, person } = await start();
  const session = await signIn();
  hashing.resolve('hash');
  expect(await credentials.setPassword(session, PASSWORD)).toBeNull();
  expect(person()?.password).toBe('hash');
  granted(await passkeys.register(session, 'Laptop', await newPasskey(session)));
  expect(tables.passkeys.countOf(PERSON)).toBe(1);
});

it('does not sign in with a password that was replaced while it was verified', async () => {
  const { credentials, signIn, hashing, verifying, clock } = await start();
  const session = await signIn();
  hashing.resolve('hash');
  const { state, secret } = credentials.beginTotp(session);
  const code = () => totpCode(fromBase32(secret), totpStep(clock.now()));
  expect(await credentials.confirmTotp(session, state, code())).toBeNull();
  clock.advance(30_000);
  const verified = credentials.verify({
    email: 'ada@example.com',
    password: 'the old password',
    totp: code(),
    client: '192.0.2.1',
  });
  expect(await credentials.setPassword(session, PASSWORD)).toBeNull();
  verifying.resolve(true);
  expect(await verified).toBe('wrong');
});

function deferred<Value>() {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: (value: Value) => resolve(value) };
}

/** Decodes base32 (RFC 4648 §6). */
function fromBase32(text: string): Buffer {
  const bits = text
    .split('')
    .map((char) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(char).toString(2).padStart(5, '0'))
    .join('');
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}
