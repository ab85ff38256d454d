import { expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { checkPassword, createPasswords } from '../../src/people/passwords.ts';

const passwords = createPasswords({ logCost: 4 });
const CLIENT = '192.0.2.1';
const PASSWORD = 'correct horse battery';
const codeOf = (result: unknown) => (isRefusal(result) ? result.code : 'done');

it('verifies a password in either Unicode normalization', async () => {
  const stored = await passwords.hash('péché mortel 12'.normalize('NFC'), 'person_1');
  if (isRefusal(stored)) throw new Error(stored.message);
  expect(stored).toMatch(/^scrypt\$4\$[\w-]{22}\$[\w-]{43}$/);
  expect(await passwords.verify('péché mortel 12'.normalize('NFD'), stored, CLIENT)).toBe(true);
  expect(await passwords.verify('péché mortel 13', stored, CLIENT)).toBe(false);
});

it('never accepts a password where none is stored', async () => {
  expect(await passwords.verify('', null, CLIENT)).toBe(false);
  expect(await passwords.verify('anything at all', null, CLIENT)).toBe(false);
});

it('uses the cost that is stored with a hash', async () => {
  const stored = await createPasswords({ logCost: 6 }).hash('correct horse battery', 'person_1');
  if (isRefusal(stored)) throw new Error(stored.message);
  expect(await passwords.verify('correct horse battery', stored, CLIENT)).toBe(true);
});

it('refuses a ninth hash while eight are computed or wait', async () => {
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, n) => passwords.verify(PASSWORD, null, `client ${n}`)),
  );
  expect(results.map(codeOf)).toEqual([
    ...Array<string>(8).fill('done'),
    ...Array<string>(4).fill('UNAVAILABLE'),
  ]);
  expect(codeOf(await passwords.verify(PASSWORD, null, CLIENT))).toBe('done');
});

it('computes one hash of a person at a time, for the change of a password', async () => {
  const results = await Promise.all(Array.from({ length: 3 }, () => passwords.hash(PASSWORD, 'person_1')));
  expect(results.map(codeOf)).toEqual(['done', 'RATE_LIMITED', 'RATE_LIMITED']);
  expect(codeOf(await passwords.hash(PASSWORD, 'person_1'))).toBe('done');
});

it('leaves places for sign-ins while people change their passwords', async () => {
  const changes = Array.from({ length: 8 }, (_, n) => passwords.hash(PASSWORD, `person_${n}`));
  const signIns = Array.from({ length: 5 }, (_, n) => passwords.verify(PASSWORD, null, `client ${n}`));
  expect((await Promise.all(changes)).map(codeOf)).toEqual([
    ...Array<string>(3).fill('done'),
    ...Array<string>(5).fill('UNAVAILABLE'),
  ]);
  expect((await Promise.all(signIns)).map(codeOf)).toEqual(Array(5).fill('done'));
});

it('leaves places for other clients, which take turns', async () => {
  const order: string[] = [];
  const verify = async (client: string) => {
    const result = codeOf(await passwords.verify(PASSWORD, null, client));
    if (result === 'done') order.push(client);
    return result;
  };
  const all = ['one', 'one', 'one', 'one', 'one', 'two'].map(verify);
  expect(await Promise.all(all)).toEqual(['done', 'done', 'done', 'done', 'UNAVAILABLE', 'done']);
  expect(order.indexOf('two')).toBeLessThan(3);
});

it('leaves places for known clients while others sign in from many addresses', async () => {
  const others = Array.from({ length: 8 }, (_, n) => passwords.verify(PASSWORD, null, `client ${n}`));
  const another = passwords.verify(PASSWORD, null, 'another client');
  const known = Array.from({ length: 5 }, (_, n) => passwords.verify(PASSWORD, null, `known ${n}`, true));
  expect(codeOf(await another)).toBe('UNAVAILABLE');
  expect((await Promise.all(known)).map(codeOf)).toEqual(['done', 'done', 'done', 'done', 'UNAVAILABLE']);
  await Promise.all(others);
});

it('uses 128 MiB for a hash by default', async () => {
  const stored = await createPasswords().hash('correct horse battery', 'person_1');
  expect(stored).toMatch(/^scrypt\$17\$/);
});

it.each([
  ['elevenchars', /at least 12/],
  ['x'.repeat(257), /at most 256/],
  ['Ada.Lovelace@example.com', /mail address/],
  ['abcabcabcabc', /more than three different/],
])('refuses the password %s', (password, message) => {
  const refusal = checkPassword(password, 'ada.lovelace@example.com');
  expect(isRefusal(refusal) && refusal.message).toMatch(message);
});
